package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// WantsEvents reports whether the client requests a stream.
func (c *Call) WantsEvents() bool {
	return strings.Contains(strings.Join(c.R.Header.Values("Accept"), ","), "text/event-stream")
}

// Stream sends the events of a run after a position as they occur. It ends when the run has
// stopped, the client has disconnected or is too slow, or the server stops. With follow, it waits
// for a pending run and also sends its later events.
func (c *Call) Stream(l *runs.Live, after int64, follow bool) error {
	leave, err := c.EnterStream()
	if err != nil {
		return err
	}
	defer leave()
	w := c.Events()
	beat := time.NewTimer(c.S.O.Beat)
	defer beat.Stop()
	for {
		batch, ended, more := l.Feed.Read(after, runs.BatchBytes)
		for _, e := range batch {
			w.Event(l.Feed.Id(e.N), string(e.Kind), e.Data)
			after = e.N
		}
		if len(batch) > 0 && !w.Flush() {
			return nil
		}
		if ended {
			if !follow || !l.Waits.Load() {
				return nil
			}
			l = c.next(w, l, beat)
			if l == nil {
				return nil
			}
			after = 0
		}
		if len(batch) > 0 || ended {
			continue
		}
		beat.Reset(c.S.O.Beat)
		select {
		case <-more:
		case <-beat.C:
			if !w.Beat() {
				return nil
			}
		case <-c.R.Context().Done():
			return nil
		case <-c.S.Hub.Closing:
			select {
			case <-more: // the last events of a run
			default:
				return nil
			}
		}
	}
}

// EnterStream counts a stream until leave is called.
func (c *Call) EnterStream() (leave func(), err error) {
	e := runs.Fault("too_many", "the token has reached its limit of streams", "end one")
	all := c.Web.Everyone
	if !all.Enter(&all.ActiveStreams, c.S.O.MaxStreams) {
		e = runs.Fault("busy", fmt.Sprintf("at most %d concurrent streams are allowed", c.S.O.MaxStreams), "try again later")
	} else if c.Client.Enter(&c.Client.ActiveStreams, c.Client.Streams) {
		return func() { c.Client.Leave(&c.Client.ActiveStreams); all.Leave(&all.ActiveStreams) }, nil
	} else {
		all.Leave(&all.ActiveStreams)
	}
	e.RetryAfter = 1
	return nil, e
}

// next waits until a pending run is executed again, here or in another process, and returns it. Nil
// means that the client has disconnected. A run that another process resumed is found with the next
// heartbeat and sent when it has stopped.
func (c *Call) next(w *Sender, l *runs.Live, beat *time.Timer) *runs.Live {
	on, leave := c.S.Hub.GoesOn(l)
	defer leave()
	for {
		beat.Reset(c.S.O.Beat)
		select {
		case <-on:
			if now := c.S.Hub.Find(l.Place); now != nil && now != l {
				return now
			}
			// it has stopped since then and was dropped: the next request gets everything
			return nil
		case <-beat.C:
			head, err := c.S.O.Journal.JournalRun(c.Ctx(), l.Who, l.Id)
			if err == nil && head.State != store.JournalWaiting && head.State != store.JournalOpen {
				c.S.Hub.Drop(l.Place)
				if now, err := c.Look(l.Place); err == nil {
					return now
				}
			}
			if errors.Is(err, store.ErrNotFound) || !w.Beat() {
				return nil
			}
		case <-c.R.Context().Done():
			return nil
		case <-c.S.Hub.Closing:
			return nil
		}
	}
}

// Sender writes events.
type Sender struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	wait time.Duration
	Buf  bytes.Buffer
}

// Events begins a response that is a stream.
func (c *Call) Events() *Sender {
	h := c.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	c.W.WriteHeader(http.StatusOK)
	w := &Sender{w: c.W, rc: http.NewResponseController(c.W), wait: c.S.O.Wait}
	w.Flush()
	return w
}

// Event adds an event. id and name may be empty. data contains no line breaks.
func (w *Sender) Event(id, name string, data []byte) {
	if id != "" {
		w.Buf.WriteString("id: " + id + "\n")
	}
	if name != "" {
		w.Buf.WriteString("event: " + name + "\n")
	}
	w.Buf.WriteString("data: ")
	w.Buf.Write(data)
	w.Buf.WriteString("\n\n")
}

// Beat sends a heartbeat, and reports as flush does. A nil w has none.
func (w *Sender) Beat() bool {
	if w == nil {
		return true
	}
	w.Buf.WriteString(": still here\n\n")
	return w.Flush()
}

// Flush sends the added events and reports whether the client received them in time.
func (w *Sender) Flush() bool {
	// if deadlines are not supported, the connection's limits apply
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.wait))
	_, err := w.w.Write(w.Buf.Bytes())
	w.Buf.Reset()
	return err == nil && w.rc.Flush() == nil
}
