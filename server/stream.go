package server

import (
	"bytes"
	"net/http"
	"time"
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

// stream sends the events of a feed after a place, as they come, until it has ended, the client is gone or too slow, or the server ends.
func (c *call) stream(f *feed, after int64, first ...string) error {
	if !c.client.enter(&c.client.streams, c.client.Streams) {
		e := fault("too_many", "the token has as many streams as it may have", "end one")
		e.after = 1
		return e
	}
	defer c.client.leave(&c.client.streams)
	w := c.events()
	for _, line := range first {
		w.buf.WriteString(line)
	}
	beat := time.NewTimer(c.s.o.Beat)
	defer beat.Stop()
	for {
		batch, ended, more := f.read(after, batchBytes)
		for _, e := range batch {
			w.event(f.id(e.n), string(e.kind), e.data)
			after = e.n
		}
		if (len(batch) > 0 || w.buf.Len() > 0) && !w.flush() || ended {
			return nil
		}
		if len(batch) > 0 {
			continue
		}
		beat.Reset(c.s.o.Beat)
		select {
		case <-more:
		case <-beat.C:
			w.buf.WriteString(": still here\n\n")
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

// flush sends what was added, and reports whether the client took it in time.
func (w *sender) flush() bool {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.wait)) // where that cannot be, the connection bounds it
	_, err := w.w.Write(w.buf.Bytes())
	w.buf.Reset()
	return err == nil && w.rc.Flush() == nil
}
