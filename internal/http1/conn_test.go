package http1_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/http1"
)

// A connection serves one request after another, as long as each answer was read to its end and said nothing else.
func TestReuse(t *testing.T) {
	chunks := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
	for _, c := range []struct {
		name, answer string
		conns        int64 // for three requests
	}{
		{"length", fine, 1},
		{"chunks", chunks, 1},
		{"asked to close", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok", 3},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 3},
		{"more than was said", fine + fine, 3},
		{"more after chunks", chunks + "x", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, always(c.answer))
			tr := newTransport(t)
			for range 3 {
				want(t, tr, s.host, "ok")
			}
			if got := s.conns.Load(); got != c.conns {
				t.Errorf("%d connections, want %d", got, c.conns)
			}
		})
	}
}

// Requests at once have a connection each, and later ones find those.
func TestAtOnce(t *testing.T) {
	const n = 50
	var all sync.WaitGroup
	all.Add(n)
	s := serve(t, func(s *server, _ int, c net.Conn, r *bufio.Reader) {
		for i := 0; ; i++ {
			if _, _, ok := s.request(r); !ok {
				return
			}
			if i == 0 {
				all.Done()
				all.Wait() // until all are there
			}
			io.WriteString(c, fine)
		}
	})
	tr := newTransport(t)
	for range 3 {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { want(t, tr, s.host, "ok") })
		}
		wg.Wait()
	}
	if got := s.conns.Load(); got != n {
		t.Errorf("%d connections for %d requests at once", got, n)
	}
}

// A connection that the server has closed, or written to, is not used: no request is lost on it.
func TestStale(t *testing.T) {
	for name, farewell := range map[string]string{"closed": "", "timed out": "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			said := make(chan struct{}, 10)
			s := serve(t, func(s *server, _ int, c net.Conn, r *bufio.Reader) {
				if _, _, ok := s.request(r); ok {
					io.WriteString(c, fine+farewell)
				}
				c.Close()
				said <- struct{}{}
			})
			tr := newTransport(t)
			for range 5 {
				want(t, tr, s.host, "ok")
				<-said
			}
			if got := s.posts.Load(); got != 5 {
				t.Errorf("%d requests arrived, want 5", got)
			}
		})
	}
}

// A request that was sent is not sent again: it may have been carried out.
func TestNotTwice(t *testing.T) {
	s := serve(t, func(s *server, _ int, c net.Conn, r *bufio.Reader) {
		if _, _, ok := s.request(r); ok {
			io.WriteString(c, fine)
		}
		s.request(r) // and no answer
	})
	tr := newTransport(t)
	want(t, tr, s.host, "ok")
	if _, _, err := post(t.Context(), tr, s.host, "again"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if got := s.posts.Load(); got != 2 {
		t.Errorf("%d requests arrived, want 2", got)
	}
}

// Whatever an exchange waits for, it ends with the cause, and so does its connection.
func TestCancel(t *testing.T) {
	cause := errors.New("no longer wanted")
	half := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhal"
	for _, c := range []struct {
		name   string
		body   int
		answer string
	}{
		{"while the request is written", 32 << 20, ""},
		{"before the head", 3, ""},
		{"within the head", 3, half[:20]},
		{"within the body", 3, half},
	} {
		for _, by := range []string{"context", "abort"} {
			t.Run(c.name+", by "+by, func(t *testing.T) {
				ready, closed, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
				s := serve(t, func(s *server, _ int, nc net.Conn, r *bufio.Reader) {
					defer close(closed)
					r.Peek(1)
					if c.body > 1<<20 { // it does not read on before the other side has ended
						close(ready)
						<-over
					} else {
						s.request(r)
						io.WriteString(nc, c.answer)
						close(ready)
					}
					io.Copy(io.Discard, r)
				})
				tr := newTransport(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				x := &http1.Exchange{Host: s.host, Target: "/", Body: make([]byte, c.body)}
				go func() {
					<-ready
					if by == "abort" {
						x.Abort(cause)
					} else {
						cancel(cause)
					}
				}()
				err := tr.Do(ctx, x)
				if err == nil {
					_, err = io.ReadAll(x)
				}
				x.Close()
				if !errors.Is(err, cause) || x.Aborted() != cause {
					t.Errorf("error %v, want the cause; Aborted says %v", err, x.Aborted())
				}
				close(over)
				<-closed // the server has seen the end
			})
		}
	}
}

func TestCancelDial(t *testing.T) {
	cause := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	tr := &http1.Transport{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel(cause)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if _, _, err := post(ctx, tr, "local.test", "x"); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
	if _, _, err := post(ctx, tr, "local.test", "x"); !errors.Is(err, cause) {
		t.Errorf("after the end: error %v, want the cause", err)
	}
}

// An end that comes after the answer does nothing to those who have the connection now.
func TestLateAbort(t *testing.T) {
	s := serve(t, always(fine))
	tr := newTransport(t)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		x := &http1.Exchange{Host: s.host, Target: "/", Body: []byte("x")}
		if err := tr.Do(ctx, x); err != nil {
			t.Fatal(err)
		}
		io.ReadAll(x)
		go cancel()
		go x.Abort(nil)
		want(t, tr, s.host, "ok")
		cancel()
	}
	if got := s.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// A body that is not read to its end costs its connection, unless what is left comes at once.
func TestDrain(t *testing.T) {
	rest := make(chan string, 1)
	s := serve(t, func(s *server, _ int, c net.Conn, r *bufio.Reader) {
		for {
			if _, _, ok := s.request(r); !ok {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok")
			io.WriteString(c, <-rest)
		}
	})
	tr := newTransport(t)
	for _, c := range []struct {
		name, rest string
		limit      time.Duration
		conns      int64
	}{
		{"the end is there", "\r\n0\r\n\r\n", time.Minute, 1},
		{"more, and the end", "\r\n3\r\nabc\r\n0\r\n\r\n", time.Minute, 1},
		{"nothing", "", 20 * time.Millisecond, 1},
		{"after nothing, another connection", "\r\n0\r\n\r\n", time.Minute, 2},
		{"too much", "\r\n40000\r\n" + strings.Repeat("x", 0x40000) + "\r\n0\r\n\r\n", time.Minute, 2},
		{"after too much, another connection", "\r\n0\r\n\r\n", time.Minute, 3},
	} {
		rest <- c.rest
		x := &http1.Exchange{Host: s.host, Target: "/", Body: []byte("x")}
		if err := tr.Do(t.Context(), x); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, err := io.ReadFull(x, make([]byte, 2)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		x.Drain(c.limit)
		if _, err := x.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: there is something to read after it", c.name)
		}
		if got := s.conns.Load(); got != c.conns {
			t.Errorf("%s: %d connections, want %d", c.name, got, c.conns)
		}
	}
}

// What is idle is bounded in number and in time.
func TestIdle(t *testing.T) {
	over := make(chan int, 10)
	s := serve(t, func(s *server, n int, c net.Conn, r *bufio.Reader) {
		always(fine)(s, n, c, r)
		over <- n
	})
	tr := &http1.Transport{MaxIdle: 1, IdleFor: 50 * time.Millisecond}
	t.Cleanup(tr.CloseIdle)
	var open [2]*http1.Exchange
	for i := range open {
		open[i] = &http1.Exchange{Host: s.host, Target: "/", Body: []byte("x")}
		if err := tr.Do(t.Context(), open[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range open {
		io.ReadAll(x)
	}
	if first, second := <-over, <-over; first != 2 || second != 1 {
		t.Errorf("connection %d ended before %d; the second one is too many, the first one grows old", first, second)
	}
}

func TestFits(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:11434/v1": true, "http://[::1]:80/": true, "http://localhost": true, "http://my_host.local:1/": true,
		"https://127.0.0.1/": false, "http://h%C3%A4nsel/": false, "http://[fe80::1%25eth0]/": false, "/v1": false, "http:opaque": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := http1.Fits(u, http.Header{"X": {"y"}}); got != want {
			t.Errorf("%s: got %v", address, got)
		}
		if http1.Fits(u, http.Header{"Connection": {"close"}}) {
			t.Errorf("%s: fits with a header about the connection", address)
		}
	}
}

// Nothing in a header or an address can begin another line.
func TestNoInjection(t *testing.T) {
	for _, h := range []http.Header{{"X": {"a\r\nY: b"}}, {"X": {"a\nb"}}, {"X": {"a\x00"}}, {"X Y": {"a"}}, {"": {"a"}}, {"X:": {"a"}}} {
		if b, err := http1.AppendHeader(nil, h); err == nil {
			t.Errorf("%v became %q", h, b)
		}
	}
	b, err := http1.AppendHeader(nil, http.Header{"B": {" x ", "y"}, "A": {"ü"}, "Host": {"evil"}, "Content-Length": {"7"}})
	if want := "A: ü\r\nB: x\r\nB: y\r\n"; string(b) != want || err != nil {
		t.Errorf("got %q, %v; want %q", b, err, want)
	}
	for _, target := range []string{"/a b", "/a\r\nX: y", "/\x7f"} {
		x := &http1.Exchange{Host: "local.test", Target: target}
		if err := new(http1.Transport).Do(t.Context(), x); err == nil {
			t.Errorf("%q was sent", target)
		}
	}
}

// The request arrives as net/http would send it.
func TestRequest(t *testing.T) {
	type arrived struct{ method, uri, host, body, key string }
	got := make(chan arrived, 2)
	s := serve(t, func(s *server, _ int, c net.Conn, r *bufio.Reader) {
		if req, body, ok := s.request(r); ok {
			got <- arrived{req.Method, req.RequestURI, req.Host, body, req.Header.Get("X-Key")}
			io.WriteString(c, fine)
		}
	})
	var seen [2]arrived
	for i, tr := range []http.RoundTripper{newTransport(t), new(http.Transport)} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.host+"/a%20b?c=d", strings.NewReader(strings.Repeat("body", 50000)))
		req.Header.Set("X-Key", "k")
		if !http1.Takes(req) {
			t.Fatal("the request is not taken")
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		seen[i] = <-got
	}
	if seen[0] != seen[1] {
		t.Errorf("net/http sends %+v, we send %+v", seen[1], seen[0])
	}
}
