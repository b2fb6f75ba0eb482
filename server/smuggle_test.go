package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
)

// raw sends bytes. It returns the statuses and the bodies of all responses until the connection is
// closed.
func raw(t *testing.T, addr, bytes string) (statuses, bodies string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, bytes); err != nil {
		return "closed", ""
	}
	// otherwise the server closes the connection; closing one half earlier looks like a
	// disconnected client
	if !strings.HasSuffix(bytes, "Connection: close\r\n\r\n") {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	in := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return strings.TrimSpace(statuses), bodies
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		statuses += fmt.Sprint(res.StatusCode, " ")
		bodies += string(b) + res.Header.Get("Location")
	}
}

// Unusual addresses, requests within requests, and other protocols have no effect: without a token,
// a client learns only that it needs one.
func TestTricksOfTheWire(t *testing.T) {
	s := listen(t, func(o *options) { o.Access.Tokens, o.MCP = tokens(), http.NotFoundHandler() })
	const host, end = "\r\nHost: localhost", "\r\nConnection: close\r\n\r\n"
	good := "\r\nAuthorization: Bearer " + allToken
	inner := "GET /v1/runs HTTP/1.1" + host + end
	for _, test := range []struct{ what, bytes, want string }{
		{"control: it is there", "GET /v1/runs HTTP/1.1" + host + good + end, "200"},
		{"no token", inner, "401"},
		{"a token in the query", "GET /v1/runs?token=" + allToken + " HTTP/1.1" + host + end, "401"},
		{"a token as a user", "GET http://x:" + allToken + "@localhost/v1/runs HTTP/1.1" + host + end, "401"},
		{"a token in the second line", "GET /v1/runs HTTP/1.1" + host + "\r\nAuthorization: Bearer nobody-has-this" + good + end, "401"},
		{"a token after a tab", "GET /v1/runs HTTP/1.1" + host + "\r\nAuthorization: Bearer\t" + allToken + end, "401"},
		{"up and down", "GET /v1/health/../runs HTTP/1.1" + host + end, "307"},
		{"up and down, hidden", "GET /v1/health/%2e%2e/runs HTTP/1.1" + host + end, "404"},
		{"slashes, hidden", "GET /v1/health%2f..%2fruns HTTP/1.1" + host + end, "404"},
		{"two slashes", "GET //v1/runs HTTP/1.1" + host + end, "307"},
		{"a zero byte", "GET /v1/runs/%00 HTTP/1.1" + host + end, "401"},
		{"another address inside", "GET /v1/health HTTP/1.1" + host + "\r\nX-Original-URL: /v1/runs\r\nX-Rewrite-URL: /v1/runs" + end, "200"},
		{"another method inside", "POST /v1/health HTTP/1.1" + host + "\r\nX-HTTP-Method-Override: GET\r\nContent-Length: 0" + end, "405"},
		{"another host in the line", "GET http://evil.example/v1/health HTTP/1.1" + host + end, "403"},
		{"another host, forwarded", "GET /v1/health HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost" + end, "403"},
		{"two hosts", "GET /v1/health HTTP/1.1" + host + "\r\nHost: evil.example" + end, "400"},
		{"no host", "GET /v1/health HTTP/1.1" + end, "400"},
		{"no host, as long ago", "GET /v1/health HTTP/1.0\r\n\r\n", "403"},
		{"a host with a user", "GET /v1/health HTTP/1.1\r\nHost: localhost@evil.example" + end, "400"},
		{"a proxy", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443" + end, "403"},
		{"two lengths", "POST /v1/runs HTTP/1.1" + host + "\r\nContent-Length: 0\r\nContent-Length: " + fmt.Sprint(len(inner)) + end + inner, "400"},
		{"a length that is none", "POST /v1/runs HTTP/1.1" + host + "\r\nContent-Length: +5" + end + "hello", "400"},
		{"a coding that is none", "POST /v1/runs HTTP/1.1" + host + "\r\nTransfer-Encoding: xchunked" + end + "0\r\n\r\n", "501"},
		{"two codings", "POST /v1/runs HTTP/1.1" + host + "\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity" + end + "0\r\n\r\n", "501"},
		{"a request behind the chunks, with a length", "POST /v1/runs HTTP/1.1" + host + "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner, "401 401"},
		{"a request behind a body", "POST /v1/runs HTTP/1.1" + host + "\r\nContent-Length: 2\r\n\r\n{}" + inner, "401 401"},
		{"a name with a space", "GET /v1/runs HTTP/1.1" + host + "\r\nAuthorization : Bearer " + allToken + end, "400"},
		// the two lines are one header
		{"a line that goes on", "GET /v1/runs HTTP/1.1" + host + "\r\nAuthorization: Bearer\r\n " + allToken + end, "200"},
		{"HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "403"},
		{"HTTP/2 by upgrade", "GET /v1/runs HTTP/1.1" + host + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", "401"},
		{"a socket", "GET /mcp HTTP/1.1" + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", "401"},
		{"a method that is none", "G\x00T /v1/runs HTTP/1.1" + host + end, "400"},
		{"a long head", "GET /v1/runs HTTP/1.1" + host + "\r\nX: " + strings.Repeat("x", 200<<10) + end, "431"},
		{"no request", "\x16\x03\x01\x02\x00\x01\x00", "400"},
	} {
		t.Run(test.what, func(t *testing.T) {
			got, bodies := raw(t, s.addr, test.bytes)
			if got != test.want {
				t.Errorf("got %q, want %s: %s", got, test.want, bodies)
			}
			if strings.Contains(bodies, `"runs"`) && !strings.Contains(test.want, "200") {
				t.Errorf("it received %s", bodies)
			}
		})
	}
	// A client that waits for permission to send its body learns before that it is not authorized.
	if got, _ := raw(t, s.addr, "POST /v1/runs HTTP/1.1"+host+"\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\nExpect: 100-continue\r\n\r\n"); got != "401" {
		t.Errorf("a body that was not sent: %s", got)
	}
}

// Many clients that send a byte now and then do not disturb other clients: their requests are
// answered, memory stays bounded, and the slow clients are disconnected.
func TestManySlowConnections(t *testing.T) {
	many := soak.N(200, 1000)
	s := listen(t, func(o *options) { o.Times.Wait = 2 * time.Second })
	before, routines := heap(), runtime.NumGoroutine()
	began := time.Now()
	var there, gone sync.WaitGroup
	there.Add(many)
	for i := range many {
		gone.Go(func() {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				there.Done()
				t.Error(err)
				return
			}
			defer conn.Close()
			begin := "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: "
			if i%2 == 1 {
				begin = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"input\":\""
			}
			_, _ = io.WriteString(conn, begin)
			there.Done()
			done := make(chan struct{})
			go func() { _, _ = io.Copy(io.Discard, conn); close(done) }()
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = conn.Write([]byte("x"))
				case <-done:
					return
				}
			}
		})
	}
	there.Wait()
	connected := time.Since(began)
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	var slowest time.Duration
	for range 50 {
		at := time.Now()
		res, err := c.Do(request(t, "GET", "http://"+s.addr+"/v1/runs", ""))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("meanwhile: %v, %v", res, err)
		}
		res.Body.Close()
		slowest = max(slowest, time.Since(at))
	}
	during := heap()
	gone.Wait()
	took := time.Since(began)
	after := heap()
	t.Logf("%d slow clients connected in %v; 50 requests meanwhile took at most %v each; all were let go after %v; heap %d MiB before, %d MiB with them, %d MiB after; %d goroutines before, %d after",
		many, connected.Round(time.Millisecond), slowest.Round(time.Microsecond), took.Round(time.Millisecond),
		before>>20, during>>20, after>>20, routines, runtime.NumGoroutine())
	if slowest > 10*time.Second || took > 60*time.Second || during > before+200<<20 {
		t.Errorf("a request took %v, they stayed for %v, the heap went from %d to %d MiB", slowest, took, before>>20, during>>20)
	}
}
