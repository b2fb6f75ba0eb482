package server

// conns.go: limits the open connections of a listener, in all and by address.

import (
	linked "container/list"
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/pawl-go/pawl/server/internal/web"
)

// limited returns a listener with at most n concurrent connections, and at most each from one
// address, or from one /64 of IPv6. Addresses of this machine and of proxies have no limit of their
// own; 0 means no limit for any.
//
// A connection is busy while its request is executed. Beyond a limit, the connection that has been
// without a request for the longest time is closed, so that clients that send theirs slowly, or
// never, occupy nothing. If all are busy, a new one waits, or is closed if its address has too
// many.
func limited(l net.Listener, n, each int, proxies []netip.Prefix) net.Listener {
	ll := &limitedListener{Listener: l, max: n, each: each, proxies: proxies, from: map[netip.Prefix]int{}}
	ll.freed.L = &ll.mu
	return ll
}

type limitedListener struct {
	net.Listener
	max, each int
	proxies   []netip.Prefix

	mu     sync.Mutex
	freed  sync.Cond
	open   int
	from   map[netip.Prefix]int
	free   linked.List // connections that are not busy, the oldest first
	closed bool
}

// Accept waits for a connection, and until it is permitted.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(conn); c != nil {
			return c, nil
		}
		conn.Close()
	}
}

// admit returns the connection, or nil if there is no room for it.
func (l *limitedListener) admit(conn net.Conn) net.Conn {
	from := l.network(conn)
	l.mu.Lock()
	defer l.mu.Unlock()

	// A network with too many connections makes room itself, or is refused. It must not wait: the
	// listener accepts no other connection meanwhile.
	for l.from[from] >= l.each && from.IsValid() {
		if !l.evict(from) {
			return nil
		}
	}

	for l.open >= l.max {
		if l.closed {
			return nil
		}
		if !l.evict(netip.Prefix{}) {
			l.freed.Wait()
		}
	}

	l.open++
	c := &limitedConn{Conn: conn, listener: l, from: from}
	c.place = l.free.PushBack(c)
	if from.IsValid() {
		l.from[from]++
	}
	return c
}

// network returns what a limit by address counts. The zero Prefix means no limit.
func (l *limitedListener) network(c net.Conn) netip.Prefix {
	a := web.AddressOf(c.RemoteAddr().String())
	if l.each == 0 || a.IsLoopback() || web.Contain(l.proxies, a) {
		return netip.Prefix{}
	}
	return web.Network(a)
}

// evict closes the oldest connection of a network that is not busy, and returns false if there is
// none. The zero Prefix means any network. The caller holds mu.
func (l *limitedListener) evict(from netip.Prefix) bool {
	for e := l.free.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*limitedConn); !from.IsValid() || c.from == from {
			l.remove(c)
			go c.Conn.Close()
			return true
		}
	}
	return false
}

// remove stops counting a connection. The caller holds mu.
func (l *limitedListener) remove(c *limitedConn) {
	if c.gone {
		return
	}
	c.gone = true
	l.open--
	if c.place != nil {
		l.free.Remove(c.place)
	}
	if c.from.IsValid() {
		l.from[c.from]--
		if l.from[c.from] == 0 {
			delete(l.from, c.from)
		}
	}
	l.freed.Signal()
}

// Close also ends waiting calls of Accept.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.freed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	from     netip.Prefix
	place    *linked.Element // in free; nil means busy; guarded by l.mu
	gone     bool            // guarded by l.mu
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// markBusy marks the connection of a request as busy, or as not busy.
func markBusy(ctx context.Context, is bool) {
	c, ok := ctx.Value(connKey{}).(*limitedConn)
	if !ok {
		return
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	switch {
	case c.gone || is == (c.place == nil):
	case is:
		c.listener.free.Remove(c.place)
		c.place = nil
	default:
		c.place = c.listener.free.PushBack(c)
	}
}
