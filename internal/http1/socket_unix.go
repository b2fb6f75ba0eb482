//go:build unix

package http1

import "syscall"

// sockets says that a socket can be read without waiting for it.
const sockets = true

// tryRead reads from a socket if there is something, and else reports false, so that it is waited for: without a buffer.
func (c *conn) tryRead(fd uintptr) bool {
	none := c.buf == nil
	if none {
		c.buf = buffers.Get().(*[bufferSize]byte)[:]
	}
	n, err := readNow(fd, c.buf[c.w:])
	if err == syscall.EAGAIN {
		if none {
			c.release()
		}
		return false
	}
	c.took(n, err)
	return true
}

// tryLook looks whether there is nothing to read, as it should be with a connection that nobody uses. It never waits.
func (c *conn) tryLook(fd uintptr) bool {
	var b [1]byte
	_, err := readNow(fd, b[:])
	c.live = err == syscall.EAGAIN
	return true
}

func readNow(fd uintptr, p []byte) (n int, err error) {
	for {
		if n, err = syscall.Read(int(fd), p); err != syscall.EINTR {
			return n, err
		}
	}
}
