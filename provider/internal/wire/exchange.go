package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// exchange sends the request once. h replaces the Client's header; nil means the Client's header.
func (c *Client) exchange(ctx context.Context, u *url.URL, h http.Header, body []byte, whole bool, out *Emitter,
	decoder func(*Emitter) Decoder) error {
	if h == nil {
		h = c.Header
	}
	if err := checkHeader(h); err != nil {
		return &llm.ProviderError{Provider: c.Provider, Code: llm.CodeInvalidRequest, Message: err.Error()}
	}
	t := c.Timeouts.limits()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var w watch
	w.begin(cancel, t.FirstByte)
	defer w.stop()
	r := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: reader(body), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return reader(body), nil },
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
	if own := (*llm.ProviderError)(nil); errors.As(err, &own) {
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

// reader returns a reader of body. net/http recognizes its type and writes head and body together.
func reader(body []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }

// failed returns the error of an exchange that ended with err. cause is the cause of its context;
// nil means that the context did not end.
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
	for i := range len(s) {
		switch b := s[i]; {
		case '0' <= b && b <= '9', 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
		case strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
