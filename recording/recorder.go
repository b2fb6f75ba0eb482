package recording

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/redact"
)

// Recorder is a RoundTripper that records exchanges. Fill in a literal; no field is required. It
// may be used concurrently. Do not change it after the first request.
type Recorder struct {
	Next http.RoundTripper // sends the requests; nil means http.DefaultTransport

	// Secrets hides secrets in bodies. Nil means that only headers and keys in queries are removed.
	Secrets *redact.Redactor

	mu        sync.Mutex
	exchanges []*Exchange // a nil entry is a request in flight
}

var _ http.RoundTripper = (*Recorder)(nil)

// RoundTrip sends a request, and records the exchange when its response was read or closed.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	next := cmp.Or(r.Next, http.DefaultTransport)
	body, req, err := readBody(req)
	if err != nil {
		return nil, err
	}
	e := Exchange{Request: Request{Method: req.Method, URL: req.URL.String(), Header: lower(req.Header), Body: body}}
	r.mu.Lock()
	at := len(r.exchanges)
	r.exchanges = append(r.exchanges, nil)
	r.mu.Unlock()
	res, err := next.RoundTrip(req)
	if err != nil {
		e.Response.Error = err.Error()
		r.keep(at, e)
		return nil, err
	}

	// The exchange is complete when the caller has read the body, or has given it up.
	e.Response.Status = res.StatusCode
	e.Response.Header = lower(res.Header)
	res.Body = &listened{ReadCloser: res.Body, done: func(b []byte, cut bool) {
		e.Response.Body = b
		e.Response.Cut = cut
		r.keep(at, e)
	}}
	return res, nil
}

// readBody returns the body of a request, and a request that has it still.
func readBody(req *http.Request) (Body, *http.Request, error) {
	if req.Body == nil {
		return nil, req, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, req, err
	}
	if err := req.Body.Close(); err != nil {
		return nil, req, err
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, req, nil
}

func lower(h http.Header) map[string]string {
	out := map[string]string{}
	for name, v := range h {
		out[strings.ToLower(name)] = strings.Join(v, ", ")
	}
	return out
}

func (r *Recorder) keep(at int, e Exchange) {
	e = Scrub(e, r.Secrets)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges[at] = &e
}

// Recording returns the exchanges so far, in the order of the requests, without those in flight.
func (r *Recorder) Recording() *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &Recording{Form: Form, Exchanges: []Exchange{}}
	for _, e := range r.exchanges {
		if e != nil {
			out.Exchanges = append(out.Exchanges, *e)
		}
	}
	return out
}

// listened is a body that is recorded while it is read.
type listened struct {
	io.ReadCloser
	buf  bytes.Buffer
	done func(b []byte, cut bool) // called once; nil after that
}

// Read records the bytes that it reads.
func (l *listened) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.buf.Write(p[:n])
	if err != nil {
		l.endStream(err != io.EOF)
	}
	return n, err
}

// Close ends the body. Bytes that were not read are not recorded.
func (l *listened) Close() error {
	l.endStream(false)
	return l.ReadCloser.Close()
}

func (l *listened) endStream(cut bool) {
	if l.done != nil {
		l.done(bytes.Clone(l.buf.Bytes()), cut)
		l.done = nil
	}
}

// hidden stands where a key was.
const hidden = "[redacted]"

// storedHeaders are the headers that describe a body or its use. All others may identify the
// sender.
var storedHeaders = []string{
	"accept",
	"anthropic-beta",
	"anthropic-version",
	"content-type",
	"openai-beta",
	"retry-after",
	"retry-after-ms",
}

// keyNames are parts of names of query parameters whose values are secret.
var keyNames = []string{"key", "token", "secret", "password", "signature", "sig", "credential", "auth"}

// address is a URL without keys.
func address(u *url.URL) string {
	v := *u
	// A recording is stored with tests, and often published.
	v.User = nil
	v.Fragment = ""
	if v.RawQuery != "" {
		q := v.Query()
		for name, values := range q {
			secret := slices.ContainsFunc(keyNames,
				func(part string) bool { return strings.Contains(strings.ToLower(name), part) })
			for i := range values {
				if secret {
					values[i] = hidden
				}
			}
		}
		v.RawQuery = q.Encode() // sorted
	}
	return v.String()
}

// Scrub returns e without secrets, as a Recorder records it. s may be nil.
func Scrub(e Exchange, s *redact.Redactor) Exchange {
	if u, err := url.Parse(e.Request.URL); err == nil {
		e.Request.URL = address(u)
	}
	e.Request.URL = s.String(e.Request.URL)
	e.Request.Header = only(e.Request.Header, s)
	e.Request.Body = clean(e.Request.Body, s)
	e.Response.Header = only(e.Response.Header, s)
	e.Response.Body = clean(e.Response.Body, s)
	e.Response.Error = s.String(e.Response.Error)
	return e
}

func only(h map[string]string, s *redact.Redactor) map[string]string {
	var out map[string]string
	for _, name := range storedHeaders {
		if v, ok := h[name]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = s.String(v)
		}
	}
	return out
}

// clean returns a body without secrets. A body that has none is returned unchanged, byte for byte.
func clean(b Body, s *redact.Redactor) Body {
	if s == nil || len(b) == 0 {
		return b
	}
	if text := s.String(string(b)); text != string(b) {
		return Body(text)
	}
	return b
}
