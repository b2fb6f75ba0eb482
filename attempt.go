package pawl

// attempt.go: runs the tool: timeout, retry, panic, abandonment.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/internal/intent"
	"github.com/pawl-go/pawl/llm"
)

const (
	defaultTimeout = 60 * time.Second
	maxRetries     = 2
	retryDelay     = 100 * time.Millisecond

	// abandonGrace is the time that a cancelled tool has to return. Then the run continues.
	abandonGrace = 5 * time.Second

	// executorGrace is the time that an Executor has to return after the end of its context. It is
	// longer, because an Executor abandons tools itself, by Task.Do, and then knows more.
	executorGrace = 2 * abandonGrace

	// timeoutGrace is the time that a tool has to return after its timeout before the call ends
	// without it.
	timeoutGrace = 100 * time.Millisecond
)

// attempts runs the tool. It retries after a timeout or a temporary fault if the tool's effect
// allows it.
func (w *work) attempts(ctx context.Context) (llm.ToolResult, error) {
	retries := 0
	switch w.tool.Effect {
	case EffectPure, EffectRead, EffectIdempotent:
		retries = maxRetries
	}
	// Only of a write does it matter whether it happened.
	if w.tool.StatesSending && w.tool.Effect.Assumed() == EffectWrite {
		w.late = new(intent.Late)
	}
	for try := 0; ; try++ {
		if w.late == nil {
			if err := w.intend(ctx, w.exec.Call, w.exec.Attempts+1); err != nil {
				return llm.ToolResult{}, notRecorded(err)
			}
		}
		w.exec.Attempts++
		w.inv.Attempt, w.inv.Call = w.exec.Attempts, w.exec.Call
		w.inv.Call.Args, w.inv.Call.Opaque = bytes.Clone(w.exec.Call.Args), w.exec.Call.Opaque.Clone()
		started := w.exec
		w.started.Store(&started)
		w.event(Event{Kind: EventCallStarted, Call: &started.Call, Attempt: started.Attempts})
		res, err := w.attempt(ctx, &started)
		last := try == retries || ctx.Err() != nil
		if err == nil || last || !IsRetryable(err) {
			return res, err
		}
		w.notice("retry", fmt.Sprintf("attempt %d failed: %v", w.exec.Attempts, err))
		if w.mayChange() && !w.certaintyOf(err).NoEffect() {
			w.lost.Store(true)
		}
		if !wait(ctx, retryDelay<<try) {
			return res, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt runs the tool once, for no longer than its timeout.
func (w *work) attempt(outer context.Context, started *Execution) (res llm.ToolResult, err error) {
	ctx := outer
	limit := w.tool.timeout()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(outer, limit, errTimeout)
		defer cancel()
		if w.end != nil { // a tool that ignores the end of its context is abandoned
			w.watched.Store(started)
			late := time.AfterFunc(limit+timeoutGrace, func() { w.overdue(started) })
			defer func() {
				w.watched.Store(nil)
				late.Stop()
			}()
		}
	}
	res, err = w.call(ctx)

	// The engine did not store the intent, so that the tool had no permission to send anything
	// (Invocation.Sending). What it has returned does not count.
	if _, refused := w.late.End(); refused != nil && ctx.Err() == nil {
		return llm.ToolResult{}, notRecorded(refused)
	}
	if err == nil || ctx.Err() == nil {
		return res, err
	}

	// A tool that has decided to end the run is obeyed, even if its time is over.
	var ctl *control
	if errors.As(err, &ctl) {
		return res, err
	}
	if context.Cause(ctx) == errTimeout {
		return res, w.timedOut(err)
	}
	return res, w.interrupted(outer, err)
}

// intend stores the intent of an attempt of call. Nothing of the attempt has an effect before.
func (w *work) intend(ctx context.Context, call llm.ToolCall, attempt int) error {
	s := w.task.scope
	if w.tool.Effect.Assumed() == EffectWrite {
		for v := s.within; v != nil; v = v.work.task.scope.within {
			v.wrote.Store(true)
		}
	}
	if !w.isRecorded() {
		return nil
	}
	return s.engine.Intend(ctx, *w.task, call, w.tool, attempt)
}

// isRecorded reports whether an engine stores the intents of the call.
func (w *work) isRecorded() bool {
	s := w.task.scope
	return s.engine.Intend != nil && w.tool.Effect != EffectCompose && w.tool != s.answer
}

// notRecorded returns the error of a call whose intent the engine has not stored.
func notRecorded(err error) error {
	return &failure{outcome: OutcomeCancelled, err: err, text: "Not run: it could not be recorded."}
}

// overdue abandons an attempt whose tool has not returned after its timeout.
func (w *work) overdue(started *Execution) {
	if w.watched.CompareAndSwap(started, nil) {
		w.abandon(errTimeout)
	}
}

var (
	errTimeout   = errors.New("the tool's time is over")
	errGone      = errors.New("the tool's goroutine is gone")
	errAbandoned = errors.New("it did not end when its context did, and was abandoned: its goroutine still runs")
)

// timeout returns the time limit of one attempt. 0 means no limit.
func (t *Tool) timeout() time.Duration {
	switch {
	case t.Timeout < 0, t.Timeout == 0 && t.Effect == EffectCompose:
		return 0
	case t.Timeout == 0:
		return defaultTimeout
	}
	return t.Timeout
}

// timedOut returns the error of a call that took too long.
func (w *work) timedOut(err error) error {
	still := ""
	if err == errAbandoned {
		still = " and still runs"
	}
	c := w.interruptedCertainty(err)
	return &failure{outcome: OutcomeTimeout, err: err, repeat: true, certainty: c,
		text: fmt.Sprintf("%s did not end within %v%s%s", w.tool.Name, w.tool.timeout(), still, sentence(c))}
}

// interrupted returns the error of a call that was cancelled after it had started.
func (w *work) interrupted(ctx context.Context, err error) error {
	c := w.interruptedCertainty(err)
	f := &failure{outcome: OutcomeCancelled, err: err, certainty: c}
	switch cause := context.Cause(ctx); cause {
	case ErrCancelled:
		f.text = "Cancelled while it ran" + sentence(c)
	case errFailFast:
		f.text = "Ended because another call of this step failed" + sentence(c)
	default:
		f.text = "Interrupted" + sentence(c)
		// A composing call would repeat its nested Writes, unless an engine replays their outcomes.
		writes := w.tool.Effect.Assumed() == EffectWrite
		composed := w.inv.wrote.Load() && !w.task.scope.engine.Replays
		switch {
		case (writes || composed) && !c.NoEffect():
			f.outcome = OutcomeUnknown

		// The intent is stored, so that an open call would be unknown to the next process. The
		// outcome is stored in its place.
		case writes && w.isRecorded() && !w.isUnsent():
			f.outcome = OutcomeError
		}
	}
	return f
}

// notStarted returns the error of a call that was cancelled before it started.
func notStarted(ctx context.Context) error {
	if context.Cause(ctx) == errFailFast {
		return fail(OutcomeSkipped, "Not run: another call of this step failed.")
	}
	return fail(OutcomeCancelled, "Not run: the run was cancelled.")
}

// call calls the tool with the copy of the call, and turns a panic into an error.
func (w *work) call(ctx context.Context) (res llm.ToolResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	w.inv.busy.Store(true)
	defer w.inv.busy.Store(false)
	res, err = w.tool.Run(ctx, w.inv.Call)
	if w.pendingInside() {
		return llm.ToolResult{}, errPending
	}
	return res, err
}

// panicked returns the error for the panic value v. The record has v; the model receives no text,
// stack or path of it.
func panicked(v any) error {
	return &failure{outcome: OutcomePanicked,
		text: "The tool failed unexpectedly and gave no result.", err: fmt.Errorf("panic: %v", v)}
}

// abandon completes the call without waiting for its tool; what the tool returns later is dropped.
// cause is errTimeout, errGone, a *failure, or nil if w.ctx has ended. The goroutine of the tool
// may still use w, so the result is made in another work, from the state at the start of the
// attempt.
func (w *work) abandon(cause error) {
	if w.end == nil || !w.state.CompareAndSwap(workRuns, workAbandoned) {
		return
	}
	a := &work{task: w.task, exec: newExecution(w.task)}
	a.inv.accepted = true
	err, started := notStarted(w.ctx), w.started.Load()
	w.inv.close()
	if started != nil {
		a.exec, a.tool = *started, w.tool
		a.exec.Index = w.task.Index
		a.exec.Values = w.inv.set
		a.exec.Spent = w.inv.spent // they do not change any more
		a.inv.wrote.Store(w.inv.wrote.Load())
		a.late = w.late
		a.lost.Store(w.lost.Load())
		a.isReconciled = w.isReconciled
	}
	f, ok := cause.(*failure)
	switch {
	case ok:
		err = f
	case started == nil:
	case cause == errTimeout:
		err = a.timedOut(errAbandoned)
	case cause == errGone:
		err = panicked("the tool ended its goroutine")
	default:
		err = a.interrupted(w.ctx, errAbandoned)
	}
	a.complete(w.ctx, llm.ToolResult{}, err)
	a.exec.Ended = time.Now()

	// The slot is released although the goroutine still runs: a tool that never returns must not
	// block the others.
	w.task.scope.slots.Release(&w.slot)
	w.end(w, &a.exec)
}
