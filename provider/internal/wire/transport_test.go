package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// server answers connections on loopback by hand.
type server struct {
	host  string
	conns atomic.Int64 // opened connections
	posts atomic.Int64 // requests that were read to their end
}

// serve starts a server that passes each connection to handle and closes it afterwards.
func serve(t testing.TB, handle func(s *server, c net.Conn, r *bufio.Reader)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &server{host: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			go func() {
				defer c.Close()
				handle(s, c, bufio.NewReader(c))
			}()
		}
	}()
	return s
}

// request reads one request. It returns false if the connection has ended.
func (s *server) request(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	s.posts.Add(1)
	return true
}

// always answers each request with the same bytes.
func always(answer string) func(*server, net.Conn, *bufio.Reader) {
	return func(s *server, c net.Conn, r *bufio.Reader) {
		for s.request(r) {
			io.WriteString(c, answer)
		}
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

// newClient returns a Client without a RoundTripper, whose connections end with the test.
func newClient(t testing.TB, retries int) *Client {
	c := &Client{
		Provider: "test", Header: Header(nil), Retries: retries,
		Timeouts: Timeouts{Connect: 9 * time.Second}, // not the shared transport
		Decoder:  func(out *Emitter) Decoder { return &events{out: out} },
		ToError: func(status int, h http.Header, body []byte, _ time.Time) *llm.ProviderError {
			return &llm.ProviderError{Provider: "test", Status: status, Message: h.Get("Retry-After") + string(body)}
		},
	}
	t.Cleanup(func() { c.transport().CloseIdleConnections() })
	return c
}

// post sends one request to host and returns the whole answer.
func post(ctx context.Context, c *Client, host string, body []byte) (answer string, err error) {
	u := &url.URL{Scheme: "http", Host: host, Path: "/v1"}
	err = c.Post(ctx, u, body, func(b []byte) error {
		answer = string(b)
		return nil
	})
	return answer, err
}

func want(t *testing.T, c *Client, host string) {
	t.Helper()
	if got, err := post(t.Context(), c, host, []byte("{}")); got != "{}" || err != nil {
		t.Errorf("got %q, %v; want {}", got, err)
	}
}

// A connection serves one request after another, as long as each answer was read to its end.
func TestReuse(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		conns        int64 // for three requests
	}{
		{"length", fine, 1},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 1},
		{"asked to close", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n{}", 3},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(tt.answer))
			c := newClient(t, 0)
			for range 3 {
				want(t, c, s.host)
			}
			if got := s.conns.Load(); got != tt.conns {
				t.Errorf("%d connections, want %d", got, tt.conns)
			}
		})
	}
}

// Concurrent requests have a connection each, and later requests use those.
func TestAtOnce(t *testing.T) {
	const n = 50
	var all sync.WaitGroup
	all.Add(n)
	s := serve(t, func(s *server, c net.Conn, r *bufio.Reader) {
		for i := 0; s.request(r); i++ {
			if i == 0 {
				all.Done()
				all.Wait() // until all connections are open
			}
			io.WriteString(c, fine)
		}
	})
	c := newClient(t, 0)
	for range 3 {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { want(t, c, s.host) })
		}
		wg.Wait()
	}
	if got := s.conns.Load(); got != n {
		t.Errorf("%d connections for %d concurrent requests", got, n)
	}
}

// A server that closes each connection after its answer costs no failed request.
func TestStale(t *testing.T) {
	closed := make(chan struct{}, 10)
	s := serve(t, func(s *server, c net.Conn, r *bufio.Reader) {
		if s.request(r) {
			io.WriteString(c, fine)
		}
		c.Close()
		closed <- struct{}{}
	})
	c := newClient(t, 2)
	for range 5 {
		want(t, c, s.host)
		<-closed
	}
}

// The transport does not repeat a request that was sent: the server may have executed it.
func TestNotTwice(t *testing.T) {
	s := serve(t, func(s *server, c net.Conn, r *bufio.Reader) {
		if s.request(r) {
			io.WriteString(c, fine)
		}
		s.request(r) // and no answer
	})
	c := newClient(t, 0)
	want(t, c, s.host)
	var e *llm.ProviderError
	if _, err := post(t.Context(), c, s.host, []byte("again")); !errors.As(err, &e) || e.Code != llm.CodeNetwork ||
		!e.Retryable {
		t.Errorf("got %v, want a retryable error of the network", err)
	}
	if got := s.posts.Load(); got != 2 {
		t.Errorf("%d requests arrived, want 2", got)
	}
}

// A cancelled exchange returns the cause, in each of its phases, and its connection ends.
func TestCancel(t *testing.T) {
	cause := errors.New("no longer wanted")
	half := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhal"
	for _, tt := range []struct {
		name   string
		body   int
		answer string
	}{
		{"while the request is written", 32 << 20, ""},
		{"before the head", 3, ""},
		{"within the head", 3, half[:20]},
		{"within the body", 3, half},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ready, closed, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
			s := serve(t, func(s *server, c net.Conn, r *bufio.Reader) {
				defer close(closed)
				r.Peek(1)
				if tt.body > 1<<20 { // it does not read on before the client closes
					close(ready)
					<-over
				} else {
					s.request(r)
					io.WriteString(c, tt.answer)
					close(ready)
				}
				io.Copy(io.Discard, r)
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-ready
				cancel(cause)
			}()
			if _, err := post(ctx, newClient(t, 2), s.host, make([]byte, tt.body)); !errors.Is(err, cause) {
				t.Errorf("got %v, want the cause", err)
			}
			close(over)
			<-closed // the server has noticed the end
		})
	}
}

func TestCancelDial(t *testing.T) {
	cause := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := newClient(t, 2)
	c.once.Do(func() {
		c.own = newTransport(0, func(ctx context.Context, _, _ string) (net.Conn, error) {
			cancel(cause)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
	for range 2 { // the second time, the context has ended before
		if _, err := post(ctx, c, "local.test", []byte("{}")); !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
	}
}

// A cancellation after the answer has no effect on the next request on the same connection.
func TestLateCancel(t *testing.T) {
	s := serve(t, always(fine))
	c := newClient(t, 0)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		if got, err := post(ctx, c, s.host, []byte("{}")); got != "{}" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		go cancel()
		want(t, c, s.host)
		cancel()
	}
	if got := s.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// A connection whose stream continues after its last event is closed, unless the rest arrives at
// once.
func TestDrain(t *testing.T) {
	rest := make(chan string, 1)
	s := serve(t, func(s *server, c net.Conn, r *bufio.Reader) {
		for s.request(r) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\ndata: \"end\"\n\n\r\n"+<-rest)
		}
	})
	c := newClient(t, 0)
	for _, tt := range []struct {
		name, rest string
		conns      int64
	}{
		{"the end is there", "0\r\n\r\n", 1},
		{"more, and the end", "3\r\n: a\r\n0\r\n\r\n", 1},
		{"nothing", "", 1},
		{"after nothing, another connection", "0\r\n\r\n", 2},
		{"too much", "40000\r\n" + strings.Repeat("x", 0x40000) + "\r\n0\r\n\r\n", 2},
		{"after too much, another connection", "0\r\n\r\n", 3},
	} {
		rest <- tt.rest
		u := &url.URL{Scheme: "http", Host: s.host, Path: "/v1"}
		out := &Emitter{Provider: "test", Yield: func(llm.Delta, error) bool { return true }}
		if err := c.Send(t.Context(), u, []byte("{}"), false, out); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := s.conns.Load(); got != tt.conns {
			t.Errorf("%s: %d connections, want %d", tt.name, got, tt.conns)
		}
	}
}

// An answer that is cut off or is not HTTP is a retryable error.
func TestBrokenAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":                 "",
		"not HTTP":                "hello\r\n\r\n",
		"a head without an end":   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
		"cut body":                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{",
		"chunks without the last": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"a chunk with a bad size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2g\r\n{}\r\n0\r\n\r\n",
		"two lengths":             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(s *server, c net.Conn, r *bufio.Reader) {
				s.request(r)
				io.WriteString(c, answer)
			})
			var e *llm.ProviderError
			if got, err := post(t.Context(), newClient(t, 0), s.host, []byte("{}")); !errors.As(err, &e) || !e.Retryable {
				t.Errorf("got %q, %v; want a retryable error", got, err)
			}
		})
	}
}

// ToError receives the header of an error response.
func TestHead(t *testing.T) {
	s := serve(t, always("HTTP/1.1 429 Too Many\r\nretry-after: 3 \r\nContent-Length: 4\r\n\r\nslow"))
	var e *llm.ProviderError
	if _, err := post(t.Context(), newClient(t, 0), s.host, []byte("{}")); !errors.As(err, &e) || e.Status != 429 ||
		e.Message != "3slow" {
		t.Errorf("got %v, want status 429 with Retry-After 3 and the body", err)
	}
}

// A header that cannot be sent is the caller's mistake: the request is neither sent nor repeated.
func TestNoInjection(t *testing.T) {
	s := serve(t, always(fine))
	for _, h := range []http.Header{{"X": {"a\r\nY: b"}}, {"X": {"a\nb"}}, {"X": {"a\x00"}}, {"X Y": {"a"}}, {"": {"a"}}, {"X:": {"a"}}} {
		c := newClient(t, 2)
		c.Header = h
		var e *llm.ProviderError
		if _, err := post(t.Context(), c, s.host, []byte("{}")); !errors.As(err, &e) ||
			e.Code != llm.CodeInvalidRequest || e.Retryable {
			t.Errorf("%v: got %v, want an invalid request", h, err)
		}
	}
	if got := s.conns.Load(); got != 0 {
		t.Errorf("%d connections, want none", got)
	}
	c := newClient(t, 0)
	c.Header = http.Header{"B": {" x ", "y\tz"}, "A": {"ü"}, "Content-Length": {"7"}}
	want(t, c, s.host)
}

// A server may refuse a body before it has read it.
func TestEarlyRefusal(t *testing.T) {
	refused := func(t *testing.T, c *Client, u *url.URL, size int) {
		t.Helper()
		var e *llm.ProviderError
		err := c.Post(t.Context(), u, make([]byte, size), func([]byte) error { return nil })
		if !errors.As(err, &e) || e.Status != 413 || e.Message != "big" {
			t.Errorf("got %v, want status 413 and its body", err)
		}
	}
	t.Run("small, HTTP/1.1", func(t *testing.T) {
		s := serve(t, func(s *server, c net.Conn, _ *bufio.Reader) {
			c.Read(make([]byte, 1))
			io.WriteString(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig")
			io.Copy(io.Discard, c) // unread bytes would make the close a reset without an answer
		})
		c := newClient(t, 0)
		for range 2 {
			refused(t, c, &url.URL{Scheme: "http", Host: s.host, Path: "/v1"}, 8<<10)
		}
		if got := s.conns.Load(); got != 2 {
			t.Errorf("%d connections for 2 requests", got)
		}
	})
	t.Run("large, HTTP/2", func(t *testing.T) {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("the request came over %s", r.Proto)
			}
			http.MaxBytesReader(w, r.Body, 1).Read(make([]byte, 2))
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			io.WriteString(w, "big")
		}))
		s.EnableHTTP2 = true
		s.StartTLS()
		defer s.Close()
		c := newClient(t, 0)
		c.transport().TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		c.transport().TLSClientConfig.RootCAs.AddCert(s.Certificate())
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			refused(t, c, u, 32<<20)
		}
		c.transport().CloseIdleConnections()
	})
}
