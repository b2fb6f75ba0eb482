package server

// stream.go: sends the events of a run to a client (server-sent events).

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

// batchBytes is the approximate number of bytes sent at once.
const batchBytes = 64 << 10

// wantsEvents reports whether the client requests a stream.
func (c *call) wantsEvents() bool {
	return strings.Contains(strings.Join(c.r.Header.Values("Accept"), ","), "text/event-stream")
}

// stream sends the events of a run after a position as they occur. It ends when the run has
// stopped, the client has disconnected or is too slow, or the server stops. With follow, it waits
// for a pending run and also sends its later events.
func (c *call) stream(l *live, after int64, follow bool) error {
	leave, err := c.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	w := c.events()
	beat := time.NewTimer(c.s.o.Beat)
	defer beat.Stop()
	for {
		batch, ended, more := l.feed.read(after, batchBytes)
		for _, e := range batch {
			w.event(l.feed.id(e.n), string(e.kind), e.data)
			after = e.n
		}
		if len(batch) > 0 && !w.flush() {
			return nil
		}
		if ended {
			if !follow || !l.waits.Load() {
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
		beat.Reset(c.s.o.Beat)
		select {
		case <-more:
		case <-beat.C:
			if !w.beat() {
				return nil
			}
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
			select {
			case <-more: // the last events of a run
			default:
				return nil
			}
		}
	}
}

// enterStream counts a stream until leave is called.
func (c *call) enterStream() (leave func(), err error) {
	e := fault("too_many", "the token has reached its limit of streams", "end one")
	all := c.s.everyone
	if !all.enter(&all.streams, c.s.o.MaxStreams) {
		e = fault("busy", fmt.Sprintf("at most %d concurrent streams are allowed", c.s.o.MaxStreams), "try again later")
	} else if c.client.enter(&c.client.streams, c.client.Streams) {
		return func() { c.client.leave(&c.client.streams); all.leave(&all.streams) }, nil
	} else {
		all.leave(&all.streams)
	}
	e.after = 1
	return nil, e
}

// next waits until a pending run is executed again, here or in another process, and returns it. Nil
// means that the client has disconnected. A run that another process resumed is found with the next
// heartbeat and sent when it has stopped.
func (c *call) next(w *sender, l *live, beat *time.Timer) *live {
	on, leave := c.s.hub.goesOn(l)
	defer leave()
	for {
		beat.Reset(c.s.o.Beat)
		select {
		case <-on:
			if now := c.s.hub.find(l.place); now != nil && now != l {
				return now
			}
			// it has stopped since then and was dropped: the next request gets everything
			return nil
		case <-beat.C:
			head, err := c.s.o.Journal.JournalRun(c.ctx(), l.who, l.id)
			if err == nil && head.State != store.JournalWaiting && head.State != store.JournalOpen {
				c.s.hub.drop(l.place)
				if now, err := c.look(l.place); err == nil {
					return now
				}
			}
			if errors.Is(err, store.ErrNotFound) || !w.beat() {
				return nil
			}
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
			return nil
		}
	}
}

// sender writes events.
type sender struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	wait time.Duration
	buf  bytes.Buffer
}

// events begins a response that is a stream.
func (c *call) events() *sender {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	w := &sender{w: c.w, rc: http.NewResponseController(c.w), wait: c.s.o.Wait}
	w.flush()
	return w
}

// event adds an event. id and name may be empty. data contains no line breaks.
func (w *sender) event(id, name string, data []byte) {
	if id != "" {
		w.buf.WriteString("id: " + id + "\n")
	}
	if name != "" {
		w.buf.WriteString("event: " + name + "\n")
	}
	w.buf.WriteString("data: ")
	w.buf.Write(data)
	w.buf.WriteString("\n\n")
}

// beat sends a heartbeat, and reports as flush does. A nil w has none.
func (w *sender) beat() bool {
	if w == nil {
		return true
	}
	w.buf.WriteString(": still here\n\n")
	return w.flush()
}

// flush sends the added events and reports whether the client received them in time.
func (w *sender) flush() bool {
	// if deadlines are not supported, the connection's limits apply
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.wait))
	_, err := w.w.Write(w.buf.Bytes())
	w.buf.Reset()
	return err == nil && w.rc.Flush() == nil
}
