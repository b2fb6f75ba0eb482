package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/llm"
)

const (
	defaultTimeout = 60 * time.Second
	maxRetries     = 2
	retryDelay     = 100 * time.Millisecond
	grace          = 5 * time.Second // for a cancelled tool to end, before the run goes on without it
)

// attempts runs the tool, and repeats it after a timeout or a fault that may pass where its effect allows that.
func (p *work) attempts(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	retries := 0
	switch p.tool.Effect {
	case EffectPure, EffectRead, EffectIdempotent:
		retries = maxRetries
	}
	for try := 0; ; try++ {
		if err := p.intend(ctx, c); err != nil {
			return llm.ToolResult{}, err
		}
		p.x.Attempts++
		if p.tool.Effect == EffectWrite {
			for v := p.task.scope.within; v != nil; v = v.work.task.scope.within {
				v.wrote.Store(true)
			}
		}
		p.inv.Attempt = p.x.Attempts
		started := p.x
		p.started.Store(&started)
		p.event(Event{Kind: EventCallStarted, Call: &started.Call, Attempt: started.Attempts})
		res, err := p.attempt(ctx, &started)
		if err == nil || try == retries || ctx.Err() != nil || !IsRetryable(err) {
			return res, err
		}
		p.notice("retry", fmt.Sprintf("attempt %d failed: %v", p.x.Attempts, err))
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
func (p *work) attempt(outer context.Context, started *Execution) (res llm.ToolResult, err error) {
	ctx, limit := outer, p.tool.timeout()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(outer, limit, errTimeout)
		defer cancel()
	}
	stop := p.watch(started, limit)
	res, err = p.run(ctx, started.Call)
	stop()
	if err == nil || ctx.Err() == nil {
		return res, err
	}
	var ctl *control
	if errors.As(err, &ctl) {
		return res, err
	}
	if context.Cause(ctx) == errTimeout {
		return res, p.timedOut(err)
	}
	return res, p.interrupted(outer, err)
}

var (
	errTimeout   = errors.New("the tool's time is over")
	errGone      = errors.New("the tool's goroutine is gone")
	errAbandoned = errors.New("it did not end when its context did, and was abandoned")
)

// timeout is how long one attempt may take; 0: as long as it likes.
func (t *Tool) timeout() time.Duration {
	switch {
	case t.Timeout < 0, t.Timeout == 0 && t.Effect == EffectCompose:
		return 0
	case t.Timeout == 0:
		return defaultTimeout
	}
	return t.Timeout
}

// timedOut is the error of a call that took too long.
func (p *work) timedOut(err error) error {
	return &failure{outcome: OutcomeTimeout, err: err, repeat: true,
		text: fmt.Sprintf("%s did not end within %v%s", p.tool.Name, p.tool.timeout(), p.mayHaveHappened())}
}

// interrupted is the error of a call that was begun and then cancelled.
func (p *work) interrupted(ctx context.Context, err error) error {
	f := &failure{outcome: OutcomeCancelled, err: err}
	switch cause := context.Cause(ctx); cause {
	case ErrCancelled:
		f.text = "Cancelled while it ran" + p.mayHaveHappened()
	case errFailFast:
		f.text = "Ended because another call of this step failed" + p.mayHaveHappened()
	default:
		f.text = "Interrupted" + p.mayHaveHappened()
		// A call that composes would repeat the Writes inside it. An engine that records finds them done instead.
		if p.tool.Effect == EffectWrite || p.inv.wrote.Load() && !p.task.scope.engine.Replays {
			f.outcome = OutcomeUnknown
		}
	}
	return f
}

func (p *work) mayHaveHappened() string {
	switch p.tool.Effect {
	case EffectWrite, EffectIdempotent, EffectCompose:
		return ". What it does may have happened."
	}
	return "."
}

// notBegun is the error of a call that was cancelled before it began.
func notBegun(ctx context.Context) error {
	if context.Cause(ctx) == errFailFast {
		return fail(OutcomeSkipped, "Not run: another call of this step failed.")
	}
	return fail(OutcomeCancelled, "Not run: the run was cancelled.")
}

// run calls the tool and turns a panic into an error.
func (p *work) run(ctx context.Context, c llm.ToolCall) (res llm.ToolResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	p.inv.busy.Store(true)
	defer p.inv.busy.Store(false)
	res, err = p.tool.Run(ctx, c)
	if p.waitsInside() {
		return llm.ToolResult{}, errWaits
	}
	return res, err
}

// panicked keeps the panic for the record and its text, stack and paths from the model.
func panicked(v any) error {
	return &failure{outcome: OutcomePanicked, text: "The tool failed unexpectedly and gave no result.", err: fmt.Errorf("panic: %v", v)}
}

// The states of a work. Whoever leaves workRuns completes the call.
const (
	workRuns int32 = iota
	workEnded
	workAbandoned
)

// watch starts the timer of an attempt: the tool is abandoned if it has not returned within its timeout and the grace period. stop ends
// the watch.
func (w *work) watch(started *Execution, limit time.Duration) (stop func()) {
	if w.batch == nil || limit <= 0 {
		return func() {}
	}
	w.watched.Store(started)
	timer := time.AfterFunc(limit+grace, func() {
		if w.watched.CompareAndSwap(started, nil) {
			w.abandon(errTimeout)
		}
	})
	return func() {
		w.watched.Store(nil)
		timer.Stop()
	}
}

// abandon completes the call without waiting for its tool; what the tool returns later is dropped. why is errTimeout, errGone, or nil if
// the context of the batch has ended. The goroutine of the tool may still use w, so the result is made in another work, of what was known
// when the attempt started.
func (w *work) abandon(why error) {
	if !w.state.CompareAndSwap(workRuns, workAbandoned) {
		return
	}
	b := w.batch
	task := &b.tasks[w.index]
	a := &work{task: task, x: newExecution(task)}
	a.inv.taken = true
	err := notBegun(b.ctx)
	if started := w.started.Load(); started != nil {
		w.inv.close()
		a.x, a.tool = *started, w.tool
		a.x.Index = task.Index
		a.x.Values, a.x.Spent = w.inv.set, w.inv.used() // they do not change any more
		a.inv.wrote.Store(w.inv.wrote.Load())
		switch why {
		case errTimeout:
			err = a.timedOut(errAbandoned)
		case errGone:
			err = panicked("the tool ended its goroutine")
		default:
			err = a.interrupted(b.ctx, errAbandoned)
		}
	}
	a.settle(b.ctx, llm.ToolResult{}, err)
	a.x.Ended = time.Now()
	task.scope.release(w)
	b.worker() // in place of the goroutine that is lost
	b.done(w.index, &a.x)
}

// take takes one of the run's slots, which release gives back; false when ctx ended first.
func (s *scope) take(ctx context.Context, w *work) bool {
	if !s.slots.take(ctx) {
		return false
	}
	if w.batch != nil {
		w.slot.Store(true)
	}
	return true
}

// release gives the slot of a call back, once, whether the call ended or was left behind.
func (s *scope) release(w *work) {
	if w.batch == nil || w.slot.CompareAndSwap(true, false) {
		s.slots.give()
	}
}
