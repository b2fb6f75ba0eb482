package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// copied is up to which length a body is copied for a RoundTripper. net/http writes headers and body at once where it knows the body's reader, which one that
// can be taken back is not; a longer body takes several writes anyway.
const copied = 16 << 10

// lend gives body to a RoundTripper, which may go on to read it when the exchange is over: open returns a reader of it, each time from its
// beginning, and end ends them all, so that body is the caller's again.
func lend(body []byte) (open func() io.ReadCloser, end func()) {
	if len(body) <= copied {
		body = bytes.Clone(body)
		return func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }, func() {}
	}
	l := &loan{body: body}
	return func() io.ReadCloser { return &borrowed{loan: l} }, l.end
}

// loan is a body that is lent until end.
type loan struct {
	mu   sync.Mutex
	body []byte
	over bool
}

func (l *loan) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body, l.over = nil, true
}

var errOver = errors.New("the exchange is over")

// borrowed reads a loan.
type borrowed struct {
	loan *loan
	at   int
}

func (r *borrowed) Read(p []byte) (int, error) {
	r.loan.mu.Lock()
	defer r.loan.mu.Unlock()
	switch {
	case r.loan.over:
		return 0, errOver
	case r.at == len(r.loan.body):
		return 0, io.EOF
	}
	n := copy(p, r.loan.body[r.at:])
	r.at += n
	return n, nil
}

// Close does nothing: what was not read yet is read no more.
func (r *borrowed) Close() error { return nil }
