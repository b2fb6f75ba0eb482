package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/http1"
	"github.com/pawl-go/pawl/llm"
)

// exchange sends the request one time. h stands in place of the Client's header; nil: it does not.
func (c *Client) exchange(ctx context.Context, u *url.URL, h http.Header, body []byte, whole bool, out *Emitter, decoder func(*Emitter) Decoder) error {
	if c.HTTP == nil && c.isPlain(u, h) {
		return c.direct(ctx, u, h, body, whole, out, decoder)
	}
	if h == nil {
		h = c.Header
	}
	t := c.Timeouts.limits()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var w watch
	w.begin(cancel, t.FirstByte)
	defer w.stop()
	open, end := lend(body)
	defer end()
	r := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: open(), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return open(), nil },
	}).WithContext(ctx)
	carrier := c.HTTP
	if carrier == nil {
		carrier = c.carrier().std
	} else {
		r.Header = h.Clone() // a RoundTripper of the caller's may write into the headers
	}
	res, err := carrier.RoundTrip(r)
	if own := (*llm.ProviderError)(nil); errors.As(err, &own) { // a RoundTripper of the caller's says itself what it means
		e := *own
		e.Provider = c.Provider
		return &e
	}
	if err != nil {
		return c.failed(context.Cause(ctx), llm.CodeNetwork, err)
	}
	defer res.Body.Close()
	reply := w.read(res.Body, t.Silence)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		all, _ := io.ReadAll(io.LimitReader(reply, 1<<20))
		return c.ToError(res.StatusCode, res.Header, all, time.Now())
	}
	err = Read(c.Provider, reply, res.ContentLength, whole, decoder(out))
	if err != nil && err != ErrStopped && ctx.Err() != nil {
		return c.failed(context.Cause(ctx), llm.CodeStream, err)
	}
	return err
}

// direct is exchange over a connection of our own.
func (c *Client) direct(ctx context.Context, u *url.URL, h http.Header, body []byte, whole bool, out *Emitter, decoder func(*Emitter) Decoder) error {
	var x struct {
		http1.Exchange
		watch watch
	}
	var err error
	if x.Header, err = c.lines(h); err != nil {
		return &llm.ProviderError{Provider: c.Provider, Code: llm.CodeInvalidRequest, Message: err.Error()}
	}
	x.Host, x.Target, x.Body = u.Host, u.RequestURI(), body
	t := c.Timeouts.limits()
	x.watch.begin(x.Abort, t.FirstByte)
	defer x.watch.stop()
	if err := c.carrier().plain.Do(ctx, &x.Exchange); err != nil {
		return c.failed(nil, llm.CodeNetwork, err)
	}
	defer x.Close()
	reply := x.watch.read(&x.Exchange, t.Silence)
	if x.Status > 299 {
		all, _ := io.ReadAll(io.LimitReader(reply, 1<<20))
		return c.ToError(x.Status, x.Head(), all, time.Now())
	}
	err = Read(c.Provider, reply, x.Length, whole, decoder(out))
	if cause := x.Aborted(); err != nil && err != ErrStopped && cause != nil {
		return c.failed(cause, llm.CodeStream, err)
	}
	return err
}

// failed is the error of an exchange that err ended. cause may say that it was a timeout; nil: it says nothing.
func (c *Client) failed(cause error, code llm.Code, err error) error {
	var late *timeoutError
	if errors.As(cause, &late) {
		err = late
	}
	var t interface{ Timeout() bool }
	if errors.As(err, &t) && t.Timeout() {
		code = llm.CodeTimeout
	}
	return &llm.ProviderError{Provider: c.Provider, Code: code, Message: err.Error(), Retryable: true, Err: err}
}

// plain remembers what a Client's requests, which go to one host with one header, have in common.
type plain struct {
	once  sync.Once
	host  string
	fits  bool   // it is reached over connections of our own
	lines []byte // the Client's header, as it is sent
	err   error  // of a header that cannot be sent
}

// isPlain reports whether a request goes over a connection of our own. own is a header in place of the Client's; nil: there is none.
func (c *Client) isPlain(u *url.URL, own http.Header) bool {
	p := &c.plain
	p.once.Do(func() {
		p.host, p.fits = u.Host, isPlain(u, c.Header)
		p.lines, p.err = http1.AppendHeader(nil, c.Header)
	})
	if p.host != u.Host {
		return isPlain(u, c.Header) && (own == nil || http1.Fits(u, own))
	}
	return p.fits && (own == nil || http1.Fits(u, own))
}

func isPlain(u *url.URL, h http.Header) bool {
	return http1.Fits(u, h) && !proxied(&http.Request{URL: u})
}

// lines returns the header of a request as it is sent.
func (c *Client) lines(own http.Header) ([]byte, error) {
	if own == nil {
		return c.plain.lines, c.plain.err
	}
	return http1.AppendHeader(nil, own)
}
