package http1_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/http1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers connections on loopback by hand.
type server struct {
	host  string
	conns atomic.Int64 // how many were opened
	posts atomic.Int64 // how many requests were read to their end
}

// serve starts a server that gives each connection, numbered from 1, to a function, and closes it after that.
func serve(t testing.TB, handle func(s *server, n int, c net.Conn, r *bufio.Reader)) *server {
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
			n := int(s.conns.Add(1))
			go func() {
				defer c.Close()
				handle(s, n, c, bufio.NewReader(c))
			}()
		}
	}()
	return s
}

// request reads one request and returns its body; false: the connection ended.
func (s *server) request(r *bufio.Reader) (*http.Request, string, bool) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, "", false
	}
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return req, string(b), false
	}
	s.posts.Add(1)
	return req, string(b), true
}

// always answers each request with the same bytes.
func always(answer string) func(*server, int, net.Conn, *bufio.Reader) {
	return func(s *server, _ int, c net.Conn, r *bufio.Reader) {
		for {
			if _, _, ok := s.request(r); !ok {
				return
			}
			io.WriteString(c, answer)
		}
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// newTransport returns a Transport whose connections end with the test.
func newTransport(t testing.TB) *http1.Transport {
	tr := new(http1.Transport)
	t.Cleanup(tr.CloseIdle)
	return tr
}

// post sends one request and reads the whole answer.
func post(ctx context.Context, tr *http1.Transport, host, body string) (status int, answer string, err error) {
	x := &http1.Exchange{Host: host, Target: "/v1", Body: []byte(body)}
	if err := tr.Do(ctx, x); err != nil {
		return 0, "", err
	}
	defer x.Close()
	b, err := io.ReadAll(x)
	return x.Status, string(b), err
}

func want(t *testing.T, tr *http1.Transport, host, answer string) {
	t.Helper()
	status, got, err := post(t.Context(), tr, host, "question")
	if status != 200 || got != answer || err != nil {
		t.Errorf("status %d, %q, %v; want 200, %q", status, got, err, answer)
	}
}

func ExampleTransport() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s said %q", r.Method, r.URL, b)
	}))
	defer l.Close()

	var t http1.Transport
	defer t.CloseIdle()
	x := &http1.Exchange{Host: l.Addr().String(), Target: "/v1/chat", Body: []byte("hello")}
	if err := t.Do(context.Background(), x); err != nil {
		fmt.Println(err)
		return
	}
	defer x.Close()
	b, _ := io.ReadAll(x)
	fmt.Printf("%d, %d bytes: %s\n", x.Status, x.Length, b)
	// Output: 200, 26 bytes: POST /v1/chat said "hello"
}
