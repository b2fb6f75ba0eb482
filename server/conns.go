package server

import (
	"net"
	"sync"
)

// limited is l with at most n connections at once; the others wait in the system's queue.
func limited(l net.Listener, n int) net.Listener {
	return &limitedListener{Listener: l, room: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	room   chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept waits for room, and for a connection.
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

// Close ends the waiting, too.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its room back when it is closed, once.
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
