package wire

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
)

// Body is an encoded request. Its buffer serves further requests when nothing reads it any more: a
// long conversation is encoded again for each request, and a buffer for it costs more than the rest
// of the request.
//
// An http.RoundTripper may read a body after it has returned the response, and it closes every
// body that it was given, as net/http demands. So a Body counts its readers. A closed reader
// returns an error and no data, also to a RoundTripper that breaks this contract.
type Body struct {
	bytes []byte
	users atomic.Int32 // the sender, and each reader that is not closed
}

// NewBody returns a body for Client.SendBody. The caller passes on b, which Buffer may have
// returned, and calls Release when no further request is sent with it.
func NewBody(b []byte) *Body {
	body := &Body{bytes: b}
	body.users.Store(1)
	return body
}

// Release ends the use of the body by its sender. Without it, the buffer serves no further request.
func (b *Body) Release() {
	if b.users.Add(-1) > 0 {
		return
	}
	if cap(b.bytes) <= maxBuffer {
		buffers.Put(&b.bytes)
	}
}

// reader returns a reader of the whole body. It returns an error if the buffer is no longer its
// own: an http.RoundTripper may call GetBody at any time.
func (b *Body) reader() (io.ReadCloser, error) {
	for {
		n := b.users.Load()
		if n == 0 {
			return nil, errBodyClosed
		}
		if b.users.CompareAndSwap(n, n+1) {
			return &bodyReader{body: b, rest: b.bytes}, nil
		}
	}
}

// bodyReader is one reader of a Body. net/http may close it during a Read.
type bodyReader struct {
	mu   sync.Mutex
	body *Body // nil means closed
	rest []byte
}

var errBodyClosed = errors.New("the body of the request is closed")

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		return 0, errBodyClosed
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body != nil {
		r.body.Release()
		r.body = nil
		r.rest = nil
	}
	return nil
}

// maxBuffer is the size up to which buffers are used again, so that a request with files holds no
// memory after it.
const maxBuffer = 4 << 20

var buffers sync.Pool // of *[]byte

// Buffer returns an empty buffer, usually large enough for the body of req.
func Buffer(req *llm.Request, tools *Toolset) []byte {
	n := 1<<10 + len(tools.Body) + len(req.Output)
	for i := range req.Messages {
		n += sizeOf(req.Messages[i].Parts)
	}
	n += n / 16 // for escapes

	if b, ok := buffers.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n+n/4) // the next request of the conversation is longer
}
