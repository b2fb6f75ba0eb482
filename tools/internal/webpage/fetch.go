// Package webpage fetches one address and makes text of what it gives, within bounds of time and size.
//
//	f := &webpage.Fetcher{Transport: guard}
//	res, err := f.Fetch(ctx, webpage.Request{URL: "https://example.com/"})
//	page := webpage.Read(res)
//
// Whether an address may be fetched is the Transport's to say, for each redirect too: see package netguard. What is fetched is hostile: bodies
// are bounded after they are decompressed, pages by their number of elements, and what a caller's headers say is not carried to another host.
package webpage

import (
	"bytes"
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
)

const (
	defaultTimeout = 15 * time.Second
	defaultMaxBody = 1 << 20
	maxRedirects   = 10
	userAgent      = "pawl (+https://github.com/pawl-go/pawl)"
)

// Fetcher fetches. Its zero value fetches nothing: it has no Transport. It may be used concurrently.
type Fetcher struct {
	Transport http.RoundTripper // what may be reached, and how
	Timeout   time.Duration     // of a whole fetch, redirects and body included; 0: 15 s
	MaxBody   int64             // bytes, after decompression, that are read of a body; 0: 1 MiB
	UserAgent string            // "": pawl's
}

// Request is what to fetch.
type Request struct {
	Method string // "": GET
	URL    string // http or https; a name with letters beyond ASCII is turned into its ASCII form
	Header http.Header
	Body   string
}

// Response is what came.
type Response struct {
	URL       string // where it came from, after redirects
	Status    int
	Header    http.Header
	Type      string // the media type, without parameters; sniffed where the server says none or application/octet-stream
	Charset   string // as the server says it; "": it does not
	Body      []byte
	Truncated bool // there was more than MaxBody
	Redirects []string
}

// Error is a fetch that failed, in words for whoever asked.
type Error struct {
	Text string
	Err  error // what lies behind it; may be nil
}

// Error returns the words.
func (e *Error) Error() string { return e.Text }

// Unwrap returns what lies behind it.
func (e *Error) Unwrap() error { return e.Err }

func failed(err error, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), err}
}

// Fetch sends the request and reads the answer, whatever its status. The error is an *Error, or that of a ctx that has ended.
func (f *Fetcher) Fetch(ctx context.Context, q Request) (*Response, error) {
	target, err := parse(q.URL)
	if err != nil {
		return nil, err
	}
	timeout := f.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body io.Reader
	if q.Body != "" {
		body = strings.NewReader(q.Body)
	}
	req, err := http.NewRequestWithContext(within, q.Method, target.String(), body)
	if err != nil {
		return nil, failed(err, "the request cannot be made: %v", err)
	}
	for name, values := range q.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if agent := f.UserAgent; req.Header.Get("User-Agent") == "" {
		if agent == "" {
			agent = userAgent
		}
		req.Header.Set("User-Agent", agent)
	}
	out := new(Response)
	client := &http.Client{Transport: f.Transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		return f.follow(out, next, via)
	}}
	res, err := client.Do(req)
	if err != nil {
		return nil, explain(ctx, within, err, target, timeout)
	}
	defer res.Body.Close()
	out.URL, out.Status, out.Header = res.Request.URL.String(), res.StatusCode, res.Header
	if err := out.read(res, f.MaxBody); err != nil {
		return nil, explain(ctx, within, err, target, timeout)
	}
	return out, nil
}

// parse reads an address as a person would write it.
func parse(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil {
		return nil, failed(err, "%q is no address; one looks like https://example.com/page", clip(text))
	}
	if u.Scheme == "" || u.Host == "" {
		return nil, failed(nil, "%q is no whole address; one begins with https:// or http:// and a host", clip(text))
	}
	u.Fragment, u.RawFragment = "", ""
	if host := u.Hostname(); strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return nil, failed(err, "%q is no host name", clip(host))
		}
		if port := u.Port(); port != "" {
			ascii += ":" + port
		}
		u.Host = ascii
	}
	return u, nil
}

// follow says whether a redirect is followed, and takes from a request to another place what was meant for the first.
func (f *Fetcher) follow(out *Response, next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= maxRedirects {
		return failed(nil, "it redirects more than %d times; the last time to %s", maxRedirects-1, next.URL.Redacted())
	}
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme == "http" {
		return failed(nil, "it redirects from https to http, to %s; ask for that address itself if you want it", next.URL.Redacted())
	}
	if next.URL.Scheme != first.URL.Scheme && first.URL.Scheme != "http" || next.URL.Host != first.URL.Host {
		for name := range next.Header {
			if name != "User-Agent" && name != "Accept" && name != "Accept-Language" {
				next.Header.Del(name)
			}
		}
		if next.Body != nil && next.Body != http.NoBody {
			return failed(nil, "it redirects to another host, %s, and what was sent is not sent there", next.URL.Host)
		}
	}
	next.Header.Del("Referer")
	out.Redirects = append(out.Redirects, next.URL.String())
	return nil
}

// read takes the body in, decompressed, up to its bound.
func (r *Response) read(res *http.Response, limit int64) error {
	if limit <= 0 {
		limit = defaultMaxBody
	}
	body := io.Reader(res.Body)
	switch coding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return failed(err, "the body is said to be gzip, and is not")
		}
		body = z
	case "deflate":
		body = inflate(body)
	default:
		return failed(nil, "the body is compressed as %q, which is not read here", clip(coding))
	}
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return fmt.Errorf("after %d bytes of the body: %w", len(b), err)
	}
	if int64(len(b)) > limit {
		b, r.Truncated = b[:limit], true
	}
	r.Body = b
	said, params, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	r.Type, r.Charset = said, params["charset"]
	if said == "" || said == "application/octet-stream" || said == "unknown/unknown" {
		r.Type, _, _ = mime.ParseMediaType(http.DetectContentType(b))
	}
	return nil
}

// inflate reads what is called deflate: zlib by the standard, bare deflate by many servers.
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

// explain words an error of the transport. The outer ctx ending is passed on: the fetch was given up, it did not fail.
func explain(ctx, within context.Context, err error, target *url.URL, timeout time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if within.Err() != nil {
		return failed(err, "%s did not answer in full within %v", target.Host, timeout)
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var refused interface{ Refusal() string }
	if errors.As(err, &refused) {
		return failed(err, "%s", refused.Refusal())
	}
	return failed(err, "%s cannot be fetched: %s", target.Host, plain(err))
}

// plain says what is wrong with a connection without an address of the network in it.
func plain(err error) string {
	text := err.Error()
	for _, known := range []string{"no such host", "connection refused", "connection reset", "certificate", "no route to host", "network is unreachable", "EOF", "i/o timeout",
		"unsupported protocol", "malformed HTTP", "too many", "exceeded"} {
		if strings.Contains(text, known) {
			if known == "certificate" {
				return "its certificate is not trusted"
			}
			if known == "EOF" {
				return "the connection ended before the answer did"
			}
			return known
		}
	}
	return "the connection failed"
}

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
