package pawl

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Waiter is what an Engine is, too, where nothing may wait by itself: its runs are carried out by code that is replayed, as Temporal's workflows are.
type Waiter interface {
	Engine
	// After returns a context that ends with that cause after d. cancel must be called.
	After(ctx context.Context, d time.Duration, cause error) (_ context.Context, cancel context.CancelFunc)
	// Wait returns when ready is closed or ctx has ended.
	Wait(ctx context.Context, ready <-chan struct{})
}

func waiterOf(ctx context.Context) Waiter {
	e, _ := ctx.Value(engineKey{}).(engaged)
	w, _ := e.engine.(Waiter)
	return w
}

// endsAfter returns the context of a run that may take d.
func endsAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if w := waiterOf(ctx); w != nil {
		return w.After(ctx, d, ErrTime)
	}
	return context.WithTimeoutCause(ctx, d, ErrTime)
}

// waitFor waits until ready is closed; false: ctx has ended first.
func waitFor(ctx context.Context, ready <-chan struct{}) bool {
	if w := waiterOf(ctx); w != nil {
		w.Wait(ctx, ready)
		return ctx.Err() == nil
	}
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// InnerModel returns a's model inside of the middleware around it, which is what an engine asks in its place, and who knows what a request costs: nil, nobody
// does.
func (a *Agent) InnerModel() (llm.Model, llm.Pricer) {
	m, _, p := wrapped(a.Model, a.Middleware)
	return m, p
}

// AllTools returns the tools that a's runs have of their own: those of a.Tools, and result_read with Artifacts.
func (a *Agent) AllTools(ctx context.Context) ([]*Tool, error) {
	tools, err := Toolsets(a.Tools).Tools(ctx)
	if err != nil || a.Artifacts == nil {
		return tools, err
	}
	more, err := readers(ctx, a.Artifacts)
	return append(slices.Clip(tools), more...), err
}

// RunRemote has t carried out by do, elsewhere: there the task is made whole by Agent.Here. The limits of the run hold here, so the call counts from before do is called,
// or is not made at all.
func (t Task) RunRemote(do func(Task) Execution) Execution {
	b := t.scope.budget
	if err := b.take(); err != nil {
		p := &work{task: &t, x: Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt}}
		p.settle(context.Background(), llm.ToolResult{}, err)
		return p.x
	}
	x := do(t)
	if x.Attempts <= t.Attempt {
		b.giveBack()
	}
	x.Index, x.here = t.Index, true
	return x
}

// Child returns inner, a task that a call at t has made elsewhere, as one that Away and Do can take here.
func (t Task) Child(inner Task) Task {
	s := *t.scope
	s.depth++
	s.waits = true
	inner.scope = &s
	return inner
}

// Attach returns t, which came from a run of a elsewhere, as a task that can be carried out in this process: with a's tools, policies and middleware. run is the
// ID under which an engine keeps the run. Calls made inside of it go to inside, which may be a Recorder; nil: they are carried out here. No limit holds but those of the tools:
// see Away. An agent as a tool is refused here, since its calls
// would be repeated with the call around it: it is carried out where the run is (Tool.Inline).
func (a *Agent) Attach(ctx context.Context, t Task, run string, inside Executor) (Task, error) {
	tools, err := a.AllTools(ctx)
	if err != nil {
		return t, err
	}
	s := &scope{tools: tools, executor: inside, budget: &budget{limits: new(Limits)}, waits: true, whole: true, durable: run, away: true}
	if s.executor == nil {
		s.executor = Parallel{}
	}
	s.replays = replays(s.executor)
	s.recorder, _ = s.executor.(Recorder)
	s.slots = &slots{free: defaultParallel}
	_, s.layers, _ = wrapped(a.Model, a.Middleware)
	if a.Artifacts != nil {
		s.shelf = &shelf{store: a.Artifacts, run: run + "/" + string(t.Run)}
		if s.shelf.tools, err = readers(ctx, a.Artifacts); err != nil {
			return t, err
		}
	}
	t.scope = s
	return t, nil
}
