package durable

// step.go: executes the open calls of a step, and stores their ends.

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// step is the open calls of one step, or of one Invocation.Do. Calls that start or end at the same
// time share a commit.
type step struct {
	ctx     context.Context // of the run
	intents *gate

	mu      sync.Mutex
	running int           // calls that are executing
	idle    chan struct{} // closed when no call is executing any more; nil means that nothing waits
}

// expect makes a step of tasks, and returns the function that removes it.
func (s *session) expect(ctx context.Context, tasks []pawl.Task) (done func()) {
	st := &step{ctx: ctx, intents: newGate(tasks)}
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

// enter records that a call is executing.
func (st *step) enter() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.running++
}

// leave records that a call is not executing any more. It waits a short time for the ends of the
// others, which then share a commit with this one.
func (st *step) leave() {
	st.mu.Lock()
	st.running--
	if st.running == 0 {
		if st.idle != nil {
			close(st.idle)
			st.idle = nil
		}
		st.mu.Unlock()
		return
	}
	if st.idle == nil {
		st.idle = make(chan struct{})
	}
	idle := st.idle
	st.mu.Unlock()

	wait := time.NewTimer(gather)
	defer wait.Stop()
	select {
	case <-idle:
	case <-wait.C:
	}
}

// callEnded stores the end of the call t, or its pending question, and returns its execution when
// it is on disk.
func (s *session) callEnded(st *step, t pawl.Task, x pawl.Execution) pawl.Execution {
	st.intents.withdraw(t.Key)
	s.addEnd(st.ctx, t, &x)
	st.leave()
	if err := s.flush(nil); err != nil {
		x = notStored(t, x, err)
	}
	s.calls.settle(t.Key)
	return x
}

// addEnd puts the end of the call t, or its pending question, into the next commit. An error ends
// the session, so that the commit returns it.
func (s *session) addEnd(ctx context.Context, t pawl.Task, x *pawl.Execution) {
	switch {
	case leftOpen(ctx, x):
	case x.Outcome.Settled():
		if err := plain(x); err != nil {
			_ = s.fail(err)
		}
		_ = s.add(record.KindOutcome, string(t.Key), record.Outcome{Call: t.Call, Execution: *x})
	case len(x.Pending) > 0 && x.Pending[0].Key == t.Key:
		w := x.Pending[0]
		if s.asks(w) {
			key := record.Numbered(t.Key, record.KindQuestion, len(s.history.Questions[t.Key])+1)
			_ = s.add(record.KindQuestion, key, w)
		}
	}
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
	b, err := json.Marshal(x.Result)
	if err != nil {
		return err
	}
	x.Result = llm.ToolResult{}
	return json.Unmarshal(b, &x.Result)
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
