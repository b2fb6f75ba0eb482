package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Code in this file, in bind.go and in executor.go runs in workflows: it starts no goroutine, waits for nothing but what the workflow package gives, reads no clock, and goes through
// no map in its order. What is deferred does not wait: it runs when a workflow is dropped from memory, too.

// input is what a workflow is given. Its form is a contract with histories.
type input struct {
	State    int                 `json:"state"`
	Agent    string              `json:"agent"`
	Messages []llm.Message       `json:"messages"`
	Began    time.Time           `json:"began,omitzero"`  // with what follows: when the first history of the run did
	From     *pawl.Result        `json:"from,omitzero"`   // what the histories before came to
	Agents   map[string]agentDef `json:"agents,omitzero"` // as they were recorded
	Kept     *durable.Export     `json:"kept,omitzero"`
	Events   int                 `json:"events,omitzero"` // Engine.Events
	Place    *place              `json:"place,omitzero"`  // of a run inside of a call
}

// Outcome is how a run ended. Result has no Steps.
type Outcome struct {
	Result *pawl.Result `json:"result"`
	Error  string       `json:"error,omitzero"`
}

// State is how a run stands.
type State struct {
	Over    bool           `json:"over,omitzero"`
	Waits   bool           `json:"waits,omitzero"` // for answers to Pending, and for nothing else
	Pending []pawl.Waiting `json:"pending,omitzero"`
	Spent   pawl.Spent     `json:"spent"` // by the requests that have ended, and runs inside of calls; Rounds is known when it is over
	Result  *pawl.Result   `json:"result,omitzero"`
	Error   string         `json:"error,omitzero"`
}

// flow is a run in a workflow.
type flow struct {
	w    *Worker
	in   input
	id   string // of the workflow
	run  string // of the outermost run
	path string // of the agent: see node
	tree *tree
	defs map[string]agentDef

	root   workflow.Context // it ends when the run is cancelled
	stop   workflow.CancelFunc
	std    context.Context // the same for the core
	cancel context.CancelCauseFunc
	slots  workflow.Semaphore // held by calls that do something
	inbox  *inbox
	open   []*question
	said   map[llm.Key]llm.Decision // the last answer to each question
	asked  int                      // how often what is asked has changed
	live   map[llm.Key]liveCall     // composing calls that are carried out by activities
	busy   int                      // activities under way
	kept   durable.Export
	roots  int
	over   *Outcome

	branches []*branch // runs inside of calls that are under way
}

// liveCall is a composing call that an activity carries out, and the run that it is of.
type liveCall struct {
	task pawl.Task
	x    *executor
}

// question is an open call with its question.
type question struct {
	waiting pawl.Waiting
	answer  *llm.Decision
}

// run is the workflow of a run.
func (w *Worker) run(wctx workflow.Context, in input) (*Outcome, error) {
	_, out, err := w.carryOut(wctx, in)
	return out, err
}

// carryOut is what both workflows do.
func (w *Worker) carryOut(wctx workflow.Context, in input) (*flow, *Outcome, error) {
	if in.State < 1 || in.State > stateVersion {
		return nil, nil, sdk.NewNonRetryableApplicationError(fmt.Sprintf("the run has the form %d, this worker knows %d", in.State, stateVersion), "pawl.state", nil)
	}
	t := w.tree(in.Agent)
	if t == nil {
		return nil, nil, fmt.Errorf("this worker has no agent %q", in.Agent)
	}
	id := workflow.GetInfo(wctx).WorkflowExecution.ID
	f := &flow{w: w, in: in, tree: t, id: id, run: id, defs: in.Agents, said: map[llm.Key]llm.Decision{}, live: map[llm.Key]liveCall{}}
	if p := in.Place; p != nil {
		if f.run, f.path = p.Run, p.Path; t.byPath[f.path] == nil {
			return nil, nil, fmt.Errorf("agent %q has no agent %q among its tools any more", in.Agent, f.path)
		}
	}
	if in.Began.IsZero() {
		f.in.Began = workflow.Now(wctx)
	}
	f.begin(wctx)
	if err := f.handlers(); err != nil {
		return nil, nil, err
	}
	if f.defs == nil {
		if err := f.describe(); err != nil {
			return nil, nil, err
		}
	}
	f.slots = workflow.NewSemaphore(f.root, int64(f.atOnce()))
	res, err := f.loop()
	if errors.Is(err, errContinue) {
		return nil, nil, f.goOn(res)
	}
	out := &Outcome{Result: res}
	if err != nil {
		out.Error = err.Error()
	}
	if res == nil {
		return nil, nil, sdk.NewNonRetryableApplicationError(out.Error, "pawl.refused", nil) // nothing was begun: the messages are no conversation, say
	}
	slim := *res
	slim.Steps = nil
	out.Result = &slim
	f.over = out
	f.end(out)
	f.settle()
	return f, out, nil
}

const defaultParallel = 10

// atOnce is how many calls of the run do something at once; runs inside of calls have as many of their own.
func (f *flow) atOnce() int {
	if n := f.defs[""].Parallel; n > 0 {
		return n
	}
	return defaultParallel
}

// begin makes the contexts, and sees to it that one ends with the other.
func (f *flow) begin(wctx workflow.Context) {
	f.root, f.stop = workflow.WithCancel(wctx)
	std, cancel := context.WithCancelCause(context.Background())
	f.std, f.cancel = std, cancel
	workflow.Go(wctx, func(g workflow.Context) { // the cluster's own way to cancel
		wctx.Done().Receive(g, nil)
		cancel(pawl.ErrCancelled)
		f.stop()
	})
	ch := workflow.GetSignalChannel(wctx, signalCancel)
	workflow.Go(wctx, func(g workflow.Context) {
		var cause string
		ch.Receive(g, &cause)
		cancel(causeOf(cause))
		f.stop()
	})
	f.inbox = &inbox{f: f}
	if f.in.From != nil {
		_ = f.inbox.Steer(context.Background(), f.in.From.Unread...) // they were let in before
	}
}

// describe records what the agents are.
func (f *flow) describe() error {
	ctx := workflow.WithActivityOptions(f.root, workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Minute, HeartbeatTimeout: f.w.engine.heartbeat(), RetryPolicy: retries(0)})
	return workflow.ExecuteActivity(ctx, activityDescribe, f.in.Agent).Get(ctx, &f.defs)
}

// loop goes through the loop.
func (f *flow) loop() (*pawl.Result, error) {
	var engine pawl.Engine = f
	if f.in.State > 1 {
		engine = branching{f}
	}
	ctx := pawl.WithEngine(context.WithValue(f.std, contextKey{}, f.root), engine, f.run)
	a := f.tree.byPath[f.path].agent
	if p := f.in.Place; p != nil {
		return a.Inside(ctx, f.in.From, &p.Branch)
	}
	ctx = pawl.WithInbox(ctx, f.inbox)
	if from := f.in.From; from != nil {
		return a.Resume(ctx, from)
	}
	return a.Run(ctx, f.in.Messages...)
}

// errContinue ends the loop where the run goes on in a new history.
var errContinue = errors.New("the run goes on in a new history")

// full reports whether the history is long enough.
func (f *flow) full() bool {
	if len(f.kept.Replies) == 0 {
		return false // it would begin for ever
	}
	info := workflow.GetInfo(f.root)
	limit := f.in.Events
	if limit <= 0 {
		limit = 8_000
	}
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= limit
}

// goOn continues as new from res. Nothing is open: it was about to ask the model.
func (f *flow) goOn(res *pawl.Result) error {
	f.settle()
	next := f.in
	slim := *res
	slim.Steps, slim.Stop, slim.Cause = nil, "", ""
	next.From, next.Agents, next.Messages = &slim, f.defs, nil
	kept := f.all()
	next.Kept = &kept
	return workflow.NewContinueAsNewError(f.root, workflow.GetInfo(f.root).WorkflowType.Name, next)
}

// settle waits until everybody who spoke to the run has been answered.
func (f *flow) settle() {
	dctx, _ := workflow.NewDisconnectedContext(f.root)
	_ = workflow.Await(dctx, func() bool { return workflow.AllHandlersFinished(dctx) })
}

// end keeps why the run stopped.
func (f *flow) end(out *Outcome) {
	r := out.Result
	f.kept.End = &durable.ExportedEnd{Stop: r.Stop, Cause: r.Cause, Error: out.Error, Spent: r.Spent, Values: r.Values, Output: r.Output}
}

// all is what the run was, so far, in the order in which it came about, and over all histories.
func (f *flow) all() durable.Export {
	x := f.kept
	x.Messages = f.in.Messages
	if k := f.in.Kept; k != nil {
		x.Messages = k.Messages
		x.Replies = slices.Concat(k.Replies, x.Replies)
		x.Calls = slices.Concat(k.Calls, x.Calls)
		x.Steered = slices.Concat(k.Steered, x.Steered)
	}
	return x
}

// export is what the run was, so far, in its canonical form.
func (f *flow) export() *durable.Export {
	x := f.all()
	x.Form, x.Agent = 1, f.tree.byPath[f.path].agent.Name
	if d, ok := f.defs[f.path]; ok {
		x.Agent = d.Name
	}
	x.Replies, x.Calls = append([]durable.ExportedReply{}, x.Replies...), append([]durable.ExportedCall{}, x.Calls...)
	for _, w := range f.pending() {
		x.Pending = append(x.Pending, durable.ExportedAsk{Key: w.Key, Call: w.Call, Outcome: w.Outcome, Why: w.Why, Passive: w.Passive})
	}
	x.Sort()
	return &x
}

// state is how the run stands.
func (f *flow) state() State {
	s := State{Waits: f.waits(), Pending: f.pending()}
	if f.over != nil {
		s.Over, s.Result, s.Error, s.Spent = true, f.over.Result, f.over.Error, f.over.Result.Spent
		return s
	}
	if f.in.From != nil {
		s.Spent = f.in.From.Spent
	}
	for i := range f.kept.Replies {
		s.Spent.Add(pawl.Spent{Requests: 1, Usage: f.kept.Replies[i].Response.Usage})
	}
	return s
}

// keepCall keeps how a call ended, unless it only ended with the process, or the time of the run.
func (f *flow) keepCall(ctx context.Context, t *pawl.Task, x *pawl.Execution) {
	if !x.Outcome.Settled() || x.Outcome == pawl.OutcomeCancelled && ctx.Err() != nil && context.Cause(ctx) != pawl.ErrCancelled {
		return
	}
	f.kept.Calls = append(f.kept.Calls, durable.ExportedCall{Key: t.Key, Call: t.Call, Execution: durable.Timeless(*x)})
}

// inbox is where the run finds what it was sent.
type inbox struct {
	pawl.Steering
	f *flow
}

// Take notes which request takes what.
func (in *inbox) Take(ctx context.Context, at llm.Key) []llm.Message {
	msgs := in.Steering.Take(ctx, at)
	if len(msgs) > 0 {
		in.f.kept.Steered = append(in.f.kept.Steered, durable.ExportedWord{Key: at, Messages: msgs})
	}
	return msgs
}

const tries = 5 // of an activity whose worker was lost

// retries is how often an activity is tried whose worker was lost; 0: until it works.
func retries(n int32) *sdk.RetryPolicy {
	return &sdk.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: n}
}
