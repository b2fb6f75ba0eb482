package wire

import (
	"bytes"
	"io"
	"sync/atomic"
)

// Payload is the body of a request in a buffer that is used again. A transport may read it longer than the request
// lasts (a server can answer early), so it counts its readers: the last one to be closed gives it back.
type Payload struct {
	Buf  []byte
	refs atomic.Int32
}

// NewPayload returns an empty payload with one reader, its maker, who lets go of it with Release.
func NewPayload() *Payload {
	p := payloads.Get().(*Payload)
	p.refs.Store(1)
	return p
}

// Release says that the caller needs p no more.
func (p *Payload) Release() {
	if p.refs.Add(-1) == 0 && cap(p.Buf) <= keepBuffer {
		payloads.Put(p)
	}
}

func (p *Payload) reader() io.ReadCloser {
	p.refs.Add(1)
	r := &payloadReader{p: p}
	r.Reset(p.Buf)
	return r
}

type payloadReader struct {
	bytes.Reader
	p      *Payload
	closed atomic.Bool
}

func (r *payloadReader) Close() error {
	if r.closed.CompareAndSwap(false, true) {
		r.p.Release()
	}
	return nil
}
