package temporal

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// executor has calls carried out by activities, and waits with those that wait. It is no Beginner: a call must not start before its reply is in the history.
type executor struct {
	f       *flow
	n       *node
	away    map[*pawl.Tool]*toolDef // looked up, never gone through
	inOrder bool
}

var _ pawl.Replayer = (*executor)(nil)

// Replays returns true: calls inside of others can wait, since they wait here.
func (x *executor) Replays() bool { return true }

// Execute carries out tasks, each on a coroutine of its own, and yields on the one that ranges over it.
func (x *executor) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return func(yield func(pawl.Event) bool) {
		if x.inOrder {
			x.oneByOne(ctx, tasks, yield)
			return
		}
		wctx := within(ctx)
		ended := workflow.NewBufferedChannel(wctx, len(tasks))
		var before workflow.Future // the last call of a tool with Serial keys
		for i := range tasks {
			first := before
			var done workflow.Settable
			if def := x.away[tasks[i].Tool()]; def != nil && def.Serial {
				before, done = workflow.NewFuture(wctx)
			}
			workflow.Go(wctx, func(g workflow.Context) {
				if done != nil && first != nil {
					_ = first.Get(g, nil) // also when the run ends meanwhile
				}
				e := x.one(context.WithValue(ctx, contextKey{}, g), tasks[i])
				if done != nil {
					done.SetValue(nil)
				}
				ended.SendAsync(&told{tasks[i].Completed(e)})
			})
		}
		more := true
		for range tasks {
			var e *told
			ended.Receive(wctx, &e)
			more = more && yield(e.Event)
		}
	}
}

type told struct{ pawl.Event }

// oneByOne is what Parallel.StopOnBlock asks for.
func (x *executor) oneByOne(ctx context.Context, tasks []pawl.Task, yield func(pawl.Event) bool) {
	for i := range tasks {
		e := x.one(ctx, tasks[i])
		if !yield(tasks[i].Completed(e)) {
			return
		}
		if e.Outcome == pawl.OutcomeBlocked {
			for j := range tasks[i+1:] {
				tasks[i+1+j].Refuse = "Not run: the call before it, " + tasks[i].Call.Name + ", was blocked."
			}
		}
	}
}

// one carries out a call to its end, answers waited for.
func (x *executor) one(ctx context.Context, t pawl.Task) pawl.Execution {
	def := x.away[t.Tool()]
	if def == nil || t.Refuse != "" || ctx.Err() != nil { // it acts through others, or there is nothing to do
		e := t.Do(ctx, func(pawl.Event) {})
		x.f.keepCall(ctx, &t, &e)
		return e
	}
	for lost := 0; ; {
		redo := false
		e := t.Away(func(t pawl.Task) (e pawl.Execution) {
			e, redo = x.activity(ctx, def, t, &lost)
			return e
		})
		if len(e.Waiting) == 0 || ctx.Err() != nil {
			x.f.keepCall(ctx, &t, &e)
			return e
		}
		if redo {
			continue
		}
		w := e.Waiting[0]
		if w.Outcome == pawl.OutcomeUnknown && w.Why == "" && t.Question != nil {
			w.Why = t.Question.Why
		}
		t.Attempt, t.Question, t.Decisions = w.Attempt, &w, nil
		if w.Digest == "" {
			continue // it is settled by an activity: by the tool's Reconcile, or the question is asked
		}
		d := x.f.ask(ctx, w)
		if d == nil {
			return e
		}
		t.Decisions = []llm.Decision{*d}
	}
}

// activity carries out the call once. redo: it did not come to that, and lost counts how often it was since its worker was lost.
func (x *executor) activity(ctx context.Context, def *toolDef, t pawl.Task, lost *int) (e pawl.Execution, redo bool) {
	f := x.f
	if def.Effect == pawl.Compose { // it acts through calls that come back here
		f.live[t.Key] = liveCall{t, x}
	} else {
		if f.slots.Acquire(within(ctx), 1) != nil {
			return t.Do(ctx, func(pawl.Event) {}), false // the run has ended: it says so
		}
	}
	wctx := workflow.WithActivityOptions(within(ctx), f.options(def, t))
	f.busy++
	err := workflow.ExecuteActivity(wctx, activityCall, callInput{Agent: x.n.root, Path: x.n.path, Run: f.run, Task: t}).Get(wctx, &e)
	f.busy--
	if def.Effect == pawl.Compose {
		delete(f.live, t.Key)
	} else {
		f.slots.Release(1)
	}
	var app *sdk.ApplicationError
	switch {
	case err == nil:
		return e, false
	case errors.As(err, &app) && app.Type() == again:
		return notYet(t), true
	case f.in.State > 1 && def.Effect == pawl.Write && untouched(err):
		if *lost++; *lost < tries {
			return notYet(t), true
		}
		return gone(ctx, &toolDef{Effect: pawl.Read}, t, err), false // nothing happened
	}
	return gone(ctx, def, t, err), false
}

// gone is how a call ended whose activity failed: its worker did, or never had what it takes.
func gone(ctx context.Context, def *toolDef, t pawl.Task, err error) pawl.Execution {
	e := pawl.Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt}
	fail := func(o pawl.Outcome, text string) pawl.Execution {
		e.Outcome, e.Error, e.Result = o, worded(err).Error(), llm.ErrorResult(text)
		e.Result.CallID, e.Result.Key = t.Call.ID, t.Key
		return e
	}
	var app *sdk.ApplicationError
	known := errors.As(err, &app)
	switch {
	case sdk.IsCanceledError(err) && ctx.Err() != nil:
		return t.Do(ctx, func(pawl.Event) {}) // it was not begun: it says that the run was cancelled
	case known && app.Type() == notBegun:
		return fail(pawl.OutcomeError, "The call cannot be carried out here.")
	case def.Effect == pawl.Write:
		e.Attempts++
		e.Outcome = pawl.OutcomeUnknown
		e.Waiting = []pawl.Waiting{{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeUnknown, Attempt: e.Attempts, Why: worded(err).Error()}} // without a Digest: nobody has been asked
		return e
	}
	e.Attempts++
	return fail(pawl.OutcomeError, "The tool could not be carried out: the machine that ran it was lost each time it was tried.")
}

// notYet is how a call stands that has to be carried out by one more activity, as if this one had not been.
func notYet(t pawl.Task) pawl.Execution {
	w := pawl.Waiting{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomePending, Attempt: t.Attempt}
	if q := t.Question; q != nil {
		w.Outcome = q.Outcome
	}
	return pawl.Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt, Outcome: pawl.OutcomePending, Waiting: []pawl.Waiting{w}}
}

// untouched reports whether the worker of a Write was lost, or its task, before anything can have happened: see pulse.
func untouched(err error) bool {
	var late *sdk.TimeoutError
	return errors.As(err, &late) && !late.HasLastHeartbeatDetails()
}

// options are those of the activity of a call. A Write is tried once; all else may be repeated when its worker is lost, a composing call as often as it takes.
func (f *flow) options(def *toolDef, t pawl.Task) workflow.ActivityOptions {
	o := workflow.ActivityOptions{HeartbeatTimeout: f.w.engine.heartbeat(), WaitForCancellation: true, RetryPolicy: retries(tries), Summary: summary(def.Name + " " + string(t.Key)),
		StartToCloseTimeout: 7 * 24 * time.Hour} // where the pipeline keeps no time, the heartbeat tells whether somebody is at work
	switch def.Effect {
	case pawl.Write:
		o.RetryPolicy = retries(1)
	case pawl.Compose:
		o.RetryPolicy = retries(0)
	}
	return o
}

// summary is what the cluster's pages show, 400 bytes at most.
func summary(s string) string {
	return s[:min(len(s), 300)]
}
