// Package http1 posts bodies over plain HTTP/1.1, to the servers of this machine and its network: an Ollama, a vLLM, a gateway on loopback. It
// does the same work as net/http with less of it, since it knows what it is for: one POST with its whole body at hand, answered by one body that the
// caller reads.
//
//	x := &http1.Exchange{Host: u.Host, Target: u.RequestURI(), Header: lines, Body: body}
//	if err := transport.Do(ctx, x); err != nil { … }
//	defer x.Close()
//	io.ReadAll(x) // x.Status, x.Length
//
// A request leaves in one write (a long one in two) from the caller's goroutine, and the caller's goroutine reads the answer: a connection has no goroutine of its own, and
// while it waits it holds no buffer. Connections are kept and used again once their answer was read to its end, and looked at before that: one that
// the server has closed meanwhile, or on which something stands that nobody asked for, is not used. A request is sent a second time only if nothing of it was
// written to the first connection.
//
// What an answer says of its length is read strictly. Where two readings are possible (two lengths, a length beside chunks, folded or malformed lines) the
// answer is refused and its connection closed; net/http accepts some of these. The other way round there is nothing: what net/http refuses is refused here.
//
// Encrypted addresses, HTTP/2, proxies and systems without unix sockets are not its business: see Fits.
package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Transport keeps connections. The zero Transport is ready; it may be used concurrently.
type Transport struct {
	// Dial connects to "host:port". Nil: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	MaxIdle int           // connections that are kept without use; 0: 16384. They cost a descriptor each, and nothing else
	IdleFor time.Duration // for how long; 0: 90 s

	pool pool
}

// Exchange is one request and its answer. Fill in the first group, give it to Transport.Do, and read the answer's body from it: until its end, or
// until Close. It is used once, by one goroutine; Abort alone may come from others.
type Exchange struct {
	Host   string // "127.0.0.1:11434", as in the address; also the Host of the request
	Target string // path and query as they are sent
	Header []byte // lines of AppendHeader; nil: none
	Body   []byte // not read any more when Do returns
	Full   bool   // the answer's header is wanted whatever its status is

	Status int   // of the answer
	Length int64 // of its body; -1: not known before its end

	t     *Transport
	stop  func() bool // of what watches the context
	lines []byte      // the answer's header, kept for Head

	framing  framing
	keep     bool  // the connection may be used again after the body
	half     bool  // the request was not sent to its end
	left     int64 // of the body, or of the chunk
	inChunks bool  // a chunk was begun, so that its line end is still to come
	err      error // what Read returns from now on

	mu     sync.Mutex // for what Abort looks at
	c      *conn      // nil: none yet, or none any more
	dialed context.CancelCauseFunc
	over   bool
	cause  error // of Abort
}

var _ io.ReadCloser = (*Exchange)(nil)

// errAnswer is wrapped by the error of an answer that is none, or can be read in two ways.
var errAnswer = errors.New("the server's answer is not proper HTTP/1.1")

// Fits reports whether a request to u with header h is one for a Transport: http, a host in plain letters, and no header that concerns the connection. Whether a
// proxy is to be asked is for the caller to know.
func Fits(u *url.URL, h http.Header) bool {
	if !sockets || u.Scheme != "http" || u.Host == "" || u.Opaque != "" {
		return false
	}
	for _, c := range []byte(u.Host) {
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte(".-_:[]", c) >= 0) {
			return false
		}
	}
	for _, name := range [...]string{"Connection", "Expect", "Upgrade", "Te", "Trailer", "Transfer-Encoding"} {
		if len(h[name]) > 0 {
			return false
		}
	}
	return true
}

// AppendHeader appends h as the lines of a request's header: all but Host and Content-Length, which Do writes. What no header can hold is an error that says
// where, and not what.
func AppendHeader(dst []byte, h http.Header) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name == "Host" || name == "Content-Length" {
			continue
		}
		if !isToken(name) {
			return dst, fmt.Errorf("invalid header field name %q", name)
		}
		for _, v := range h[name] {
			v = strings.Trim(v, " \t")
			if !isValue(v) {
				return dst, fmt.Errorf("invalid header field value for %q", name)
			}
			dst = append(append(append(append(dst, name...), ": "...), v...), "\r\n"...)
		}
	}
	return dst, nil
}

// Do sends the request and reads the head of the answer. It fails with the cause of a ctx that ends, or of Abort, where that came first.
func (t *Transport) Do(ctx context.Context, x *Exchange) error {
	x.t = t
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if strings.ContainsFunc(x.Target, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("the address has a control character or a space in it")
	}
	if ctx.Done() != nil {
		x.stop = context.AfterFunc(ctx, func() { x.Abort(context.Cause(ctx)) })
	}
	for {
		kept, err := x.connect(ctx)
		if err != nil {
			return x.fail(err)
		}
		n, err := x.c.send(x)
		if err != nil && kept && n == 0 && x.drop() {
			continue // nothing of the request was sent: the server had closed the connection just now
		}
		if err != nil {
			return x.fail(x.early(err))
		}
		return x.fail(x.readHead())
	}
}

// early looks for an answer that came before the whole request was written: a server may refuse a body without reading it.
func (x *Exchange) early(err error) error {
	if x.Aborted() != nil {
		return err
	}
	x.half = true
	x.limit(50 * time.Millisecond)
	if x.readHead() != nil {
		return err
	}
	x.limit(0)
	return nil
}

// limit bounds what is waited for from now on; 0: nothing does.
func (x *Exchange) limit(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.c == nil || x.cause != nil {
		return // an Abort has set it for good
	}
	at := time.Time{}
	if x.c.limited = d > 0; d > 0 {
		at = time.Now().Add(d)
	}
	x.c.nc.SetReadDeadline(at)
}

// connect gives x a connection: one that was kept, or a new one.
func (x *Exchange) connect(ctx context.Context) (kept bool, err error) {
	c := x.t.pool.take(x.Host)
	if kept = c != nil; !kept {
		if c, err = x.dial(ctx); err != nil {
			return false, err
		}
	}
	x.mu.Lock()
	x.c = c
	err = x.cause
	x.mu.Unlock()
	return kept, err
}

func (x *Exchange) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.mu.Lock()
	x.dialed = cancel
	err := x.cause
	x.mu.Unlock()
	if err != nil {
		return nil, err
	}
	dial := x.t.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", address(x.Host))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return newConn(nc, x.Host)
}

// address is host with a port.
func address(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if i == len(host)-1 {
			return host + "80"
		}
		return host
	}
	return host + ":80"
}

// Abort ends an exchange, wherever it is: what goes on with it fails with cause. It does nothing to one that is over, and may be called at any time,
// from any goroutine.
func (x *Exchange) Abort(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause != nil || x.over {
		return
	}
	x.cause = cause
	if x.dialed != nil {
		x.dialed(cause)
	}
	if x.c != nil {
		x.c.nc.SetDeadline(past)
	}
}

var past = time.Unix(1, 0)

// Aborted returns the cause of an Abort that came before the end of the exchange; nil: there was none.
func (x *Exchange) Aborted() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cause
}

// drop lets go of a connection that turned out to be dead, and reports whether the exchange may go on with another one.
func (x *Exchange) drop() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.c.close()
	x.c = nil
	return x.cause == nil
}

// fail ends an exchange for an error, and returns it; nil ends nothing.
func (x *Exchange) fail(err error) error {
	if err == nil {
		return nil
	}
	if cause := x.Aborted(); cause != nil {
		err = cause
	}
	x.end(false)
	x.err = err
	return err
}

// end lets go of the connection: for others, where the answer was read to its end and nothing follows it.
func (x *Exchange) end(whole bool) {
	x.mu.Lock()
	c := x.c
	x.c, x.over = nil, true
	keep := whole && x.keep && !x.half && x.cause == nil
	x.mu.Unlock()
	if x.stop != nil {
		x.stop()
	}
	switch {
	case c == nil:
	case keep && c.r == c.w:
		x.t.pool.put(c, x.t)
	default:
		c.close()
	}
}

// Close ends the exchange. A connection whose answer was not read to its end is closed: what is still to come would have to be waited for.
func (x *Exchange) Close() error {
	if x.err == nil {
		x.err = errors.New("read of a closed body")
	}
	x.end(false)
	return nil
}

// CloseIdle closes the connections that are not in use.
func (t *Transport) CloseIdle() { t.pool.closeIdle(time.Now().Add(time.Hour)) }

// appendHead appends the first lines of the request and its header.
func (x *Exchange) appendHead(dst []byte) []byte {
	dst = append(append(append(dst, "POST "...), x.Target...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(dst, x.Host...), "\r\nContent-Length: "...)
	dst = append(strconv.AppendInt(dst, int64(len(x.Body)), 10), "\r\n"...)
	return append(append(dst, x.Header...), "\r\n"...)
}
