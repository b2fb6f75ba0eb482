package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
)

// half opens connections whose requests never end, and returns the function that closes them.
func half(t *testing.T, addr string, n int) (end func()) {
	t.Helper()
	conns := make([]net.Conn, n)
	var wg sync.WaitGroup
	for part := range 50 {
		wg.Go(func() {
			for i := part; i < n; i += 50 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				conns[i] = c
				begin := "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: "
				if i%2 == 1 {
					begin = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"input\":\""
				}
				_, _ = io.WriteString(c, begin) // the server may have closed it
			}
		})
	}
	wg.Wait()
	return func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}
}

// Clients that never send their whole requests occupy no connection: a health check is answered
// within a second, from the same address and with more of them than there may be connections. In
// the control the connections are busy with requests, and the check waits.
func TestHalfOpen(t *testing.T) {
	limit := soak.N(200, 4096)
	s := listen(t, func(o *options) { o.Limits.Conns = limit })
	end := half(t, s.addr, limit+limit/10)
	defer end()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for range 20 {
		began := time.Now()
		if got, status := ask(t, c, "GET", s.addr, "/v1/health", ""); status != 200 || time.Since(began) > time.Second {
			t.Errorf("health: %d %+v after %v", status, got, time.Since(began))
		}
	}

	full := listen(t, func(o *options) { o.Limits.Conns = 20 })
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ask(t, c, "POST", full.addr, "/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"wait","wait":true}`, i))
		})
	}
	for full.world.waits.Load() < 20 {
		runtime.Gosched()
	}
	hasty := *c
	hasty.Timeout = time.Second
	if res, err := hasty.Get("http://" + full.addr + "/v1/health"); err == nil {
		res.Body.Close()
		t.Error("control: a server whose connections are all busy answers")
	}
	close(full.world.gate)
	wg.Wait()
}

// from gives connections the remote addresses of a list, in turn.
type from struct {
	net.Listener
	mu    sync.Mutex
	addrs []string
}

type fromConn struct {
	net.Conn
	at net.Addr
}

func (c fromConn) RemoteAddr() net.Addr { return c.at }

func (l *from) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := c.RemoteAddr()
	if len(l.addrs) > 0 {
		at = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(l.addrs[0]), 1))
		l.addrs = l.addrs[1:]
	}
	return fromConn{c, at}, nil
}

// An address, and a /64 of IPv6, has at most its share of the connections: its oldest one without a
// request is closed. Addresses of this machine, and all with a limit below 0, have no share.
func TestAddressConns(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit int
		addrs []string
		cut   []bool
	}{
		{"one address", 2, []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1"},
			[]bool{true, false, false, false}},
		{"one network", 2, []string{"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8::3"},
			[]bool{true, false, false, false}},
		{"mapped", 1, []string{"::ffff:192.0.2.1", "192.0.2.1"}, []bool{true, false}},
		{"this machine", 1, []string{"127.0.0.1", "127.0.0.1", "::1", "::1"}, []bool{false, false, false, false}},
		{"no limit", -1, []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, []bool{false, false, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := &from{addrs: test.addrs}
			options := func(o *options) { o.Limits.AddressConns = test.limit }
			s := listenOn(t, options, func(l net.Listener) net.Listener { in.Listener = l; return in })
			var conns []net.Conn
			for range test.addrs {
				c, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				conns = append(conns, c)
			}
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			ask(t, c, "GET", s.addr, "/v1/health", "") // all were accepted
			for i, c := range conns {
				_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				if test.cut[i] {
					_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				}
				_, err := c.Read(make([]byte, 1))
				if open := err != nil && !isEnd(err); open == test.cut[i] {
					t.Errorf("connection %d from %s: %v", i, test.addrs[i], err)
				}
			}
		})
	}
}

// isEnd reports whether the other side has closed the connection.
func isEnd(err error) bool {
	slow, ok := err.(net.Error)
	return !ok || !slow.Timeout()
}
