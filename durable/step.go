package durable

// step.go: executes the open calls of a step, and stores their ends.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// step is the open calls of one step, or of one Invocation.Do, during execution.
type step struct {
	session *session
	ctx     context.Context
	tasks   []pawl.Task
	byKey   map[llm.Key]*pawl.Task // nil means not filled in yet
	open    int                    // calls that have not ended; together alone counts them
}

// expect opens a gate for the intents of tasks, and returns the function that removes it.
func (s *session) expect(tasks []pawl.Task) (done func()) {
	g := newGate(tasks)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		s.waiters[t.Key] = g
	}

	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range tasks {
			delete(s.waiters, t.Key)
		}
	}
}

// task returns the task that e completes, or nil if e completes none.
func (b *step) task(e pawl.Event) *pawl.Task {
	x := e.Execution
	if e.Kind != pawl.EventCallCompleted || x == nil {
		return nil
	}

	if b.byKey == nil {
		b.byKey = make(map[llm.Key]*pawl.Task, len(b.tasks))
		for i := range b.tasks {
			b.byKey[b.tasks[i].Key] = &b.tasks[i]
		}
	}
	return b.byKey[x.Key]
}

// alone executes one call.
func (b *step) alone(inner pawl.Executor, yield func(pawl.Event) bool) {
	for e := range inner.Execute(b.ctx, b.tasks) {
		if t := b.task(e); t != nil {
			e = b.ended(t, e)
			if err := b.session.flush(nil); err != nil {
				e = notStored(t, e, err)
			}
			b.session.calls.settle(t.Key)
		}
		if !yield(e) {
			return
		}
	}
}

// together executes several calls. Calls that end at the same time share one commit.
func (b *step) together(inner pawl.Executor, yield func(pawl.Event) bool) {
	ctx, cancel := context.WithCancel(b.ctx)
	events := make(chan pawl.Event)
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer close(over)

	panicked := ""
	wg.Go(func() {
		defer close(events)
		panicked = b.forward(ctx, inner, events, over)
	})

	b.open = len(b.tasks)
	for e := range events {
		more := false
		if b.task(e) == nil {
			more = yield(e)
		} else {
			more = b.commit(b.gatherEnds(e, events), yield)
		}
		if !more {
			return
		}
	}
	if panicked != "" {
		panic(panicked) // the caller of this goroutine recovers it
	}
}

// forward executes the calls and sends their events until over is closed. It returns the panic of
// inner with its stack.
func (b *step) forward(ctx context.Context, inner pawl.Executor, events chan<- pawl.Event,
	over <-chan struct{}) (panicked string) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
		}
	}()
	for e := range inner.Execute(ctx, b.tasks) {
		select {
		case events <- e:
		case <-over:
			return ""
		}
	}
	return ""
}

// gatherEnds returns first, the end of a call, and the events of a short time after it, with which
// other calls may end. It stores the ends in the next commit.
func (b *step) gatherEnds(first pawl.Event, events <-chan pawl.Event) (held []pawl.Event) {
	hold := func(e pawl.Event) {
		if t := b.task(e); t != nil {
			b.open--
			e = b.ended(t, e)
		}
		held = append(held, e)
	}

	hold(first)
	wait := time.After(gather)
	for b.open > 0 {
		select {
		case e, ok := <-events:
			if !ok {
				b.open = 0
				return held
			}
			hold(e)
		case <-wait:
			return held
		}
	}
	return held
}

// commit stores the ends of calls in held, and yields held. It returns false if yield did.
func (b *step) commit(held []pawl.Event, yield func(pawl.Event) bool) bool {
	err := b.session.flush(nil)
	for _, e := range held {
		if t := b.task(e); t != nil {
			if err != nil {
				e = notStored(t, e, err)
			}
			b.session.calls.settle(t.Key)
		}
		if !yield(e) {
			return false
		}
	}
	return true
}

// ended stores the end of a call, or its pending question.
func (b *step) ended(t *pawl.Task, e pawl.Event) pawl.Event {
	s := b.session
	s.mu.Lock()
	s.waiters[t.Key].withdraw(t.Key)
	s.mu.Unlock()

	x := *e.Execution
	switch {
	case b.interrupted(&x): // the call is still open
	case x.Outcome.Settled():
		if err := plain(&x); err != nil {
			_ = s.fail(err)
		}
		if s.add(record.KindOutcome, string(t.Key), record.Outcome{Call: t.Call, Execution: x}) != nil {
			return e
		}
	case len(x.Pending) > 0 && x.Pending[0].Key == t.Key:
		w := x.Pending[0]
		if s.asks(w) {
			key := record.Numbered(t.Key, record.KindQuestion, len(s.history.Questions[t.Key])+1)
			_ = s.add(record.KindQuestion, key, w)
		}
	}
	e.Execution = &x
	return e
}

// interrupted reports whether the call ended because the process ends, or because a record could
// not be stored. Such a call is still open.
func (b *step) interrupted(x *pawl.Execution) bool {
	if x.Outcome != pawl.OutcomeCancelled && x.Outcome.Settled() {
		return false
	}
	return b.ctx.Err() != nil && context.Cause(b.ctx) != pawl.ErrCancelled
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

// notStored returns the event for a call whose records could not be stored. For the run, the call
// has not ended.
func notStored(t *pawl.Task, e pawl.Event, err error) pawl.Event {
	if errors.Is(err, store.ErrUnavailable) {
		err = store.ErrUnavailable // the rest of its text is for the operator: Engine.Report
	}

	x := *e.Execution
	x.Outcome = pawl.OutcomeCancelled
	x.Error = err.Error()
	x.Result = llm.ErrorResult("Not recorded.")
	x.Result.CallID = t.Call.ID
	x.Result.Key = t.Key
	x.Ends = ""
	x.Pending = nil
	x.Values = nil
	e.Execution = &x
	return e
}
