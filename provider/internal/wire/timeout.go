package wire

import (
	"context"
	"io"
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

// watch cancels the context of an exchange that shows no sign of life. The time that the consumer
// takes between two reads does not count.
type watch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil means no limit
	limit  time.Duration
	body   io.ReadCloser
}

// begin starts to wait for the head of a response. The caller must call stop.
func (w *watch) begin(cancel context.CancelCauseFunc, limit time.Duration) {
	w.cancel = cancel
	w.set(limit, "no answer within ")
}

// read starts to watch a body.
func (w *watch) read(body io.ReadCloser, limit time.Duration) io.ReadCloser {
	w.stop()
	w.set(limit, "the reply fell silent for ")
	w.stop()
	w.limit, w.body = limit, body
	return w
}

func (w *watch) set(limit time.Duration, text string) {
	w.timer = nil
	if limit > 0 {
		w.timer = time.AfterFunc(limit, func() { w.cancel(&timeoutError{text + limit.String()}) })
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) Read(p []byte) (int, error) {
	if w.timer != nil {
		w.timer.Reset(w.limit)
		defer w.timer.Stop()
	}
	return w.body.Read(p)
}

func (w *watch) Close() error { return w.body.Close() }
