package uistream

// write.go: the response to a request of a front end.

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// sender writes a stream from two goroutines: events, and comments while there are none.
type sender struct {
	writer http.ResponseWriter
	wait   time.Duration
	mu     sync.Mutex
	err    error
}

// send sends b. It returns the first error of the connection.
func (s *sender) send(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rc := http.NewResponseController(s.writer)
	if s.err == nil && s.wait > 0 {
		// if deadlines are not supported, the connection's limits apply
		_ = rc.SetWriteDeadline(time.Now().Add(s.wait))
	}
	if s.err == nil {
		_, s.err = s.writer.Write(b)
	}
	if s.err == nil {
		s.err = rc.Flush()
	}
	return s.err
}

// Write sends the events of a run as the response to a request of a front end. Empty Options serve
// useChat, and RunInput.Options an AG-UI client. It returns the first error of the connection,
// after which no event is read. An error of the run is sent to the client, except
// http.ErrAbortHandler: Write then panics with it.
func Write(w http.ResponseWriter, events iter.Seq2[pawl.Event, error], o Options) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	done := ""
	if o.Thread == "" {
		h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
		done = "data: [DONE]\n\n"
	}

	s := &sender{writer: w, wait: o.Wait}
	stop := make(chan struct{})
	var beats sync.WaitGroup
	defer beats.Wait()
	defer close(stop)
	beats.Go(func() { s.beat(cmp.Or(o.Beat, 10*time.Second), stop) })

	e := New(o)
	err := s.send(append([]byte(":\n\n"), lines(e.Begin())...))
	text := "the run has ended without a result"

	for ev, fault := range events {
		if errors.Is(fault, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler) // the response breaks off
		}
		if fault != nil {
			text = fault.Error()
			break
		}

		if b := lines(e.Event(ev)); err == nil && len(b) > 0 {
			err = s.send(b)
		}
		if err != nil || e.Ended() {
			break
		}
	}

	if err != nil {
		return err
	}
	return s.send(append(lines(e.Fail(text)), done...))
}

// beat sends comments until stop is closed.
func (s *sender) beat(every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.send([]byte(":\n\n")) // the next event returns the error
		case <-stop:
			return
		}
	}
}

// lines returns frames as server-sent events.
func lines(frames [][]byte) []byte {
	var b bytes.Buffer
	for _, f := range frames {
		b.WriteString("data: ")
		b.Write(f)
		b.WriteString("\n\n")
	}
	return b.Bytes()
}
