package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/http1"
)

// What an answer may look like. ok: it must be read; otherwise it must be refused. Whatever is read must be what net/http reads.
var answers = []struct {
	name string
	raw  string
	ok   bool
}{
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true},
	{"length, small letters", "HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nhello", true},
	{"no length, closed", "HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\nhello", true},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", true},
	{"HTTP/1.0, closed", "HTTP/1.0 200 OK\r\n\r\nhello", true},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", true},
	{"bare line ends in the head", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", true},
	{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", true},
	{"chunks, size padded", "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n05  \r\nhello\r\n000\r\n\r\n", true},
	{"chunks, none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
	{"chunks, trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", true},
	{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
	{"no content", "HTTP/1.1 204 No Content\r\n\r\n", true},
	{"no content, with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", true},
	{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", true},
	{"an error", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno", true},
	{"length of nothing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
	{"two cookies", "HTTP/1.1 500 X\r\nSet-Cookie: a\r\nset-cookie:  b \r\nContent-Length: 0\r\n\r\n", true},
	{"a long header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 40<<10) + "\r\nContent-Length: 2\r\n\r\nok", true},
	{"many headers", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Y: z\r\n", 3000) + "Content-Length: 2\r\n\r\nok", true},
	{"a long body", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("0123456789", 10000), true},
	{"many chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("a\r\n0123456789\r\n", 5000) + "0\r\n\r\n", true},
	{"bytes after the body", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", true},

	{"nothing", "", false},
	{"not HTTP", "hello\r\n\r\n", false},
	{"a head without an end", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", false},
	{"HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"a long status", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"a short status", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"a status in letters", "HTTP/1.1 2OO OK\r\nContent-Length: 0\r\n\r\n", false},
	{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false},
	{"interim without end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20), false},
	{"cut body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", false},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", false},
	{"one length twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", false},
	{"lengths in a list", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", false},
	{"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", false},
	{"a length below nothing", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", false},
	{"a length without digits", "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nhello", false},
	{"a huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", false},
	{"a length in hex", "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", false},
	{"length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"chunks and length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", false},
	{"chunks twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"chunks and more", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false},
	{"identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello", false},
	{"chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"a folded line", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", false},
	{"a folded length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 0\r\n\r\n", false},
	{"no colon", "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n", false},
	{"no name", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 0\r\n\r\n", false},
	{"a space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", false},
	{"a zero byte", "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n", false},
	{"a bare return", "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 5\r\nContent-Length: 0\r\n\r\n", false},
	{"a huge head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 11<<20) + "\r\n\r\n", false},
	{"a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", false},
	{"a chunk with a bad size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5g\r\nhello\r\n0\r\n\r\n", false},
	{"a chunk with a sign", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", false},
	{"a chunk with 0x", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", false},
	{"a huge chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n", false},
	{"a chunk that is longer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", false},
	{"a chunk that is shorter", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello\r\n0\r\n\r\n", false},
	{"bare line ends at chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", false},
	{"chunks without the last", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false},
	{"chunks without an end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", false},
	{"a long chunk line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 20<<10) + "\r\nhello\r\n0\r\n\r\n", false},
	{"a trailer that is a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 7\r\n\r\n", false},
	{"a trailer that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nxyz\r\n\r\n", false},
}

// read is what a RoundTripper makes of an answer.
type read struct {
	Status int
	Header http.Header
	Length int64
	Body   string
	Err    bool
}

// outcome gives raw to a RoundTripper as the answer of a server that closes its connection after it, in pieces of size bytes.
func outcome(t testing.TB, carry func(dial func(context.Context, string, string) (net.Conn, error)) (http.RoundTripper, func()), raw string, size int) read {
	t.Helper()
	written := make(chan struct{})
	defer func() { <-written }()
	tr, done := carry(func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer close(written)
			defer far.Close()
			if _, _, ok := new(server).request(bufio.NewReader(far)); !ok {
				return
			}
			for rest := raw; rest != ""; {
				n := min(size, len(rest))
				if _, err := io.WriteString(far, rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		return near, nil
	})
	defer done()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://local.test/v1", bytes.NewReader([]byte("x")))
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return read{Err: true}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return read{Err: true}
	}
	return read{Status: res.StatusCode, Header: res.Header, Length: res.ContentLength, Body: string(b)}
}

func ours(dial func(context.Context, string, string) (net.Conn, error)) (http.RoundTripper, func()) {
	tr := &http1.Transport{Dial: dial}
	return tr, tr.CloseIdle
}

func theirs(dial func(context.Context, string, string) (net.Conn, error)) (http.RoundTripper, func()) {
	tr := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true} // it prints what comes on idle connections
	return tr, tr.CloseIdleConnections
}

// Whatever is read is what net/http reads; the rest is refused.
func TestAnswers(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			for _, size := range []int{1 << 30, 1, 7} {
				if size < 100 && len(a.raw) > 50<<10 {
					continue
				}
				got := outcome(t, ours, a.raw, size)
				if got.Err == a.ok {
					t.Fatalf("in pieces of %d: got %+v", size, got)
				}
				if got.Err {
					continue
				}
				if d := cmp.Diff(plainly(outcome(t, theirs, a.raw, 1<<30)), plainly(got)); d != "" {
					t.Errorf("in pieces of %d (-net/http +got):\n%s", size, d)
				}
			}
		})
	}
}

// plainly takes out of an answer what http.Response keeps elsewhere.
func plainly(r read) read {
	if r.Status == 204 || r.Status == 304 { // net/http tells of the length that there would have been
		r.Length = 0
	}
	return r
}

// Nothing is read in another way than net/http reads it, and nothing is read that it refuses.
func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		if len(a.raw) < 4<<10 {
			f.Add(a.raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := outcome(t, ours, raw, 1<<30)
		if got.Err {
			return
		}
		if other := outcome(t, ours, raw, 1); cmp.Diff(got, other) != "" {
			t.Errorf("%q in single bytes:\n%s", raw, cmp.Diff(got, other))
		}
		if d := cmp.Diff(plainly(outcome(t, theirs, raw, 1<<30)), plainly(got)); d != "" {
			t.Errorf("%q (-net/http +got):\n%s", raw, d)
		}
	})
}

// The head of an error is there for whoever asks.
func TestHead(t *testing.T) {
	s := serve(t, always("HTTP/1.1 429 Too Many\r\nretry-after: 3 \r\nX: 1\r\nx: 2\r\nContent-Length: 4\r\n\r\nslow"))
	x := &http1.Exchange{Host: s.host, Target: "/", Body: []byte("{}")}
	if err := newTransport(t).Do(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	want := http.Header{"Retry-After": {"3"}, "X": {"1", "2"}, "Content-Length": {"4"}}
	if d := cmp.Diff(want, x.Head()); d != "" || x.Status != 429 {
		t.Errorf("status %d (-want +got):\n%s", x.Status, d)
	}
}

// A server may refuse a body that it has not read: a small one, which was sent already, and one that could not be sent to its end.
func TestEarlyRefusal(t *testing.T) {
	for name, size := range map[string]int{"small": 8 << 10, "large": 32 << 20} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(s *server, _ int, c net.Conn, _ *bufio.Reader) {
				c.Read(make([]byte, 1))
				io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
			})
			tr := newTransport(t)
			for range 2 {
				status, body, err := post(t.Context(), tr, s.host, strings.Repeat("x", size))
				if status != 413 || body != "big" || err != nil {
					t.Errorf("status %d, %q, %v", status, body, err)
				}
			}
			if got := s.conns.Load(); got != 2 {
				t.Errorf("%d connections for 2 requests", got)
			}
		})
	}
}
