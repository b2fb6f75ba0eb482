package uistream

// write.go: the response to a request of a front end.

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
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
// useChat, and RunInput.Options an AG-UI client. It reads the events to their end, or to the first
// error of the connection.
//
// Write returns the first error of the connection and the error of the run, joined. Nil means that
// the client has the whole stream and the run a plain answer. A *pawl.StopError means that the run
// stopped without a plain answer, because it waits for example. The client gets
// Options.ErrorText in place of the error of a failed run. Write panics with http.ErrAbortHandler
// if the run has this error.
func Write(w http.ResponseWriter, events iter.Seq2[pawl.Event, error], o Options) error {
	switch {
	case events == nil:
		return errors.New("uistream: the events are nil; pass what Stream returned")
	case o.Beat < 0:
		return errors.New("uistream: Options.Beat is negative; 0 means 10 s")
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	done := ""
	if o.Thread == "" {
		h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
		done = "data: [DONE]\n\n"
	}

	// Beats and events are written by two goroutines, and the response must not be used after
	// Write.
	s := &sender{writer: w, wait: o.Wait}
	stop := make(chan struct{})
	var beats sync.WaitGroup
	defer beats.Wait()
	defer close(stop)
	beats.Go(func() { s.beat(cmp.Or(o.Beat, 10*time.Second), stop) })

	e := New(o)
	failed, fault, err := s.sendEvents(e, events)
	if err != nil {
		return errors.Join(err, fault)
	}

	text := o.errorText(fault)
	var last [][]byte
	if failed != nil {
		failed.Error = text
		last = e.Event(*failed)
	}
	last = append(last, e.Fail(text)...)
	err = s.send(append(lines(last), done...))
	return errors.Join(err, fault)
}

// sendEvents sends events until they end or the connection fails with err. The end of a run that
// failed is returned instead, since its text may be a secret of the program. fault is the error of
// the run.
func (s *sender) sendEvents(e *Encoder, events iter.Seq2[pawl.Event, error]) (failed *pawl.Event, fault, err error) {
	err = s.send(append([]byte(":\n\n"), lines(e.Begin())...))
	for ev, broken := range events {
		if errors.Is(broken, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler) // the response breaks off
		}
		if broken != nil {
			return failed, broken, err
		}

		isFailure := ev.Kind == pawl.EventRunEnded && ev.Result != nil && ev.Result.Stop.Class() == pawl.ClassFailed
		nested := strings.Contains(string(ev.Run), "/")
		switch {
		case e.Ended() || failed != nil:
			continue // only the error of the run follows
		case isFailure && !nested:
			failed = &ev
			continue
		case isFailure:
			ev.Error = failedText
		}
		if b := lines(e.Event(ev)); err == nil && len(b) > 0 {
			err = s.send(b)
		}
		if err != nil {
			return failed, nil, err
		}
	}

	switch {
	case failed != nil:
		fault = errors.New(cmp.Or(failed.Error, failed.Result.Cause, failedText))
	case !e.Ended():
		fault = errors.New("the run has ended without a result")
	}
	return failed, fault, err
}

// failedText is the text of a failed run that has no code.
const failedText = "the run failed"

// errorText returns the text for a client of an error of a run.
func (o *Options) errorText(err error) string {
	if o.ErrorText != nil && err != nil {
		return o.ErrorText(err)
	}
	if p, ok := errors.AsType[*llm.ProviderError](err); ok && p.Code != "" {
		return failedText + " (" + string(p.Code) + ")"
	}
	return failedText
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
