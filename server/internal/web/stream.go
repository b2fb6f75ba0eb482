package web

// stream.go: sends the events of a run to a client (server-sent events).

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// batchBytes is the approximate number of bytes sent at once.
const batchBytes = 64 << 10

// WantsEvents reports whether the client requests a stream.
func (c *Call) WantsEvents() bool {
	return strings.Contains(strings.Join(c.Request.Header.Values("Accept"), ","), "text/event-stream")
}

// Stream sends the events of a run after a position as they occur. It ends when the run has
// stopped, the client has disconnected or is too slow, or the server stops. With follow, it waits
// for a pending run and also sends its later events. Without follow, it ends with the error outage
// when the provider of the run's model has been away for the time of Hold.
func (c *Call) Stream(l *runs.Live, after int64, follow bool) error {
	release, err := c.AcquireStream()
	if err != nil {
		return err
	}
	defer release()
	out := c.StartStream()
	beat := time.NewTimer(c.Beat)
	defer beat.Stop()
	came := time.Now()
	hold := c.Hold()
	if follow {
		hold = 0
	}

	for {
		batch, ended, more := l.Read(after, batchBytes)
		for _, e := range batch {
			out.Event(l.EventID(e.Position), string(e.Kind), e.Data)
			after = e.Position
		}
		if len(batch) > 0 && !out.Flush() {
			return nil
		}

		switch {
		// The stream of a pending run waits for its answer, and continues with the next attempt.
		case ended && follow && l.Pending():
			l, err = c.AwaitResumed(l, out.Beat)
			if l == nil || err != nil { // dropped: the next request gets everything
				return nil
			}
			after = 0
			continue
		case ended:
			return nil

		case len(batch) > 0:
			continue
		}
		given, err := l.Patience(came, hold)
		if err != nil {
			out.Event("", "error", c.errorData(err))
			out.Flush()
			return nil
		}
		if !c.awaitMore(out, more, given, beat) {
			return nil
		}
	}
}

// errorData returns an error as the data of an event of this API.
func (c *Call) errorData(err error) []byte {
	// text always marshals
	data, _ := json.Marshal(map[string]*api.Error{"error": runs.ToError(err)})
	return c.Secrets.JSON(data)
}

// awaitMore waits for events, with heartbeats, or until the time given is over. False means that
// the stream ends.
func (c *Call) awaitMore(out *Sender, more <-chan struct{}, given <-chan time.Time, beat *time.Timer) bool {
	beat.Reset(c.Beat)
	select {
	case <-more:
		return true
	case <-given:
		return true
	case <-beat.C:
		return out.Beat()
	case <-c.Request.Context().Done():
		return false
	case <-c.Runs.Closing():
		select {
		case <-more: // the last events of a run
			return true
		default:
			return false
		}
	}
}

// ErrStopping is the error of AwaitResumed when the server stops.
var ErrStopping = errors.New("the server is stopping")

// errSlow is the error of a client that has not received a heartbeat in time.
var errSlow = errors.New("the client has not received a heartbeat in time")

// AwaitResumed waits until a pending run is executed again, here or in another process, and returns
// it. Nil means that it has stopped since then and was dropped. A run that another process resumed
// is found with the next heartbeat, which beat sends; false means that the client has disconnected.
// The error is ErrStopping, store.ErrNotFound for a run that was deleted, or that the request has
// ended.
func (c *Call) AwaitResumed(l *runs.Live, beat func() bool) (*runs.Live, error) {
	on, leave := c.Runs.Resumed(l)
	defer leave()
	tick := time.NewTicker(c.Beat)
	defer tick.Stop()
	for {
		select {
		case <-on:
			return c.Runs.Successor(l), nil
		case <-tick.C:
			now, err := c.Runs.Refresh(c.Context(), c.Caller(), l)
			if now != nil || errors.Is(err, store.ErrNotFound) {
				return now, err
			}
			if !beat() {
				return nil, errSlow
			}
		case <-c.Request.Context().Done():
			return nil, context.Cause(c.Request.Context())
		case <-c.Runs.Closing():
			return nil, ErrStopping
		}
	}
}

// Sender writes the events of a stream. It is not safe for concurrent use.
type Sender struct {
	writer  http.ResponseWriter
	control *http.ResponseController
	wait    time.Duration
	buffer  bytes.Buffer
}

// StartStream begins a response that is a stream. The client gets its headers at once.
func (c *Call) StartStream() *Sender {
	h := c.Writer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx passes each event on at once
	c.Writer.WriteHeader(http.StatusOK)

	out := &Sender{writer: c.Writer, control: http.NewResponseController(c.Writer), wait: c.Wait}
	out.Flush()
	return out
}

// Event adds an event. id and name may be empty. data contains no line breaks.
func (w *Sender) Event(id, name string, data []byte) {
	if id != "" {
		w.buffer.WriteString("id: " + id + "\n")
	}
	if name != "" {
		w.buffer.WriteString("event: " + name + "\n")
	}
	w.buffer.WriteString("data: ")
	w.buffer.Write(data)
	w.buffer.WriteString("\n\n")
}

// Beat sends a heartbeat, and reports as Flush does. A nil Sender sends none.
func (w *Sender) Beat() bool {
	if w == nil {
		return true
	}
	w.buffer.WriteString(": still here\n\n")
	return w.Flush()
}

// Flush sends the added events and reports whether the client received them in time.
func (w *Sender) Flush() bool {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.wait)) // without support, other limits apply
	_, err := w.writer.Write(w.buffer.Bytes())
	w.buffer.Reset()
	return err == nil && w.control.Flush() == nil
}

// FlushFull sends the added events if they are enough for a packet, and reports as Flush does.
func (w *Sender) FlushFull() bool { return w.buffer.Len() < batchBytes || w.Flush() }
