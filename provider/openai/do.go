package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/sse"
)

// Stream sends req and yields the reply. A request that fails before a fragment of its reply was seen is repeated where
// that may help, after a Delta with a Notice that says so. Errors are *pawl.ProviderError; a cancelled ctx gives its cause.
func (m *Model) Stream(ctx context.Context, req *pawl.Request) iter.Seq2[pawl.Delta, error] {
	return func(yield func(pawl.Delta, error) bool) {
		if err := m.stream(ctx, req, yield); err != nil && err != errStopped {
			yield(pawl.Delta{}, err)
		}
	}
}

func (m *Model) stream(ctx context.Context, req *pawl.Request, yield func(pawl.Delta, error) bool) error {
	if m.err != nil {
		return m.err
	}
	tools, err := m.tools.get(&m.dialect, req.Tools)
	if err != nil {
		return err
	}
	p := newPayload()
	defer p.release()
	if p.buf, err = m.dialect.encode(p.buf[:0], m.name, tools, req); err != nil {
		return err
	}
	out := &emitter{dialect: &m.dialect, tools: tools, yield: yield}
	for attempt := 0; ; attempt++ {
		err := m.once(ctx, p, req.Whole, out)
		if err == nil || err == errStopped {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", m.provider, context.Cause(ctx))
		}
		e, again := m.retryable(err)
		if !again || out.began || attempt >= m.retries {
			return err
		}
		wait := backoff(attempt)
		if e.RetryAfter > 0 {
			wait = e.RetryAfter
		}
		if wait > maxWait {
			return err // longer than a caller should be kept without a word
		}
		notice := &pawl.Notice{Code: "retry", Text: fmt.Sprintf("attempt %d of %d in %v: %v", attempt+2, m.retries+1, wait.Round(time.Millisecond), err)}
		if !yield(pawl.Delta{Notice: notice}, nil) {
			return errStopped
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s: %w", m.provider, context.Cause(ctx))
		}
		*out = emitter{dialect: out.dialect, tools: tools, yield: yield}
	}
}

// retryable reports whether the request that err ended may work when it is repeated. It takes the key out of the text, where
// a server or a proxy has repeated it.
func (m *Model) retryable(err error) (*pawl.ProviderError, bool) {
	var e *pawl.ProviderError
	if !errors.As(err, &e) {
		return nil, false
	}
	if m.key != "" && strings.Contains(e.Message, m.key) {
		e.Message = strings.ReplaceAll(e.Message, m.key, "[key]")
		e.Err = nil // its text may hold it as well
	}
	return e, e.Retryable
}

// maxWait is the longest wait before a repeated request.
const maxWait = time.Minute

// backoff is 1 s, 2 s, 4 s …, each between half and one and a half of it, so that clients do not come back together.
func backoff(attempt int) time.Duration {
	base := time.Second << min(attempt, 6)
	return base/2 + rand.N(base)
}

// once sends the request one time.
func (m *Model) once(ctx context.Context, p *payload, whole bool, out *emitter) error {
	r := (&http.Request{
		Method: http.MethodPost, URL: m.url, Host: m.url.Host, Header: m.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: p.reader(), ContentLength: int64(len(p.buf)),
		GetBody: func() (io.ReadCloser, error) { return p.reader(), nil },
	}).WithContext(ctx)
	if m.http != sharedTransport() { // a RoundTripper of the caller's may write into the headers
		r.Header = m.header.Clone()
	}
	res, err := m.http.RoundTrip(r)
	if err != nil {
		code := pawl.CodeNetwork
		var t interface{ Timeout() bool }
		if errors.As(err, &t) && t.Timeout() {
			code = pawl.CodeTimeout
		}
		return &pawl.ProviderError{Provider: m.provider, Code: code, Message: err.Error(), Retryable: true, Err: err}
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		return m.toError(res.StatusCode, res.Header, body, time.Now())
	}
	return m.read(res.Body, res.ContentLength, whole, out)
}

// read makes deltas of the body of an answer. What was asked for does not decide what came: servers answer a request for a
// stream with a whole body, and the other way round.
func (d *dialect) read(body io.Reader, size int64, whole bool, out *emitter) error {
	dec := d.decoder(out)
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
			return d.cut(err)
		}
		if looksLikeJSON(buf.Bytes()) {
			return dec.whole(buf.Bytes())
		}
		body = bytes.NewReader(buf.Bytes())
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
		return d.cut(err)
	}
	if looksLikeJSON(head) {
		all := bytes.NewBuffer(append([]byte(nil), head...))
		if _, err := all.ReadFrom(io.LimitReader(body, maxBody)); err != nil {
			return d.cut(err)
		}
		return dec.whole(all.Bytes())
	}
	for {
		ev, err := events.Next()
		if err == io.EOF {
			return dec.end()
		}
		if err != nil {
			return d.cut(err)
		}
		if err := dec.event(ev.Data); err != nil {
			return err
		}
		if dec.over() {
			if err := dec.end(); err != nil {
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
	if c, ok := body.(io.Closer); ok {
		t := time.AfterFunc(100*time.Millisecond, func() { c.Close() })
		defer t.Stop()
		io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	}
}

// cut is the error of a body that broke off.
func (d *dialect) cut(err error) error {
	return &pawl.ProviderError{Provider: d.provider, Code: pawl.CodeStream, Message: "the reply broke off: " + err.Error(), Retryable: true, Err: err}
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

const (
	maxBody    = 64 << 20  // of a reply
	keepBuffer = 512 << 10 // what a pool keeps
)

var (
	bodies   = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	streams  = sync.Pool{New: func() any { return sse.NewReader(nil) }}
	payloads = sync.Pool{New: func() any { return new(payload) }}
)

// payload is the body of a request in a buffer that is used again. A transport may read it longer than the request
// lasts (a server can answer early), so it counts its readers: the last one to be closed gives it back.
type payload struct {
	buf  []byte
	refs atomic.Int32
}

func newPayload() *payload {
	p := payloads.Get().(*payload)
	p.refs.Store(1)
	return p
}

func (p *payload) release() {
	if p.refs.Add(-1) == 0 && cap(p.buf) <= keepBuffer {
		payloads.Put(p)
	}
}

func (p *payload) reader() io.ReadCloser {
	p.refs.Add(1)
	r := &payloadReader{p: p}
	r.Reset(p.buf)
	return r
}

type payloadReader struct {
	bytes.Reader
	p      *payload
	closed atomic.Bool
}

func (r *payloadReader) Close() error {
	if r.closed.CompareAndSwap(false, true) {
		r.p.release()
	}
	return nil
}
