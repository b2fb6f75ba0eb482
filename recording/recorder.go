package recording

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/redact"
)

// Recorder is a RoundTripper that keeps what passes. Fill in a literal; nothing is required. It may be used concurrently, and must not be changed meanwhile.
type Recorder struct {
	Next    http.RoundTripper // asks; nil: http.DefaultTransport
	Secrets *redact.Redactor  // hides what must not be kept of bodies; nil: nothing but headers and keys in queries

	mu   sync.Mutex
	kept []*Exchange // nil: the request is under way
}

var _ http.RoundTripper = (*Recorder)(nil)

// RoundTrip asks, and keeps the exchange when its answer was read, or let go of.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	next := r.Next
	if next == nil {
		next = http.DefaultTransport
	}
	body, req, err := readBody(req)
	if err != nil {
		return nil, err
	}
	e := Exchange{Request: Request{Method: req.Method, URL: req.URL.String(), Header: lower(req.Header), Body: body}}
	r.mu.Lock()
	at := len(r.kept)
	r.kept = append(r.kept, nil)
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
	r.kept[at] = &e
}

// Recording returns what was kept so far, in the order of the requests. What is under way is left out.
func (r *Recorder) Recording() *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &Recording{Form: Form, Exchanges: []Exchange{}}
	for _, e := range r.kept {
		if e != nil {
			out.Exchanges = append(out.Exchanges, *e)
		}
	}
	return out
}

// listened is a body that is kept while it is read.
type listened struct {
	io.ReadCloser
	buf  bytes.Buffer
	done func(b []byte, cut bool) // called once; nil: it was
}

// Read keeps what it reads.
func (l *listened) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.buf.Write(p[:n])
	if err != nil {
		l.end(err != io.EOF)
	}
	return n, err
}

// Close ends the body; what was not read is not kept.
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
