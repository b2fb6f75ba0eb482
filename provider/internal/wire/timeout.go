package wire

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts limit how long a Client waits without a sign of life. They do not limit the duration of
// a reply.
type Timeouts struct {
	// until connected and encrypted; a RoundTripper of the program ignores it
	Connect   time.Duration
	FirstByte time.Duration // from sending the request to the head of the response
	Silence   time.Duration // between two reads of the body; pings count
}

// These are the default timeouts.
const (
	connectTimeout   = 10 * time.Second
	firstByteTimeout = 120 * time.Second
	silenceTimeout   = 120 * time.Second
)

// limits replaces zero fields by the defaults and negative fields by 0.
func (t Timeouts) limits() Timeouts {
	limit := func(d, otherwise time.Duration) time.Duration {
		if d == 0 {
			return otherwise
		}
		return max(d, 0)
	}
	return Timeouts{limit(t.Connect, connectTimeout), limit(t.FirstByte, firstByteTimeout),
		limit(t.Silence, silenceTimeout)}
}

// timeoutError describes an expired timeout.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string { return e.text }
func (e *timeoutError) Timeout() bool { return true }

// watch cancels the context of an exchange that shows no sign of life. It has one timer, which is
// set again if it fires too early; to set a timer for each read would cost more than many of the
// reads. The time that the consumer takes between two reads does not count.
type watch struct {
	cancel context.CancelCauseFunc
	began  time.Time
	// when the current wait began, relative to began; idle means that there is none
	since atomic.Int64
	body  io.ReadCloser

	mu    sync.Mutex
	timer *time.Timer // nil means that it was never set
	limit time.Duration
	text  string // what is missing
	over  bool
}

const idle = -1

// begin starts to wait for the head of a response. The caller must call stop.
func (w *watch) begin(cancel context.CancelCauseFunc, limit time.Duration) {
	w.cancel, w.began = cancel, time.Now()
	w.set(limit, "no answer within ")
}

// read starts to watch a body.
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
