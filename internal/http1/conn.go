package http1

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is a connection, in use by one Exchange or kept in the pool. It holds a buffer only while there is something in it.
type conn struct {
	nc    net.Conn
	raw   syscall.RawConn // nil: nc is no socket, and is read with a buffer at hand
	read  func(fd uintptr) bool
	look  func(fd uintptr) bool
	host  string
	since time.Time // when it was put into the pool

	limited bool // there is a deadline

	buf  []byte // what was read, but for nil, is buf[r:w]
	r, w int
	got  error // of read
	live bool  // of look
}

const (
	bufferSize = 16 << 10
	maxHead    = 64 << 10 // of an answer
)

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func newConn(nc net.Conn, host string) (*conn, error) {
	c := &conn{nc: nc, host: host}
	if s, ok := nc.(syscall.Conn); ok && sockets {
		raw, err := s.SyscallConn()
		if err != nil {
			nc.Close()
			return nil, err
		}
		c.raw, c.read, c.look = raw, c.tryRead, c.tryLook
	}
	return c, nil
}

func (c *conn) close() {
	c.nc.Close()
	c.release()
}

// release gives the buffer back.
func (c *conn) release() {
	if len(c.buf) == bufferSize {
		buffers.Put((*[bufferSize]byte)(c.buf))
	}
	c.buf, c.r, c.w = nil, 0, 0
}

// send writes the whole request: at once, but for a long body. It returns how many bytes of it left.
func (c *conn) send(x *Exchange) (int, error) {
	p := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(p)
	head := x.appendHead(p[:0])
	if len(head)+len(x.Body) <= bufferSize {
		return c.nc.Write(append(head, x.Body...))
	}
	n, err := c.nc.Write(head)
	if err == nil {
		var more int
		more, err = c.nc.Write(x.Body)
		n += more
	}
	return n, err
}

// alive reports whether a connection that was kept can be used: its server has neither closed it nor said anything.
func (c *conn) alive() bool {
	if c.raw == nil {
		return false
	}
	c.live = false
	return c.raw.Read(c.look) == nil && c.live
}

// fill reads more, at least one byte. What stands in the buffer stays.
func (c *conn) fill() error {
	switch {
	case c.r == c.w:
		c.release()
	case c.w == len(c.buf):
		c.room()
	}
	if c.raw == nil {
		if c.buf == nil {
			c.buf = buffers.Get().(*[bufferSize]byte)[:]
		}
		for {
			n, err := c.nc.Read(c.buf[c.w:])
			if c.w += n; n > 0 {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	if err := c.raw.Read(c.read); err != nil {
		return err
	}
	return c.got
}

// room makes some after a buffer's end.
func (c *conn) room() {
	to := c.buf
	if c.w-c.r > len(c.buf)/2 {
		to = make([]byte, 2*len(c.buf))
	}
	n := copy(to, c.buf[c.r:c.w])
	if len(to) != len(c.buf) {
		c.release()
	}
	c.buf, c.r, c.w = to, 0, n
}

// took notes the outcome of a read from the socket.
func (c *conn) took(n int, err error) {
	c.w += max(n, 0)
	switch c.got = err; {
	case err == nil && n == 0:
		c.got = io.EOF
	case err != nil:
		c.got = &net.OpError{Op: "read", Net: "tcp", Addr: c.nc.RemoteAddr(), Err: err}
	}
}
