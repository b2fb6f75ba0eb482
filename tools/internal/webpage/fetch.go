// Package webpage fetches one address and converts the response to text, within limits of time and
// size.
//
//	f := &webpage.Fetcher{Transport: guard}
//	res, err := f.Fetch(ctx, webpage.Request{URL: "https://example.com/"})
//	page := webpage.Read(res)
//
// The Transport decides whether an address may be fetched, for each redirect as well: see package
// netguard. Responses are treated as hostile: bodies are limited after decompression, pages by
// their number of elements, and the caller's headers are not sent to another host.
package webpage

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/mediatype"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/tools/internal/sending"
)

const (
	defaultTimeout = 15 * time.Second
	defaultMaxBody = 1 << 20
	maxRedirects   = 10
	userAgent      = "pawl (+https://github.com/pawl-go/pawl)"
)

// Fetcher fetches addresses. Its zero value fetches nothing, because Transport is required. It is
// safe for concurrent use.
type Fetcher struct {
	Transport http.RoundTripper // decides which hosts are reached, and how
	// Timeout limits a whole fetch, including redirects and body. 0 means 15 s.
	Timeout   time.Duration
	MaxBody   int64  // limit in bytes for a body after decompression; 0 means 1 MiB
	UserAgent string // empty means pawl's user agent
}

// Request is the request of a fetch.
type Request struct {
	Method string // empty means GET
	// URL has the scheme http or https. A host name with letters beyond ASCII is converted to its
	// ASCII form.
	URL    string
	Header http.Header
	Body   string
}

// Response is the response of a fetch.
type Response struct {
	URL    string // final address, after redirects
	Status int
	Header http.Header
	// Type is the media type without parameters. It is detected if the server sends none or
	// application/octet-stream.
	Type      string
	Charset   string // as stated by the server; empty means not stated
	Body      []byte
	Truncated bool // the body was longer than MaxBody
	Redirects []string
}

// Error is a failed fetch, described for the reader of the result.
type Error struct {
	Text string
	Err  error // the cause; may be nil
	// Certainty says how far the request came. Empty means that it could not be made.
	Certainty delivery.Certainty
	// Down means that the host was away, or did not respond. It is not set for a request that was
	// refused here.
	Down bool
}

// Call returns the error of a call whose fetch failed.
func (e *Error) Call() *delivery.Error {
	c := delivery.NewError(cmp.Or(e.Certainty, delivery.NotSent), e.Text, e.Err)
	if e.Err == nil {
		c.Err = e
	}
	return c
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func failed(err error, format string, args ...any) *Error {
	return &Error{Text: fmt.Sprintf(format, args...), Err: err}
}

// Fetch sends the request once and reads the response of any status. The error is an *Error. If ctx
// has ended, its cause is the cause of ctx.
func (f *Fetcher) Fetch(ctx context.Context, q Request) (*Response, error) {
	target, err := parse(q.URL)
	if err != nil {
		return nil, err
	}
	timeout := f.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}

	// The watch sees whether the request left this machine, which the error alone does not say.
	watched, sent := sending.Watch(ctx)
	within, cancel := context.WithTimeout(watched, timeout)
	defer cancel()
	fault := func(err error) error {
		e := *explain(ctx, within, err, target, timeout)
		// Whether the request was sent decides whether a write may be repeated.
		e.Certainty = cmp.Or(e.Certainty, sent.Certainty())
		return &e
	}

	req, err := f.request(within, q, target)
	if err != nil {
		return nil, failed(err, "the request cannot be made: %v", err)
	}
	out := new(Response)
	client := &http.Client{
		Transport: f.Transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			return f.follow(out, next, via)
		},
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fault(err)
	}
	defer res.Body.Close()

	out.URL = res.Request.URL.String()
	out.Status = res.StatusCode
	out.Header = res.Header
	if err := out.read(res, f.MaxBody); err != nil {
		return nil, fault(err)
	}
	return out, nil
}

// request returns the request to target.
func (f *Fetcher) request(ctx context.Context, q Request, target *url.URL) (*http.Request, error) {
	var body io.Reader
	if q.Body != "" {
		body = strings.NewReader(q.Body)
	}
	req, err := http.NewRequestWithContext(ctx, q.Method, target.String(), body)
	if err != nil {
		return nil, err
	}

	for name, values := range q.Header {
		name = http.CanonicalHeaderKey(name)
		if name == "Idempotency-Key" {
			name = "idempotency-key" // net/http repeats requests with the usual form
		}
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", cmp.Or(f.UserAgent, userAgent))
	}
	return req, nil
}

// parse parses an address as a person would write it.
func parse(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil {
		return nil, failed(err, "%q is not an address; an address looks like https://example.com/page",
			text.Clip(address, 200))
	}
	if u.Scheme == "" || u.Host == "" {
		return nil, failed(nil, "%q is not a complete address; it begins with https:// or http:// and a host",
			text.Clip(address, 200))
	}
	u.Fragment = ""
	u.RawFragment = ""

	// Rules about hosts compare the ASCII form.
	if host := u.Hostname(); strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return nil, failed(err, "%q is no host name", text.Clip(host, 200))
		}
		if port := u.Port(); port != "" {
			ascii += ":" + port
		}
		u.Host = ascii
	}
	return u, nil
}

// follow decides whether a redirect is followed. For another host, it removes the headers that were
// meant for the first.
func (f *Fetcher) follow(out *Response, next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= maxRedirects {
		return failed(nil, "it redirects more than %d times; the last time to %s", maxRedirects-1, next.URL.Redacted())
	}
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme == "http" {
		return failed(nil, "it redirects from https to http, to %s; ask for that address itself if you want it",
			next.URL.Redacted())
	}

	downgraded := next.URL.Scheme != first.URL.Scheme && first.URL.Scheme != "http"
	if downgraded || next.URL.Host != first.URL.Host {
		for name := range next.Header {
			if name != "User-Agent" && name != "Accept" && name != "Accept-Language" {
				delete(next.Header, name)
			}
		}
		// Only 307 and 308 repeat a body: the first host has not done the work.
		if next.Body != nil && next.Body != http.NoBody {
			e := failed(nil, "it redirects to another host, %s, and what was sent is not sent there", next.URL.Host)
			e.Certainty = delivery.Refused
			return e
		}
	}
	next.Header.Del("Referer")
	out.Redirects = append(out.Redirects, next.URL.String())
	return nil
}

// read reads the decompressed body up to the limit.
func (r *Response) read(res *http.Response, limit int64) error {
	if limit <= 0 {
		limit = defaultMaxBody
	}
	body, err := decompressed(res)
	if err != nil {
		return err
	}

	// The limit holds after decompression, where a small body can become a huge one.
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return fmt.Errorf("after %d bytes of the body: %w", len(b), err)
	}
	r.Body = b
	if int64(len(b)) > limit {
		r.Body = b[:limit]
		r.Truncated = true
	}
	r.setType(res)
	return nil
}

// decompressed returns the body without its coding.
func decompressed(res *http.Response) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding")))
	switch coding {
	case "", "identity":
		return res.Body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			return nil, failed(err, "the body is declared as gzip, and is not")
		}
		return z, nil
	case "deflate":
		return inflate(res.Body), nil
	}
	return nil, failed(nil, "the body is compressed as %q, which is not supported", text.Clip(coding, 200))
}

// setType sets the media type and the charset of the body.
func (r *Response) setType(res *http.Response) {
	said, params, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	r.Type = mediatype.Of(r.Body, said)
	r.Charset = params["charset"]
	if r.Type == "" || r.Type == mediatype.Octets || r.Type == "unknown/unknown" {
		r.Type, _, _ = mime.ParseMediaType(http.DetectContentType(r.Body))
	}
}

// inflate reads the encoding deflate: zlib according to the standard, raw deflate from many
// servers.
func inflate(r io.Reader) io.Reader {
	var head [2]byte
	n, _ := io.ReadFull(r, head[:])
	all := io.MultiReader(bytes.NewReader(head[:n]), r)
	if n == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		if z, err := zlib.NewReader(all); err == nil {
			return z
		}
	}
	return flate.NewReader(all)
}

// refusal is an error of a transport that refuses an address (package netguard).
type refusal interface {
	Refusal() string
}

// explain describes an error of the transport. If the outer ctx has ended, its cause is the cause
// of the error: the fetch was cancelled and did not fail.
func explain(ctx, within context.Context, err error, target *url.URL, timeout time.Duration) *Error {
	if ctx.Err() != nil {
		return failed(context.Cause(ctx), "the request to %s was cancelled", target.Host)
	}
	if within.Err() != nil {
		return away(err, "%s did not answer in full within %v", target.Host, timeout)
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	var refused refusal
	if errors.As(err, &refused) {
		return failed(err, "%s", refused.Refusal())
	}
	return away(err, "%s cannot be fetched: %s", target.Host, plain(err))
}

// away returns the error of a fetch from a host that is away.
func away(err error, format string, args ...any) *Error {
	e := failed(err, format, args...)
	e.Down = true
	return e
}

// plain describes the fault of a connection without network addresses.
func plain(err error) string {
	text := err.Error()
	for _, known := range knownFaults {
		switch {
		case !strings.Contains(text, known):
		case known == "certificate":
			return "its certificate is not trusted"
		case known == "EOF":
			return "the connection ended before the answer did"
		default:
			return known
		}
	}
	return "the connection failed"
}

// knownFaults are what an error of a connection can say that a model understands.
var knownFaults = []string{
	"no such host", "connection refused", "connection reset", "certificate", "no route to host",
	"network is unreachable", "EOF", "i/o timeout", "unsupported protocol", "malformed HTTP", "too many", "exceeded",
}
