package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// exchange sends the request once. h replaces the Client's header; nil means the Client's header.
func (c *Client) exchange(ctx context.Context, method string, u *url.URL, h http.Header, body *Body, whole bool,
	out *Emitter, decoder func(*Emitter) Decoder) error {
	if h == nil {
		h = c.Header
	}
	if err := checkHeader(h); err != nil {
		return &llm.ProviderError{Provider: c.Provider, Code: llm.CodeInvalidRequest, Message: err.Error(),
			Err: errHeader}
	}
	t := c.Timeouts.limits()
	// The watch cancels with the timeout that has passed as the cause, which becomes the error.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var w watch
	w.begin(cancel, t.FirstByte)
	defer w.stop()
	sent, err := body.reader()
	if err != nil {
		return err // the sender has released it
	}
	// http.NewRequest takes the address as text, and would parse it again for each request.
	r := (&http.Request{
		Method: method, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: sent, ContentLength: int64(len(body.bytes)),
		GetBody: body.reader,
	}).WithContext(ctx)
	var transport http.RoundTripper
	if c.HTTP == nil {
		transport = c.transport()
	} else {
		transport = c.HTTP
		r.Header = h.Clone() // the program's RoundTripper may write into the headers
	}
	res, err := transport.RoundTrip(r)
	// A RoundTripper of the program may return a ProviderError of its own.
	if own, ok := errors.AsType[*llm.ProviderError](err); ok {
		e := *own
		e.Provider = c.Provider
		return &e
	}
	if err != nil {
		return c.failed(context.Cause(ctx), llm.CodeNetwork, err)
	}
	defer res.Body.Close()
	reply, err := decode(w.read(res.Body, t.Silence), res.Header.Get("Content-Encoding"))
	if err != nil {
		return c.undecoded(context.Cause(ctx), err)
	}
	// The length is of the encoded body.
	size := res.ContentLength
	if res.Header.Get("Content-Encoding") != "" {
		size = -1
	}
	// An error page can have any size. A mebibyte contains every error that an API sends.
	if res.StatusCode < 200 || res.StatusCode > 299 {
		all, _ := io.ReadAll(io.LimitReader(reply, 1<<20))
		return out.readBadCall(c.ToError(res.StatusCode, res.Header, all, time.Now()))
	}
	err = out.readBadCall(Read(c.Provider, reply, size, whole, decoder(out)))
	// A read that fails because of a timeout reports only a closed connection.
	if err != nil && err != ErrStopped && ctx.Err() != nil {
		return c.failed(context.Cause(ctx), llm.CodeStream, err)
	}
	return err
}

// failed returns the error of an exchange that ended with err. cause is the cause of its context;
// nil means that the context did not end.
func (c *Client) failed(cause error, code llm.Code, err error) error {
	if late, ok := errors.AsType[*timeoutError](cause); ok {
		err = late
	}
	var t interface{ Timeout() bool }
	if errors.As(err, &t) && t.Timeout() {
		code = llm.CodeTimeout
	}
	return &llm.ProviderError{Provider: c.Provider, Code: code, Message: err.Error(), Retryable: true, Err: err}
}

// errHeader is the cause of an error for a request that was not sent because of its headers.
var errHeader = errors.New("a header cannot be sent")

// checkHeader returns an error if a header cannot be sent, for example because of a line break in
// a key. net/http refuses such a header too, but with an error that looks like a network failure.
func checkHeader(h http.Header) error {
	for name, values := range h {
		if !isToken(name) {
			return fmt.Errorf("%q is not a name of a header", name)
		}
		for _, v := range values {
			for i := range len(v) {
				if b := v[i]; b < ' ' && b != '\t' || b == 0x7f {
					return fmt.Errorf("the value of header %s has a control character at byte %d", name, i)
				}
			}
		}
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, Alphanumeric+"!#$%&'*+-.^_`|~") == ""
}

// shared is the transport of all Clients with the default connect timeout and no RoundTripper.
var shared = sync.OnceValue(func() *http.Transport { return newTransport(connectTimeout, dial) })

// Transport returns the shared transport, for programs that wrap it.
func Transport() http.RoundTripper { return shared() }

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 30 * time.Second}
	return d.DialContext(ctx, network, address)
}

// transport returns the transport of a Client without a RoundTripper.
func (c *Client) transport() *http.Transport {
	connect := c.Timeouts.limits().Connect
	if connect == connectTimeout {
		return shared()
	}
	c.once.Do(func() { c.own = newTransport(connect, dial) })
	return c.own
}

// newTransport returns a transport that keeps an idle connection for each open run. The default
// transport keeps two per host, which costs a third more CPU under load.
func newTransport(connect time.Duration, dial func(ctx context.Context, network, address string) (net.Conn,
	error)) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if connect > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, connect, &timeoutError{"no connection within " + connect.String()})
				defer cancel()
			}
			conn, err := dial(ctx, network, address)
			// The dialer reports a cancelled context. The cause says which limit it was.
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return conn, err
		},
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4096,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   connect,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       16 << 10, // most requests need one write
		ReadBufferSize:        16 << 10, // a streamed reply needs few reads
		DisableCompression:    true,     // replies are small, and compressed streams arrive late
	}
}
