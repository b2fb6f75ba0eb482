//go:build !unix

package http1

// sockets says that a socket can be read without waiting for it.
const sockets = false

func (c *conn) tryRead(uintptr) bool { panic("unreachable: nothing fits") }
func (c *conn) tryLook(uintptr) bool { panic("unreachable: nothing fits") }
