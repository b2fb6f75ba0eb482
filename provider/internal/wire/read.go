package wire

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/sse"
	"github.com/pawl-go/pawl/llm"
)

// byteOrderMark is what some servers begin a body with. It is no part of JSON.
var byteOrderMark = []byte("\ufeff")

// Read gives the body of an answer to dec. What was asked for, whole or a stream, does not decide what came: servers answer a
// request for a stream with a whole body, and the other way round. size is that of the body; -1: not known.
func Read(provider string, body io.Reader, size int64, whole bool, dec Decoder) error {
	if whole {
		p := scratch.Get().(*[]byte)
		all, err := readAll((*p)[:0], body, size)
		defer func() {
			*p = all
			giveBack(&scratch, p)
		}()
		if err != nil {
			return cut(provider, err)
		}
		text := bytes.TrimPrefix(all, byteOrderMark)
		if looksLikeJSON(text) {
			return dec.Whole(text)
		}
		body = bytes.NewReader(text)
	}
	events := streams.Get().(*sse.Reader)
	events.Reset(body)
	defer func() {
		events.Reset(nil)
		if events.Size() <= keepBuffer {
			streams.Put(events)
		}
	}()
	head, err := events.Peek()
	if err != nil && err != io.EOF {
		return cut(provider, err)
	}
	if looksLikeJSON(head) {
		all, err := readAll(bytes.Clone(head), body, size)
		if err != nil {
			return cut(provider, err)
		}
		return dec.Whole(all)
	}
	var title string // of what may be no stream at all; events may follow a line that is garbage
	if isPage(head) {
		title = page(head)
	}
	events.Wait = dec.Flush
	eof, err := readEvents(provider, events, dec)
	if err != ErrStopped {
		if e := dec.Flush(); e != nil {
			return e
		}
	}
	if eof && err != nil && title != "" {
		return &llm.ProviderError{Provider: provider, Code: llm.CodeStream, Message: title + "; is the base URL that of the API?", Retryable: true, Err: err}
	}
	if err == nil && !eof {
		drain(body)
	}
	return err
}

// readEvents gives dec the events, until one is the last or the stream ends: eof.
func readEvents(provider string, events *sse.Reader, dec Decoder) (eof bool, err error) {
	for {
		ev, err := events.Next()
		switch {
		case err == io.EOF:
			return true, dec.End()
		case err == ErrStopped: // of Flush
			return false, err
		case err != nil:
			return false, cut(provider, err)
		}
		if err := dec.Event(ev.Data); err != nil {
			return false, err
		}
		if dec.Over() {
			return false, dec.End()
		}
	}
}

// readAll appends a body to buf, of at most maxBody bytes. size is that of the body; -1: not known.
func readAll(buf []byte, body io.Reader, size int64) ([]byte, error) {
	if size > 0 && size < maxBody {
		buf = slices.Grow(buf, int(size)+bytes.MinRead)
	}
	for len(buf) < maxBody {
		if cap(buf)-len(buf) < bytes.MinRead {
			buf = slices.Grow(buf, max(cap(buf), bytes.MinRead))
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// drain reads to the end of a body whose reply is complete: only then can its connection be used again. The end
// has usually come with the last event; for a server that keeps the connection open it is not waited long.
func drain(body io.Reader) {
	const wait = 100 * time.Millisecond
	if c, ok := body.(io.Closer); ok {
		t := time.AfterFunc(wait, func() { c.Close() })
		defer t.Stop()
		io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	}
}

// cut is the error of a body that broke off.
func cut(provider string, err error) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeStream, Message: "the reply broke off: " + err.Error(), Retryable: true, Err: err}
}

func looksLikeJSON(b []byte) bool {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return true
		default:
			return false
		}
	}
	return false
}

// isPage reports whether a body begins like a page for people, which proxies and portals answer with status 200, too.
func isPage(b []byte) bool {
	b = bytes.TrimSpace(b[:min(len(b), 512)])
	return len(b) > 0 && b[0] == '<'
}

const (
	maxBody    = 64 << 20  // of a reply
	keepBuffer = 512 << 10 // what a pool keeps
)

var (
	scratch = sync.Pool{New: newBuffer} // of replies
	streams = sync.Pool{New: func() any { return sse.NewReader(nil) }}
)

func newBuffer() any {
	b := make([]byte, 0, 8<<10)
	return &b
}

// giveBack puts a buffer into a pool, unless it has grown too large to be kept.
func giveBack(pool *sync.Pool, p *[]byte) {
	if cap(*p) <= keepBuffer {
		pool.Put(p)
	}
}
