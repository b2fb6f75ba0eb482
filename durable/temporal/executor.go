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

	failed := new(failures)
	for {
		redo := false
		t.HeldBy = at.heldBy()
		// activity describes the failures of transport itself: there is no error.
		e, _ := t.RunRemote(func(t pawl.Task) (e pawl.Execution, err error) {
			e, redo = x.activity(ctx, def, t, failed)
			return e, nil
		})

		asks := len(e.Pending) > 0
		switch {
		case ctx.Err() == nil && e.Outcome == pawl.OutcomePending && !asks:
			at.wait() // it is held
		// With a question, too, an execution with a fault ends the run: see pawl.ExecutorError.
		case ctx.Err() != nil || !asks || e.Ends != "":
			e = atEnd(ctx, t, e)
			x.flow.addCall(ctx, &t, &e)
			return e
		case redo:
		case !x.settle(ctx, &t, e.Pending[0], at):
			return e
		case e.Pending[0].Digest != "":
			*failed = failures{} // the answer has its own tries
		}
	}
}

// atEnd returns the execution of t when no activity follows e: a question that an activity would
// have asked is asked here, and a call that did not begin says so.
func atEnd(ctx context.Context, t pawl.Task, e pawl.Execution) pawl.Execution {
	switch {
	case len(e.Pending) == 0 || e.Pending[0].Digest != "":
		return e
	case e.Outcome == pawl.OutcomeUnknown:
		return asked(ctx, t, e)
	}
	return t.Do(ctx, nil) // the run has ended: it reports so
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

// failures counts the activities of a call that had no outcome, since its last answer. More than
// a few are no accident, so that the call then fails or becomes a question.
type failures struct {
	unbegun   int // before the call began
	unsettled int // while it was settled what an earlier attempt did
}

// activity executes the call once. redo reports that it did not start.
func (x *executor) activity(
	ctx context.Context, def *toolDef, t pawl.Task, failed *failures,
) (e pawl.Execution, redo bool) {
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

	if err == nil {
		return f.checked(ctx, t, e), false
	}
	if f.in.State < 5 && isType(err, again) {
		return notYet(t), true
	}
	if f.unbegun(def, err) {
		failed.unbegun++
		if failed.unbegun < tries {
			return notYet(t), true
		}
		return f.neverBegan(ctx, def, t, err), false
	}

	// No worker can execute it, and so none can find out what an earlier attempt did.
	if f.in.State > 4 && isUnknown(t) && isType(err, notStarted) {
		return f.neverBegan(ctx, def, t, err), false
	}

	e = gone(ctx, def, t, err)
	if e.Outcome == pawl.OutcomeUnknown && isUnknown(t) {
		failed.unsettled++
		if failed.unsettled == tries && f.in.State > 4 {
			e = asked(ctx, t, e)
		}
	}
	return e, false
}

// checked returns e, which an activity returned for t, checked as a run checks what an Executor
// returns. The workers of a run may have other versions of the program, so that what they return is
// not known to be an execution of t. Up to version 4 of the state, it was used as it was.
func (f *flow) checked(ctx context.Context, t pawl.Task, e pawl.Execution) pawl.Execution {
	if f.in.State < 5 {
		return e
	}
	return t.DoBy(ctx, returned(e), nil)
}

// returned is an Executor that has executed its call.
type returned pawl.Execution

// Do returns the execution.
func (r returned) Do(context.Context, pawl.Task, func(pawl.Event)) (pawl.Execution, error) {
	return pawl.Execution(r), nil
}

// unbegun reports whether the call did not begin in the activity that failed with err.
func (f *flow) unbegun(def *toolDef, err error) bool {
	if isType(err, again) {
		return true
	}
	return f.in.State > 1 && def.Effect.Assumed() == pawl.EffectWrite && untouched(err)
}

// isType reports whether err is an error of an activity or of the workflow, of the type name.
func isType(err error, name string) bool {
	var app *sdk.ApplicationError
	return errors.As(err, &app) && app.Type() == name
}

// neverBegan returns the outcome of a call that no activity began. If an earlier attempt may have
// had an effect, this is the question.
func (f *flow) neverBegan(ctx context.Context, def *toolDef, t pawl.Task, err error) pawl.Execution {
	if f.in.State > 4 && isUnknown(t) {
		why := worded(err).Error()
		return asked(ctx, t, unknown(t, t.Attempt, why))
	}

	e := gone(ctx, &toolDef{Effect: pawl.EffectRead}, t, err)
	if !def.onlyReads() {
		e.Certainty = delivery.NotSent
	}
	return e
}

// isUnknown reports whether an earlier attempt of the call may have had an effect.
func isUnknown(t pawl.Task) bool {
	return t.Pending != nil && t.Pending.Outcome == pawl.OutcomeUnknown
}

// asked returns e, whose outcome is unknown and which no activity can settle, with the question
// that a run asks then.
func asked(ctx context.Context, t pawl.Task, e pawl.Execution) pawl.Execution {
	why := e.Pending[0].Why
	e.Pending = nil
	e = t.DoBy(ctx, returned(e), nil)
	if len(e.Pending) > 0 {
		e.Pending[0].Why = why
	}
	return e
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

	switch {
	case sdk.IsCanceledError(err) && ctx.Err() != nil:
		// It did not start: it reports the cancellation of the run.
		return t.Do(ctx, func(pawl.Event) {})
	case isType(err, notStarted):
		if !def.onlyReads() {
			e.Certainty = delivery.NotSent
		}
		return fail("The call cannot be executed here.")
	case def.Effect.Assumed() == pawl.EffectWrite:
		return unknown(t, t.Attempt+1, worded(err).Error())
	}
	e.Attempts++
	text := "The tool could not be executed: the machine that ran it was lost each time it was tried."
	if !def.onlyReads() {
		e.Certainty = delivery.Unknown
		text += " What the call does may have happened."
	}
	return fail(text)
}

// onlyReads reports whether calls of the tool may be repeated without an effect.
func (d *toolDef) onlyReads() bool {
	return d.Effect == pawl.EffectRead || d.Effect == pawl.EffectPure
}

// unknown returns the execution of a call that may have taken effect. Its question has no Digest:
// it has not been asked.
func unknown(t pawl.Task, attempts int, why string) pawl.Execution {
	w := pawl.PendingCall{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeUnknown, Attempt: attempts, Why: why}
	return pawl.Execution{
		Key:       t.Key,
		Index:     t.Index,
		Call:      t.Call,
		Attempts:  attempts,
		Outcome:   pawl.OutcomeUnknown,
		Certainty: delivery.Unknown,
		Pending:   []pawl.PendingCall{w},
	}
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

// composingTries is the number of tries for the activity of a composing call. Each deployment of
// its worker may cost one, while the call waits for days. Failures alone reach it after 16 hours.
const composingTries = 1000

// options returns the options for the activity of a call. A Write is tried once. Other calls may be
// repeated when their worker is lost, a composing call many times.
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
		o.RetryPolicy = retries(composingTries)
	}
	return o
}

// summary returns the text for the cluster's pages, at most 400 bytes.
func summary(s string) string {
	return s[:min(len(s), 300)]
}
