package wire

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/sse"
)

// byteOrderMark is what some servers begin a body with. It is no part of JSON.
var byteOrderMark = []byte("\ufeff")

// Read gives the body of an answer to dec. What was asked for, whole or a stream, does not decide what came: servers answer a
// request for a stream with a whole body, and the other way round. size is that of the body; -1: not known.
func Read(provider string, body io.Reader, size int64, whole bool, dec Decoder) error {
	if whole {
		buf := bodies.Get().(*bytes.Buffer)
		defer func() {
			if buf.Cap() <= keepBuffer {
				buf.Reset()
				bodies.Put(buf)
			}
		}()
		if size > 0 && size < maxBody {
			buf.Grow(int(size) + bytes.MinRead)
		}
		if _, err := buf.ReadFrom(io.LimitReader(body, maxBody)); err != nil {
			return cut(provider, err)
		}
		all := bytes.TrimPrefix(buf.Bytes(), byteOrderMark)
		if looksLikeJSON(all) {
			return dec.Whole(all)
		}
		body = bytes.NewReader(all)
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
		all := bytes.NewBuffer(append([]byte(nil), head...))
		if _, err := all.ReadFrom(io.LimitReader(body, maxBody)); err != nil {
			return cut(provider, err)
		}
		return dec.Whole(all.Bytes())
	}
	var title string // of what may be no stream at all; events may follow a line that is garbage
	if isPage(head) {
		title = page(head)
	}
	for {
		ev, err := events.Next()
		if err == io.EOF {
			err := dec.End()
			if title != "" && err != nil {
				return &pawl.ProviderError{Provider: provider, Code: pawl.CodeStream, Message: title + "; is the base URL that of the API?", Retryable: true, Err: err}
			}
			return err
		}
		if err != nil {
			return cut(provider, err)
		}
		if err := dec.Event(ev.Data); err != nil {
			return err
		}
		if dec.Over() {
			if err := dec.End(); err != nil {
				return err
			}
			drain(body)
			return nil
		}
	}
}

// drain reads to the end of a body whose reply is complete: only then can its connection be used again. The end
// has usually come with the last event; for a server that keeps the connection open it is not waited long.
func drain(body io.Reader) {
	const wait = 100 * time.Millisecond
	if d, ok := body.(drainer); ok {
		d.Drain(wait)
		return
	}
	if c, ok := body.(io.Closer); ok {
		t := time.AfterFunc(wait, func() { c.Close() })
		defer t.Stop()
		io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	}
}

// drainer is a body that can do it itself.
type drainer interface{ Drain(limit time.Duration) }

// cut is the error of a body that broke off.
func cut(provider string, err error) error {
	return &pawl.ProviderError{Provider: provider, Code: pawl.CodeStream, Message: "the reply broke off: " + err.Error(), Retryable: true, Err: err}
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
	bodies  = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	scratch = sync.Pool{New: func() any { return new([]byte) }}
	streams = sync.Pool{New: func() any { return sse.NewReader(nil) }}
)
