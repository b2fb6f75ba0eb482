package pawl

// engine.go: Engine and RunOptions, and what an Engine needs of the core: remote tasks, child runs
// and replayed calls.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/panics"
	"github.com/pawl-go/pawl/internal/slots"
	"github.com/pawl-go/pawl/llm"
)

// Engine makes the runs of an agent durable. Package durable fills it in for a journal, package
// durable/temporal for a workflow; programs do not normally build one.
//
// A zero field leaves that concern to this process. An engine applies to every run that starts
// under its context, and to the runs of nested agents (Agent.Tool). It does not apply to a run that
// a tool starts itself with Agent.Run: that run is part of the tool's effect. An Engine must be
// safe for concurrent use, and must not be changed while a run uses it.
type Engine struct {
	// Run is the ID of the run. It is part of idempotency keys and of the names of artifacts.
	Run string

	// Bind returns the agent that runs in place of a at the key run ("" means the outermost run):
	// a copy of a whose Model and Executor record. The recorded model contains the agent's
	// middleware, which may read clocks. nil means that a runs unchanged.
	Bind func(a *Agent, run llm.Key) *Agent

	// Replays means that the outcome of a call is stored under Task.Key, and that Begin or the
	// bound Executor returns it (Task.Replayed) in place of executing the call again. It also means
	// that nested calls (Invocation.Do, agents as tools) can wait for an answer: the call around
	// them then becomes pending, and is executed again from its beginning when the run is resumed
	// with a Decision. The usage of such a call is counted once, when it has ended.
	//
	// The executor sets Task.Since to the same time each time the call arrives.
	Replays bool

	// Begin is called before the calls of one step, or of one Invocation.Do, are executed. It
	// returns their stored executions by index; a nil element, and a nil slice, mean that the call
	// is executed. done is called when all of them have ended. nil means that nothing is stored.
	Begin func(ctx context.Context, tasks []Task) (stored []*Execution, done func())

	// Store is called when a call that Begin returned no execution for has ended, before its
	// call_completed. It returns when the outcome is stored. The calls that wait for this one have
	// their turn meanwhile, so that their intents may be stored together with the outcome. Store
	// may change x: a call whose outcome could not be stored has not ended. nil means that nothing
	// is stored. It is not used with Schedule.
	Store func(ctx context.Context, t Task, x *Execution)

	// Schedule executes tasks in place of goroutines of this process: it calls do for each, in the
	// order of Parallel.Order, and returns when all have ended. Task.Do then uses no goroutine, and
	// what Begin returns is not used. nil means goroutines.
	Schedule func(ctx context.Context, tasks []Task, do func(ctx context.Context, t Task) Execution)

	// Intend stores the intent to execute a call. It is called before each attempt, except for
	// tools with EffectCompose, after every check has passed. For a write of a tool with
	// StatesSending it is called by Invocation.Sending, during the attempt, or never. It returns
	// when the intent is stored. If it returns an error, the call stays open; the engine then ends
	// the run's context with a cause that states the reason. nil means that no intent is stored.
	Intend func(ctx context.Context, t Task, call llm.ToolCall, tool *Tool, attempt int) error

	// After returns a context that ends after d with the given cause. The caller must call cancel.
	// nil means the wall clock.
	After func(ctx context.Context, d time.Duration, cause error) (_ context.Context, cancel context.CancelFunc)

	// Wait returns when ready is closed or ctx has ended. nil means a channel receive.
	Wait func(ctx context.Context, ready <-chan struct{})

	// Branch executes the run of a nested agent outside this process, with RunBranch and a record
	// of its own, and returns its result. It stores in b.Around the state that RunBranch left
	// there. The run must end when ctx does, with the same cause. nil means that nested agents run
	// in this process.
	Branch func(ctx context.Context, a *Agent, b *Branch) (*Result, error)

	// Conversation returns the messages before the reply that made the call of an attached task
	// (Attach), for policies and tools that read them. nil means that they are not known: what
	// depends on them is then refused or asked about.
	Conversation func() []llm.Message
}

// RunOptions are what the code that starts a run states about it, in addition to its Runner and its
// messages. The zero value states nothing. Whose data a run uses is not among them: store.WithScope
// states it for a whole request.
type RunOptions struct {
	// Messages supplies messages to the run while it is active, such as a Steering. nil means none.
	// Nested runs do not take them: a message is for the outermost run.
	Messages MessageSource
	// Thread is the ID of the conversation that the run continues. "" means none. thread.Runner
	// sets it.
	Thread string
	// Engine makes the run durable. nil means that it is not. Packages durable and durable/temporal
	// set it.
	Engine *Engine
}

type runOptionsKey struct{}

// WithRunOptions returns a context for a run with the options o. The zero fields of o keep what ctx
// has.
func WithRunOptions(ctx context.Context, o RunOptions) context.Context {
	if ctx == nil {
		panic("pawl: WithRunOptions: " + errNoContext.Error())
	}
	all, _ := ctx.Value(runOptionsKey{}).(*RunOptions)
	if all == nil {
		return context.WithValue(ctx, runOptionsKey{}, &o)
	}

	merged := *all
	if o.Messages != nil {
		merged.Messages = o.Messages
	}
	if o.Thread != "" {
		merged.Thread = o.Thread
	}
	if o.Engine != nil {
		merged.Engine = o.Engine
	}
	return context.WithValue(ctx, runOptionsKey{}, &merged)
}

// RunOptionsFrom returns the options of the run that ctx belongs to. In a call it returns no
// Messages.
func RunOptionsFrom(ctx context.Context) RunOptions {
	all, _ := ctx.Value(runOptionsKey{}).(*RunOptions)
	if all == nil {
		return RunOptions{}
	}
	o := *all
	if InvocationFrom(ctx) != nil {
		o.Messages = nil
	}
	return o
}

// RunID returns the ID of the run if an engine stores it, else "".
func (o RunOptions) RunID() string {
	if o.Engine == nil {
		return ""
	}
	return o.Engine.Run
}

// engineIn returns the engine of ctx, or a zero Engine.
func engineIn(ctx context.Context) Engine {
	all, _ := ctx.Value(runOptionsKey{}).(*RunOptions)
	if all == nil || all.Engine == nil {
		return Engine{}
	}
	return *all.Engine
}

// ErrDiverged is the error of Invocation.Do if a tool that is executed again makes another call
// than it made under that key before. The new call is not executed.
var ErrDiverged = errors.New("diverged: another call was made here before")

// Replayed returns x, the stored outcome of the task, with the ID and the place that the call has
// now. call is the call that was executed (Task.Call). If it differs from the call of t in tool or
// arguments, Replayed returns a failure with ErrDiverged.
func (t Task) Replayed(call llm.ToolCall, x Execution) Execution {
	if call.Name != t.Call.Name || !bytes.Equal(jsonform.Canonical(call.Args), jsonform.Canonical(t.Call.Args)) {
		err := fmt.Errorf("%w: %s, and now %s", ErrDiverged, call.Name, t.Call.Name)
		if call.Name == t.Call.Name {
			err = fmt.Errorf("%w: %s with other arguments", ErrDiverged, call.Name)
		}
		x = Execution{Key: t.Key, Call: t.Call, Outcome: OutcomeError, Error: err.Error(), err: err,
			Result: llm.ErrorResult("Not run: " + err.Error() + ".")}
	}
	x.Index = t.Index
	x.Call.ID = t.Call.ID
	x.Result.CallID = t.Call.ID
	x.Result.Key = t.Key
	x.local = false
	return x
}

// diverged returns the first error with ErrDiverged, or nil.
func diverged(xs []Execution) error {
	for i := range xs {
		if errors.Is(xs[i].err, ErrDiverged) {
			return xs[i].err
		}
	}
	return nil
}

// adopt adds to t the decisions about it and its nested calls, and their open questions.
func (t *Task) adopt(decisions []llm.Decision, pending []PendingCall) {
	// A decision can come twice: with this run, and stored with the question that it answered.
	grant := func(d llm.Decision) {
		same := func(o llm.Decision) bool { return o.Key == d.Key && o.Digest == d.Digest }
		if inOrUnder(d.Key, t.Key) && !slices.ContainsFunc(t.Decisions, same) {
			t.Decisions = append(t.Decisions, d)
		}
	}
	for _, d := range decisions {
		grant(d)
	}
	for i := range pending {
		w := &pending[i]
		switch {
		case w.Key == t.Key:
			t.Attempt, t.Pending = w.Attempt, w
		case inOrUnder(w.Key, t.Key):
			t.PendingInside = append(t.PendingInside, *w)
		default:
			continue
		}
		for _, d := range w.Granted {
			grant(d)
		}
	}
}

// inOrUnder reports whether key is the key of the call at, or of a call nested in it.
func inOrUnder(key, at llm.Key) bool {
	rest, ok := strings.CutPrefix(string(key), string(at))
	return ok && (rest == "" || rest[0] == '/')
}

// pendingInside copies the open questions of the nested calls to the call, and reports whether
// there are any.
func (w *work) pendingInside() bool {
	v := &w.inv
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.pending) == 0 || v.sealed || v.ends != nil {
		return false
	}
	w.exec.Pending = v.pending
	if d := w.exec.Decision; d != nil && d.Approve {
		for i := range w.exec.Pending {
			q := &w.exec.Pending[i]
			used := *d
			used.At = time.Time{} // it does not expire any more
			q.Granted = append(slices.Clip(q.Granted), used)
		}
	}
	return true
}

// addPending records that a nested run has the open questions qs.
func (v *Invocation) addPending(qs []PendingCall) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		v.pending = append(v.pending, qs...)
	}
	return errPending
}

// replayed counts the usage of x, which this process has not counted during execution.
func (b *budget) replayed(x *Execution) {
	for o := b; o != nil; o = o.outer {
		if x.Limited > 0 && x.Limited == o.limits.Calls {
			o.refused.Store(true)
		}
	}
	b.add(int64(newCalls(x, nil)+x.Spent.Calls), use{x.Spent.Usage.Total(), x.Spent.Usage.Cost})
}

// Branch describes the run of a nested agent, apart from the agent. It is plain data.
type Branch struct {
	Key      llm.Key         `json:"key"`             // of the run
	Depth    int             `json:"depth"`           // the level of nesting
	Plan     json.RawMessage `json:"plan,omitzero"`   // the strategic plan of the call
	Around   []Allowance     `json:"around,omitzero"` // the runs around it, from the inside
	Messages []llm.Message   `json:"messages"`        // that the run begins with
}

// Allowance is the limits of a run, and its usage when a nested run started. Concurrent runs do not
// see each other's usage until they end, so together they can exceed a limit by the requests in
// flight.
type Allowance struct {
	Limits Limits  `json:"limits"`          // of the run
	Calls  int     `json:"calls,omitzero"`  // started calls
	Tokens int     `json:"tokens,omitzero"` // input and output
	Cost   float64 `json:"cost,omitzero"`   // US dollars

	// Refused reports whether a call was refused because of Limits.Calls.
	Refused bool `json:"refused,omitzero"`
}

// RunBranch executes the run of b, a nested run of a that Engine.Branch received in another
// process, under e. If from is not nil, it resumes the run from that result. It records in b.Around
// which limits refused calls.
func (e *Engine) RunBranch(ctx context.Context, a *Agent, from *Result, b *Branch) (*Result, error) {
	msgs := b.Messages
	if from != nil {
		msgs = nil
	}
	return a.run(WithRunOptions(ctx, RunOptions{Engine: e}), from, msgs, runOptions{whole: true, key: b.Key, branch: b})
}

// branch executes the run of a nested agent by Engine.Branch, and counts its usage.
func (v *Invocation) branch(ctx context.Context, a *Agent, key llm.Key, msgs []llm.Message) (*Result, error) {
	outer := v.work.task.scope
	b := &Branch{Key: key, Depth: outer.depth + 1, Around: outer.budget.allowances(), Messages: msgs}
	if plan, ok := v.plan(); ok {
		b.Plan = plan
	}
	res, err := outer.engine.Branch(ctx, a, b)
	if res != nil {
		v.spend(res.Spent)
		outer.budget.add(int64(res.Spent.Calls), use{res.Spent.Usage.Total(), res.Spent.Usage.Cost})
	}

	// The run has counted refused calls in copies of these budgets.
	i := 0
	for o := outer.budget; o != nil && i < len(b.Around); o, i = o.outer, i+1 {
		if b.Around[i].Refused {
			o.refused.Store(true)
		}
	}
	return res, err
}

// allowances returns the limits and the usage of b and of the budgets around it.
func (b *budget) allowances() (all []Allowance) {
	if b != nil && b.ledger != nil {
		b.ledger.mu.Lock()
		defer b.ledger.mu.Unlock()
	}
	for o := b; o != nil; o = o.outer {
		all = append(all, Allowance{
			Limits:  *o.limits,
			Calls:   int(o.started.Load()),
			Tokens:  o.used.tokens,
			Cost:    o.used.cost,
			Refused: o.refused.Load(),
		})
	}
	return all
}

// around restores the budgets of the runs around b. spent is the usage of b so far.
func (b *Branch) around(spent Spent) (last *budget) {
	for _, a := range slices.Backward(b.Around) {
		o := new(budget)
		used := llm.Usage{Input: a.Tokens + spent.Usage.Total(), Cost: a.Cost + spent.Usage.Cost}
		o.open(&a.Limits, Spent{Calls: a.Calls + spent.Calls, Usage: used}, last)
		o.refused.Store(a.Refused)
		last = o
	}
	return last
}

// refused records which of the runs around b refused a call.
func (b *Branch) refused(inner *budget) {
	i := 0
	for o := inner; o != nil; o, i = o.outer, i+1 {
		b.Around[i].Refused = o.refused.Load()
	}
}

// endsAfter returns a context that ends after d, the time limit of a run.
func endsAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if after := engineIn(ctx).After; after != nil {
		return after(ctx, d, ErrTime)
	}
	return context.WithTimeoutCause(ctx, d, ErrTime)
}

// waitFor waits until ready is closed. It returns false if ctx has ended first.
func waitFor(ctx context.Context, ready <-chan struct{}) bool {
	if wait := engineIn(ctx).Wait; wait != nil {
		wait(ctx, ready)
		return ctx.Err() == nil
	}
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// InnerModel returns the model of a wrapped in its middleware, and the Pricer that knows its price.
// Engines call it in place of Agent.Model. A panic of the model is an error of its stream. The
// model is nil if the agent has none, and the Pricer is nil if the price is unknown. The result is
// the same for each Engine.
func (e *Engine) InnerModel(a *Agent) (llm.Model, llm.Pricer) {
	m, _, p, _ := wrapped(a.Model, a.Middleware)
	if m == nil {
		return nil, p
	}
	return panics.Model(m), p
}

// AllTools returns the tools of the runs of a: Agent.Tools, and with Artifacts their tools, unless
// the agent lists them itself. The result is the same for each Engine.
func (e *Engine) AllTools(ctx context.Context, a *Agent) ([]*Tool, error) {
	tools, err := Toolsets(a.Tools).Tools(ctx)
	if err != nil || a.Artifacts == nil {
		return tools, err
	}

	more, err := readers(ctx, a.Artifacts)
	for _, t := range more {
		if !slices.Contains(tools, t) {
			tools = append(slices.Clip(tools), t)
		}
	}
	return tools, err
}

// RunRemote executes t by do, which sends the task to another process and makes it executable there
// with Engine.Attach. The limits of the run are enforced here: the call counts before do is called.
// If a limit refuses the call, do is not called.
//
// If the transport fails, do returns an error, as Executor.Do does; RunRemote returns it.
func (t Task) RunRemote(do func(Task) (Execution, error)) (Execution, error) {
	b := t.scope.budget
	if err := b.charge(); err != nil {
		w := &work{task: &t, exec: Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt}}
		w.complete(context.Background(), llm.ToolResult{}, err)
		return w.exec, nil
	}

	if do == nil {
		return Execution{}, errors.New("RunRemote has no function; give it a function that sends the call to another process")
	}
	x, err := do(t)
	if hadNoEffect(err) || err == nil && x.Attempts <= t.Attempt {
		b.refund()
	}
	x.Index = t.Index

	// charge has counted the call here.
	x.local = true
	return x, err
}

// Child returns inner, which a call of t made in another process, as an executable task.
func (t Task) Child(inner Task) Task {
	s := *t.scope
	s.depth++
	s.canPend = true
	inner.scope = &s
	return inner
}

// Attach returns t, a task of a run of a that another process sent, with what it needs to execute
// here: the tools, policies and middleware of a. Nested calls go to the executor that e binds. The
// zero Engine executes them here, and its run has no ID.
//
// Only the limits of tools apply: Task.RunRemote enforces the limits of the run in the process of
// the run. An agent as a tool is refused here, because its calls would be repeated with the call
// around it: it runs where the run is (Tool.Inline).
//
// Task.Do emits the events of the call here, in their JSON form the same as in the process of the
// run. The Executor that sent the task passes them to its emit.
func (e *Engine) Attach(ctx context.Context, a *Agent, t Task) (Task, error) {
	tools, err := e.AllTools(ctx, a)
	if err != nil {
		return t, err
	}

	s := &scope{
		tools:   tools,
		slots:   &slots.Semaphore{Free: defaultParallel},
		budget:  &budget{limits: new(Limits)},
		engine:  *e,
		canPend: true,
		watched: true,
		whole:   true,
		remote:  true,
	}
	_, s.layers, _, _ = wrapped(a.Model, a.Middleware)
	if e.Bind != nil {
		s.executor = e.Bind(a, t.Run).Executor
	}

	if a.Artifacts != nil {
		s.shelf = &shelf{store: a.Artifacts, run: e.Run + "/" + string(t.Run)}
		s.shelf.tools, err = readers(ctx, a.Artifacts)
		if err != nil {
			return t, err
		}
	}
	t.scope = s
	return t, nil
}
