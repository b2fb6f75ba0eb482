package server

// conns.go: limits the open connections of a listener.

import (
	"net"
	"sync"
)

// limited returns a listener with at most n concurrent connections. Further connections wait in the
// system's queue.
func limited(l net.Listener, n int) net.Listener {
	return &limitedListener{Listener: l, room: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	room   chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept waits until a connection is permitted, and then for a connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitedConn{Conn: c, l: l}, nil
}

// Close also ends waiting calls of Accept.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn releases its slot when it is closed for the first time.
type limitedConn struct {
	net.Conn
	l    *limitedListener
	once sync.Once
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.l.room })
	return err
}
