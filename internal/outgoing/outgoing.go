// Package outgoing calls a function before the first byte of an HTTP request leaves the process.
package outgoing

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
)

// Before returns a context in which f is called when a request has a connection, before its first
// byte. If f returns an error, the context ends with that error as its cause, and nothing of the
// request is sent. f is called once for each connection that the request gets, such as for a
// redirect, and must be safe for concurrent use. The context ends with ctx.
func Before(ctx context.Context, f func() error) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(to httptrace.GotConnInfo) {
		if err := f(); err != nil {
			end(err)
			closeUnshared(to.Conn)
		}
	}})
}

// closeUnshared closes a connection of HTTP/1, to which net/http writes a request before it looks
// at the context. In HTTP/2, which looks first, other requests use the connection.
func closeUnshared(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok && t.ConnectionState().NegotiatedProtocol == "h2" {
		return
	}
	_ = c.Close() // the write then fails
}
