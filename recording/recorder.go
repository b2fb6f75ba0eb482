package recording

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
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
	e.Response.Status, e.Response.Header = res.StatusCode, lower(res.Header)
	res.Body = &listened{ReadCloser: res.Body, done: func(b []byte, cut bool) {
		e.Response.Body, e.Response.Cut = b, cut
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
		l.end(err != io.EOF)
	}
	return n, err
}

// Close ends the body. Bytes that were not read are not recorded.
func (l *listened) Close() error {
	l.end(false)
	return l.ReadCloser.Close()
}

func (l *listened) end(cut bool) {
	if l.done != nil {
		l.done(bytes.Clone(l.buf.Bytes()), cut)
		l.done = nil
	}
}
