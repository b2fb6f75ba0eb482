package wire

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts bound how long a Client waits without a sign of life. They do not bound how long a reply takes.
type Timeouts struct {
	Connect   time.Duration // until there is a connection, and until it is encrypted; of no effect with a RoundTripper of the caller's
	FirstByte time.Duration // from sending the request to the head of the answer
	Silence   time.Duration // between two pieces of the body; pings are pieces
}

// The timeouts that stand for zero.
const (
	connectTimeout   = 10 * time.Second
	firstByteTimeout = 120 * time.Second
	silenceTimeout   = 120 * time.Second
)

// limits returns what the fields stand for: zero for the default, less for none.
func (t Timeouts) limits() Timeouts {
	limit := func(d, otherwise time.Duration) time.Duration {
		if d == 0 {
			return otherwise
		}
		return max(d, 0)
	}
	return Timeouts{limit(t.Connect, connectTimeout), limit(t.FirstByte, firstByteTimeout), limit(t.Silence, silenceTimeout)}
}

// timeoutError says what did not come in time.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string { return e.text }
func (e *timeoutError) Timeout() bool { return true }

// watch ends an exchange that shows no sign of life, by cancelling its context. One timer serves it to its end: where it fires and
// nobody has waited for long enough, it is set again. Setting it for each piece of a reply would cost more than what else
// is done with many of them. What the consumer of a reply takes between two pieces does not count.
type watch struct {
	cancel context.CancelCauseFunc
	began  time.Time
	since  atomic.Int64 // when waiting began, after began; idle: nobody waits
	body   io.ReadCloser

	mu    sync.Mutex
	timer *time.Timer // nil: none set yet
	limit time.Duration
	text  string // what does not come
	over  bool
}

const idle = -1

// begin begins to wait for the head of an answer; w must be stopped.
func (w *watch) begin(cancel context.CancelCauseFunc, limit time.Duration) {
	w.cancel, w.began = cancel, time.Now()
	w.set(limit, "no answer within ")
}

// read begins to watch a body, in place of its head.
func (w *watch) read(body io.ReadCloser, limit time.Duration) io.ReadCloser {
	w.since.Store(idle)
	w.set(limit, "the reply fell silent for ")
	if limit <= 0 {
		return body
	}
	w.body = body
	return w
}

func (w *watch) set(limit time.Duration, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.text = limit, text
	switch {
	case limit <= 0 && w.timer != nil:
		w.timer.Stop()
	case limit <= 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(limit, w.fire)
	default:
		w.timer.Reset(limit)
	}
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.limit <= 0 {
		return
	}
	waited := time.Duration(0)
	if since := w.since.Load(); since != idle {
		waited = time.Since(w.began) - time.Duration(since)
	}
	if waited < w.limit {
		w.timer.Reset(w.limit - waited)
		return
	}
	w.cancel(&timeoutError{w.text + w.limit.String()})
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) Read(p []byte) (int, error) {
	w.since.Store(int64(time.Since(w.began)))
	n, err := w.body.Read(p)
	w.since.Store(idle)
	return n, err
}

func (w *watch) Close() error { return w.body.Close() }
