package temporal

import (
	"context"
	"errors"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// executor executes calls by activities, and waits with pending calls. No call starts early: its
// reply must be in the history first.
type executor struct {
	flow    *flow
	node    *node
	remote  map[*pawl.Tool]*toolDef // for lookups, never for iteration
	inOrder bool
	model   *model // of the same run
}

var _ pawl.Executor = (*executor)(nil)

// turnKey is the context key of the *turn of a call.
type turnKey struct{}

// Do executes a call until its end, including the wait for answers and for earlier calls.
func (x *executor) Do(ctx context.Context, t pawl.Task, _ func(pawl.Event)) (pawl.Execution, error) {
	at, _ := ctx.Value(turnKey{}).(*turn)
	return x.one(ctx, t, at), nil
}

// schedule executes tasks, each on its own coroutine: pawl.Engine.Schedule.
func (f *flow) schedule(ctx context.Context, tasks []pawl.Task, do func(context.Context, pawl.Task) pawl.Execution) {
	x := f.executors[tasks[0].Run]
	if x.inOrder {
		oneByOne(context.WithValue(ctx, turnKey{}, (*turn)(nil)), tasks, do)
		return
	}

	wctx := within(ctx)
	ended := workflow.NewBufferedChannel(wctx, len(tasks))
	o := x.newOrder(tasks)
	for i := range tasks {
		workflow.Go(wctx, func(g workflow.Context) {
			at := &turn{o, i, g}
			at.begin()
			own := context.WithValue(ctx, contextKey{}, g)
			do(context.WithValue(own, turnKey{}, at), tasks[i])
			at.finish()
			ended.SendAsync(i)
		})
	}
	for range tasks {
		ended.Receive(wctx, nil)
	}
}

// oneByOne implements Parallel.StopOnBlock.
func oneByOne(ctx context.Context, tasks []pawl.Task, do func(context.Context, pawl.Task) pawl.Execution) {
	for i := range tasks {
		e := do(ctx, tasks[i])
		if e.Outcome != pawl.OutcomeBlocked {
			continue
		}
		later := tasks[i+1:]
		for j := range later {
			later[j].Refuse = "Not run: the call before it, " + tasks[i].Call.Name + ", was blocked."
		}
	}
}

// one executes a call until its end, including the wait for answers and for earlier calls. A nil at
// means that no other call is open.
func (x *executor) one(ctx context.Context, t pawl.Task, at *turn) pawl.Execution {
	def := x.remote[t.Tool()]
	// It acts through other calls, or there is no work.
	if def == nil || t.Refuse != "" || ctx.Err() != nil {
		e := t.Do(ctx, func(pawl.Event) {})
		x.flow.addCall(ctx, &t, &e)
		return e
	}

	lost := 0
	for {
		redo := false
		t.HeldBy = at.heldBy()
		// activity describes the failures of transport itself: there is no error.
		e, _ := t.RunRemote(func(t pawl.Task) (e pawl.Execution, err error) {
			e, redo = x.activity(ctx, def, t, &lost)
			return e, nil
		})

		asks := len(e.Pending) > 0
		switch {
		case ctx.Err() == nil && e.Outcome == pawl.OutcomePending && !asks:
			at.wait() // it is held
		case ctx.Err() != nil || !asks:
			x.flow.addCall(ctx, &t, &e)
			return e
		case redo:
		case !x.settle(ctx, &t, e.Pending[0], at):
			return e
		}
	}
}

// settle makes t the call after its question w: with the answer, or to be settled by an activity.
// It returns false if the run ended before the answer.
func (x *executor) settle(ctx context.Context, t *pawl.Task, w pawl.PendingCall, at *turn) bool {
	if w.Outcome == pawl.OutcomeUnknown && w.Why == "" && t.Pending != nil {
		w.Why = t.Pending.Why
	}
	t.Attempt = w.Attempt
	t.Pending = &w
	t.Decisions = nil
	// An activity settles it: by the tool's Reconcile, or it asks the question.
	if w.Digest == "" {
		return true
	}

	at.open()
	d := x.flow.ask(ctx, w)
	if d == nil {
		return false
	}
	at.wait()
	t.Decisions = []llm.Decision{*d}
	return true
}

// activity executes the call once. redo reports that it did not start. lost counts the losses of
// its worker.
func (x *executor) activity(ctx context.Context, def *toolDef, t pawl.Task, lost *int) (e pawl.Execution, redo bool) {
	f := x.flow
	leave := x.enter(ctx, def, t)
	if leave == nil {
		return t.Do(ctx, func(pawl.Event) {}), false // the run has ended: it reports so
	}
	wctx := workflow.WithActivityOptions(within(ctx), f.options(def, t))
	in := callInput{Agent: x.node.root, Path: x.node.path, Run: f.run, Task: t, Head: x.model.head()}
	f.busy++
	err := workflow.ExecuteActivity(wctx, activityCall, in).Get(wctx, &e)
	f.busy--
	leave()

	var app *sdk.ApplicationError
	switch {
	case err == nil:
		return e, false
	case errors.As(err, &app) && app.Type() == again:
		return notYet(t), true
	case f.in.State > 1 && def.Effect.Assumed() == pawl.EffectWrite && untouched(err):
		*lost++
		if *lost < tries {
			return notYet(t), true
		}
		// No side effect happened.
		e = gone(ctx, &toolDef{Effect: pawl.EffectRead}, t, err)
		e.Certainty = delivery.NotSent
		return e, false
	}
	return gone(ctx, def, t, err), false
}

// enter takes a slot of the run for the call. A composing call needs none, because it acts through
// calls that return to the workflow and have slots themselves. leave releases what enter took. It
// is nil if the run ended before a slot was free.
func (x *executor) enter(ctx context.Context, def *toolDef, t pawl.Task) (leave func()) {
	f := x.flow
	if def.Effect != pawl.EffectCompose {
		if f.slots.Acquire(within(ctx), 1) != nil {
			return nil
		}
		return func() { f.slots.Release(1) }
	}

	f.live[t.Key] = liveCall{t, x}
	f.held += min(f.inner[t.Key], 1)
	return func() {
		delete(f.live, t.Key)
		f.held -= min(f.inner[t.Key], 1)
	}
}

// gone returns the outcome of a call whose activity failed: the worker failed, or lacked a
// requirement.
func gone(ctx context.Context, def *toolDef, t pawl.Task, err error) pawl.Execution {
	e := pawl.Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt}
	fail := func(text string) pawl.Execution {
		e.Outcome = pawl.OutcomeError
		e.Error = worded(err).Error()
		e.Result = llm.ErrorResult(text)
		e.Result.CallID = t.Call.ID
		e.Result.Key = t.Key
		return e
	}

	var app *sdk.ApplicationError
	known := errors.As(err, &app)
	switch {
	case sdk.IsCanceledError(err) && ctx.Err() != nil:
		// It did not start: it reports the cancellation of the run.
		return t.Do(ctx, func(pawl.Event) {})
	case known && app.Type() == notStarted:
		if def.Effect != pawl.EffectRead && def.Effect != pawl.EffectPure {
			e.Certainty = delivery.NotSent
		}
		return fail("The call cannot be executed here.")
	case def.Effect.Assumed() == pawl.EffectWrite:
		e.Attempts++
		e.Outcome = pawl.OutcomeUnknown
		e.Certainty = delivery.Unknown
		// The Digest is empty: the question has not been asked.
		e.Pending = []pawl.PendingCall{{
			Key:     t.Key,
			Call:    t.Call,
			Outcome: pawl.OutcomeUnknown,
			Attempt: e.Attempts,
			Why:     worded(err).Error(),
		}}
		return e
	}
	e.Attempts++
	text := "The tool could not be executed: the machine that ran it was lost each time it was tried."
	if def.Effect != pawl.EffectRead && def.Effect != pawl.EffectPure {
		e.Certainty = delivery.Unknown
		text += " What the call does may have happened."
	}
	return fail(text)
}

// notYet returns the state of a call that another activity must execute, as if this one had not
// existed.
func notYet(t pawl.Task) pawl.Execution {
	w := pawl.PendingCall{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomePending, Attempt: t.Attempt}
	if q := t.Pending; q != nil {
		w.Outcome = q.Outcome
	}
	return pawl.Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt,
		Outcome: pawl.OutcomePending, Pending: []pawl.PendingCall{w}}
}

// untouched reports whether the worker of a Write, or its task, was lost before any side effect
// could happen: see pulse.
func untouched(err error) bool {
	var late *sdk.TimeoutError
	return errors.As(err, &late) && !late.HasLastHeartbeatDetails()
}

// options returns the options for the activity of a call. A Write is tried once. Other calls may be
// repeated when their worker is lost, a composing call without limit.
func (f *flow) options(def *toolDef, t pawl.Task) workflow.ActivityOptions {
	o := workflow.ActivityOptions{
		HeartbeatTimeout:    f.worker.engine.heartbeat(),
		WaitForCancellation: true,
		RetryPolicy:         retries(tries),
		Summary:             summary(def.Name + " " + string(t.Key)),
		// Where the pipeline has no timeout, the heartbeat shows whether a worker is active.
		StartToCloseTimeout: 7 * 24 * time.Hour,
	}
	switch def.Effect.Assumed() {
	case pawl.EffectWrite:
		o.RetryPolicy = retries(1)
	case pawl.EffectCompose:
		o.RetryPolicy = retries(0)
	}
	return o
}

// summary returns the text for the cluster's pages, at most 400 bytes.
func summary(s string) string {
	return s[:min(len(s), 300)]
}
