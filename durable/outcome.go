package durable

// outcome.go: the steps of a session, and how the ends of their calls are stored.

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// expect makes a step of tasks, and returns the function that removes it.
func (s *session) expect(ctx context.Context, tasks []pawl.Task) (done func()) {
	st := newStep(ctx, tasks)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		s.steps[t.Key] = st
	}

	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range tasks {
			delete(s.steps, t.Key)
		}
	}
}

// stepOf returns the step of the call at key.
func (s *session) stepOf(key llm.Key) *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps[key]
}

// store returns when the end of the call t is on disk: pawl.Engine.Store. Calls that end at the
// same time share a commit, also with the intents of the calls that waited for them.
func (s *session) store(ctx context.Context, t pawl.Task, x *pawl.Execution) {
	step := s.stepOf(t.Key)
	n := step.addedBy(t.Key)
	step.awaitEnds(func() bool { return !s.isQueued(n) })
	if err := s.flushTo(n, nil); err != nil {
		*x = notStored(t, *x, err)
	}
	s.calls.settle(t.Key)
}

// addEnd puts the end of the call t, or its pending question, into the next commit, and returns the
// number of added records. An error ends the session, so that the commit returns it.
func (s *session) addEnd(step *step, t pawl.Task, x *pawl.Execution) (added int) {
	switch {
	case leftOpen(step.ctx, x):
	case x.Outcome.Settled():
		if err := plain(x); err != nil {
			_ = s.fail(err)
		}
		added, _ = s.enqueue(record.KindOutcome, string(t.Key), record.Outcome{
			Call:      t.Call,
			Execution: *x,
			Effect:    step.readEffect(t.Key),
		})
	case len(x.Pending) > 0 && x.Pending[0].Key == t.Key:
		w := x.Pending[0]
		if s.asks(w) {
			key := record.Numbered(t.Key, record.KindQuestion, len(s.history.Questions[t.Key])+1)
			added, _ = s.enqueue(record.KindQuestion, key, w)
		}
	}
	return added
}

// leftOpen reports whether the call ended without an outcome: the process ends, a record could not
// be stored, or the agent's Executor broke its contract. Such a call is still open.
func leftOpen(ctx context.Context, x *pawl.Execution) bool {
	if x.Outcome != pawl.OutcomeCancelled && x.Outcome.Settled() {
		return false
	}
	var fault *pawl.ExecutorError
	if errors.As(x.Err(), &fault) && x.Outcome.Settled() {
		return true
	}
	return ctx.Err() != nil && context.Cause(ctx) != pawl.ErrCancelled
}

// asks reports whether w is a question that the journal does not have yet.
func (s *session) asks(w pawl.PendingCall) bool {
	q := s.history.OpenQuestion(w.Key)
	if q == nil || q.Waiting.Digest != w.Digest {
		return true
	}

	// It is asked again if the call did not use the answer.
	return q.Answer != nil && len(w.Granted) == 0
}

// plain converts x to the form that the journal returns, so that the run continues with the same
// bytes before and after a crash.
func plain(x *pawl.Execution) error {
	if isText(x.Result) {
		return nil // the journal returns it unchanged
	}
	b, err := json.Marshal(x.Result)
	if err != nil {
		return err
	}
	x.Result = llm.ToolResult{}
	return json.Unmarshal(b, &x.Result)
}

// isText reports whether a result consists of text in UTF-8.
func isText(r llm.ToolResult) bool {
	for _, p := range r.Parts {
		t, ok := p.(llm.Text)
		if !ok || t.Opaque != nil || !utf8.ValidString(t.Text) {
			return false
		}
	}
	return r.Data == nil && len(r.Parts) > 0
}

// notStored returns the execution of a call whose records could not be stored. For the run, the
// call has not ended.
func notStored(t pawl.Task, x pawl.Execution, err error) pawl.Execution {
	if errors.Is(err, store.ErrUnavailable) {
		err = store.ErrUnavailable // the rest of its text is for the operator: Engine.Report
	}

	x.Outcome = pawl.OutcomeCancelled
	x.Error = err.Error()
	x.Result = llm.ErrorResult("Not recorded.")
	x.Result.CallID = t.Call.ID
	x.Result.Key = t.Key
	x.Ends = ""
	x.Pending = nil
	x.Values = nil
	return x
}
