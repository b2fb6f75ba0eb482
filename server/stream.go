package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawl-go/pawl/store"
)

// batchBytes is about how much of a feed is sent at once.
const batchBytes = 64 << 10

// wantsEvents reports whether the client asks for a stream.
func (c *call) wantsEvents() bool {
	for _, v := range c.r.Header.Values("Accept") {
		if bytes.Contains([]byte(v), []byte("text/event-stream")) {
			return true
		}
	}
	return false
}

// stream sends the events of a run after a place, as they come, until the run has stopped, the client is gone or too slow, or the server ends. With follow, a run that waits for an
// answer is waited for, and what happens after that is sent, too.
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
		if (len(batch) > 0 || w.buf.Len() > 0) && !w.flush() {
			return nil
		}
		if ended {
			if !follow || !l.waits {
				return nil
			}
			if l = c.next(w, l, beat); l == nil {
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
			w.beat()
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
			select {
			case <-more: // what a run said at last
			default:
				return nil
			}
		}
	}
}

// enterStream counts a stream, until leave is called.
func (c *call) enterStream() (leave func(), err error) {
	e := fault("too_many", "the token has as many streams as it may have", "end one")
	all := c.s.everyone
	if !all.enter(&all.streams, c.s.o.MaxStreams) {
		e = fault("busy", fmt.Sprintf("%d streams are the most at once", c.s.o.MaxStreams), "try again later")
	} else if c.client.enter(&c.client.streams, c.client.Streams) {
		return func() { c.client.leave(&c.client.streams); all.leave(&all.streams) }, nil
	} else {
		all.leave(&all.streams)
	}
	e.after = 1
	return nil, e
}

// next waits until a run that waits is worked on again, here or elsewhere, and returns it; nil: nobody is there any more to be told. Where another process has gone on with it,
// that is seen at the next sign of life, and told when the run has stopped.
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
			return nil // it has stopped since, and was forgotten: whoever asks again is told all
		case <-beat.C:
			head, err := c.s.o.Journal.JournalRun(c.ctx(), l.who, l.id)
			if err == nil && head.State != store.JournalWaiting && head.State != store.JournalOpen {
				c.s.hub.drop(l.place)
				if now, err := c.look(l.place); err == nil {
					return now
				}
			}
			if w.beat(); errors.Is(err, store.ErrNotFound) || !w.flush() {
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

// events begins an answer that is a stream.
func (c *call) events() *sender {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	w := &sender{w: c.w, rc: http.NewResponseController(c.w), wait: c.s.o.Wait}
	w.flush()
	return w
}

// event adds an event; id and name may be "". data has no line breaks.
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

// beat adds a sign of life.
func (w *sender) beat() { w.buf.WriteString(": still here\n\n") }

// flush sends what was added, and reports whether the client took it in time.
func (w *sender) flush() bool {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.wait)) // where that cannot be, the connection bounds it
	_, err := w.w.Write(w.buf.Bytes())
	w.buf.Reset()
	return err == nil && w.rc.Flush() == nil
}
