package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// Code in this file, in bind.go and in executor.go runs in workflows: it starts no goroutine, waits
// only through the workflow package, reads no clock, and does not range over maps. Deferred
// functions do not wait, because they also run when a workflow is dropped from memory.

// input is the input of a workflow. Its form is a contract with histories.
type input struct {
	State    int           `json:"state"`
	Agent    string        `json:"agent"`
	Messages []llm.Message `json:"messages"`
	// With the following fields: the start of the run's first history.
	Began time.Time `json:"began,omitzero"`
	// Runner.From, or the outcome of the earlier histories.
	From *pawl.Result `json:"from,omitzero"`
	// Answered means that the open calls of Messages get error results. Inputs of earlier versions
	// do not have it: their runs executed these calls.
	Answered bool `json:"answered,omitzero"`
	// Output is the schema of the answer, in place of the agent's: see Runner.WithOutput.
	Output json.RawMessage     `json:"output,omitzero"`
	Agents map[string]agentDef `json:"agents,omitzero"` // as recorded at the start
	Kept   *journal.Export     `json:"kept,omitzero"`
	Events int                 `json:"events,omitzero"` // Engine.Events
	Place  *place              `json:"place,omitzero"`  // of a nested run
}

// Outcome is the end of a run. Result has no Steps: the history has their replies and calls, from
// which a Runner makes them.
type Outcome struct {
	// Result is the end of the run. nil means that the run did not start.
	Result *pawl.Result `json:"result"`
	// Error is the text of the error of a failed run. Empty means that there is none.
	Error string `json:"error,omitzero"`
	// StepError is Step.Error of the last step. Empty means that its request was answered.
	StepError string `json:"step_error,omitzero"`
}

// State is the state of a run.
type State struct {
	// Over reports that the run has ended.
	Over bool `json:"over,omitzero"`
	// Waits reports that the run only waits for answers to Pending.
	Waits bool `json:"waits,omitzero"`
	// Pending has the open questions, of nested runs too, in the order of their keys.
	Pending []pawl.PendingCall `json:"pending,omitzero"`
	// Spent is the usage of the requests that have ended, and of nested runs. Rounds is known at
	// the end.
	Spent pawl.Spent `json:"spent"`
	// Result is the end of the run. nil means that it is not over.
	Result *pawl.Result `json:"result,omitzero"`
	// Error is Outcome.Error of a run that is over.
	Error string `json:"error,omitzero"`
}

// flow is a run in a workflow.
type flow struct {
	worker *Worker
	in     input
	id     string // of the workflow
	run    string // of the outermost run
	path   string // of the agent: see node
	tree   *tree
	defs   map[string]agentDef

	root   workflow.Context // ends when the run is cancelled
	stop   workflow.CancelFunc
	std    context.Context // the same for package pawl
	cancel context.CancelCauseFunc
	slots  workflow.Semaphore // held by calls that execute
	inbox  *inbox
	open   []*question
	said   map[llm.Key]llm.Decision // the last answer to each question
	asked  int                      // the number of changes of the questions
	live   map[llm.Key]liveCall     // composing calls that activities execute
	busy   int                      // active activities
	inner  map[llm.Key]int          // calls in progress of composing calls that activities execute
	held   int                      // activities in busy that have such calls
	calls  int                      // such calls that compose no others
	record journal.Export
	roots  int
	over   *Outcome

	executors map[llm.Key]*executor // by the key of their run

	branches []*branch // active nested runs
}

// liveCall is a composing call that an activity executes, with its run.
type liveCall struct {
	task     pawl.Task
	executor *executor
}

// question is an open call with its question.
type question struct {
	waiting pawl.PendingCall
	answer  *llm.Decision
}

// run is the workflow of a run.
func (w *Worker) run(wctx workflow.Context, in input) (*Outcome, error) {
	_, out, err := w.execute(wctx, in)
	return out, err
}

// execute is the part that both workflows share.
func (w *Worker) execute(wctx workflow.Context, in input) (*flow, *Outcome, error) {
	f, err := w.newFlow(wctx, in)
	if err != nil {
		return nil, nil, err
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
		return nil, nil, f.continueAsNew(res)
	}
	err = recorded(err)
	out := &Outcome{Result: res}
	if err != nil {
		out.Error = err.Error()
	}
	if res == nil {
		// The run did not start, for example because the messages are no conversation.
		return nil, nil, sdk.NewNonRetryableApplicationError(out.Error, "pawl.refused", nil)
	}

	slim := *res
	slim.Steps = nil
	out.Result = &slim
	if n := len(res.Steps); n > 0 {
		out.StepError = res.Steps[n-1].Error
	}
	f.over = out
	f.recordEnd(out)
	f.settle()
	return f, out, nil
}

// newFlow returns the state of a run at the start of a history. It returns an error if this worker
// cannot execute the run.
func (w *Worker) newFlow(wctx workflow.Context, in input) (*flow, error) {
	if in.State < 1 || in.State > stateVersion {
		text := fmt.Sprintf("the run has the form %d, this worker knows %d", in.State, stateVersion)
		return nil, sdk.NewNonRetryableApplicationError(text, "pawl.state", nil)
	}
	t := w.tree(in.Agent)
	if t == nil {
		return nil, fmt.Errorf("this worker has no agent %q", in.Agent)
	}

	id := workflow.GetInfo(wctx).WorkflowExecution.ID
	f := &flow{
		worker: w,
		in:     in,
		id:     id,
		run:    id,
		tree:   t,
		defs:   in.Agents,
		said:   map[llm.Key]llm.Decision{},
		live:   map[llm.Key]liveCall{},

		executors: map[llm.Key]*executor{},
		inner:     map[llm.Key]int{},
	}
	if p := in.Place; p != nil {
		f.run = p.Run
		f.path = p.Path
		if t.byPath[f.path] == nil {
			return nil, fmt.Errorf("agent %q has no agent %q among its tools any more", in.Agent, f.path)
		}
	}
	if in.Began.IsZero() {
		f.in.Began = workflow.Now(wctx)
	}
	return f, nil
}

// recorded returns the error that is recorded with the result of a run: err without the *StopError.
func recorded(err error) error {
	if stop, ok := err.(*pawl.StopError); ok {
		return stop.Err
	}
	return err
}

const defaultParallel = 10

// atOnce returns the number of calls of the run that may execute concurrently. Nested runs have the
// same number of their own.
func (f *flow) atOnce() int {
	if n := f.defs[""].Parallel; n > 0 {
		return n
	}
	return defaultParallel
}

// begin makes the contexts, which end together.
func (f *flow) begin(wctx workflow.Context) {
	f.root, f.stop = workflow.WithCancel(wctx)
	std, cancel := context.WithCancelCause(context.Background())
	f.std, f.cancel = std, cancel
	workflow.Go(wctx, func(g workflow.Context) { // cancellation by the cluster
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
	f.inbox = &inbox{flow: f}
	if f.in.From != nil {
		_ = f.inbox.Steer(context.Background(), f.in.From.Unread...) // they were accepted before
	}
}

// describe records the definitions of the agents.
func (f *flow) describe() error {
	ctx := workflow.WithActivityOptions(f.root,
		workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Minute, HeartbeatTimeout: f.worker.engine.heartbeat(),
			RetryPolicy: retries(0)})
	err := workflow.ExecuteActivity(ctx, activityDescribe, f.in.Agent).Get(ctx, &f.defs)
	if d, ok := f.defs[f.path]; err == nil && ok && f.in.Output != nil {
		d.Output = f.in.Output
		f.defs[f.path] = d
	}
	return err
}

// loop runs the loop.
func (f *flow) loop() (*pawl.Result, error) {
	ctx := context.WithValue(f.std, contextKey{}, f.root)
	engine := f.engine()
	a := f.tree.byPath[f.path].agent
	if p := f.in.Place; p != nil {
		return engine.RunBranch(ctx, a, f.in.From, &p.Branch)
	}

	ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: engine, Messages: f.inbox})
	from := f.in.From
	switch {
	case from != nil:
		return a.Resume(ctx, from, f.in.Messages...)
	case !f.in.Answered && opens(f.in.Messages):
		return a.Resume(ctx, &pawl.Result{Messages: f.in.Messages})
	}
	return a.Run(ctx, f.in.Messages...)
}

// errContinue ends the loop when the run continues in a new history.
var errContinue = errors.New("the run continues in a new history")

// full reports whether the history is long enough.
func (f *flow) full() bool {
	if len(f.record.Replies) == 0 {
		return false // otherwise it would restart without end
	}
	info := workflow.GetInfo(f.root)
	limit := f.in.Events
	if limit <= 0 {
		limit = 8_000
	}
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= limit
}

// continueAsNew continues as new from res. No call is open: the next step is a model request.
func (f *flow) continueAsNew(res *pawl.Result) error {
	f.settle()
	next := f.in
	slim := *res

	// The next history resumes a run that has not stopped.
	slim.Steps = nil
	slim.Stop = ""
	slim.Answer = nil
	slim.Limit = ""
	slim.Cause = ""
	next.From = &slim
	next.Agents = f.defs
	next.Messages = nil
	stored := f.all()
	next.Kept = &stored
	return workflow.NewContinueAsNewError(f.root, workflow.GetInfo(f.root).WorkflowType.Name, next)
}

// settle waits until all updates and queries are answered.
func (f *flow) settle() {
	dctx, _ := workflow.NewDisconnectedContext(f.root)
	_ = workflow.Await(dctx, func() bool { return workflow.AllHandlersFinished(dctx) })
}

// recordEnd stores the reason of the stop.
func (f *flow) recordEnd(out *Outcome) {
	r := out.Result
	f.record.End = &journal.ExportedEnd{
		Stop:   r.Stop,
		Answer: r.Answer,
		Limit:  r.Limit,
		Cause:  r.Cause,
		Error:  out.Error,
		Spent:  r.Spent,
		Values: r.Values,
		Output: r.Output,
		Unfit:  r.Unfit,
	}
}

// all returns the run so far, in the order of events, over all histories.
func (f *flow) all() journal.Export {
	x := f.record
	x.Messages = f.in.Messages
	k := f.in.Kept
	switch {
	case k != nil:
		x.Messages = k.Messages
		x.Values = k.Values
		x.Replies = slices.Concat(k.Replies, x.Replies)
		x.Calls = slices.Concat(k.Calls, x.Calls)
		x.Steered = slices.Concat(k.Steered, x.Steered)
	case f.in.From != nil:
		x.Messages = slices.Concat(f.in.From.Messages, x.Messages)
		x.Values = f.in.From.Values
	}
	return x
}

// export returns the run so far in its canonical form.
func (f *flow) export() *journal.Export {
	x := f.all()
	x.Form = 1
	x.Agent = f.tree.byPath[f.path].agent.Name
	if d, ok := f.defs[f.path]; ok {
		x.Agent = d.Name
	}

	// Sort must not change the record. Without entries, the form has empty lists.
	x.Replies = append([]journal.ExportedReply{}, x.Replies...)
	x.Calls = append([]journal.ExportedCall{}, x.Calls...)
	for _, w := range f.pending() {
		x.Pending = append(x.Pending, journal.ExportedAsk{
			Key:     w.Key,
			Call:    w.Call,
			Outcome: w.Outcome,
			Why:     w.Why,
			Passive: w.Passive,
		})
	}
	x.Sort()
	return &x
}

// state returns the state of the run.
func (f *flow) state() State {
	s := State{Waits: f.waits(), Pending: f.pending()}
	if f.over != nil {
		s.Over = true
		s.Result = f.over.Result
		s.Error = f.over.Error
		s.Spent = f.over.Result.Spent
		return s
	}

	if f.in.From != nil {
		s.Spent = f.in.From.Spent
	}
	for i := range f.record.Replies {
		resp := &f.record.Replies[i].Response
		s.Spent.Add(pawl.Spent{Requests: 1 + resp.Requests, Usage: resp.Usage})
	}
	return s
}

// addCall stores the outcome of a call, unless it ended only because the process or the time of
// the run ended.
func (f *flow) addCall(ctx context.Context, t *pawl.Task, x *pawl.Execution) {
	if !x.Outcome.Settled() {
		return
	}
	interrupted := ctx.Err() != nil && context.Cause(ctx) != pawl.ErrCancelled
	if x.Outcome == pawl.OutcomeCancelled && interrupted {
		return
	}

	delete(f.said, t.Key)
	f.record.Calls = append(f.record.Calls,
		journal.ExportedCall{Key: t.Key, Call: t.Call, Execution: journal.Timeless(*x)})
}

// inbox holds the messages that were sent to the run.
type inbox struct {
	pawl.Steering
	flow *flow
}

// Take records which request receives which messages.
func (in *inbox) Take(ctx context.Context, at llm.Key) []llm.Message {
	msgs := in.Steering.Take(ctx, at)
	if len(msgs) > 0 {
		in.flow.record.Steered = append(in.flow.record.Steered, journal.ExportedWord{Key: at, Messages: msgs})
	}
	return msgs
}

const tries = 5 // of an activity whose worker was lost

// retries returns the number of tries for an activity whose worker was lost. 0 means no limit.
func retries(n int32) *sdk.RetryPolicy {
	return &sdk.RetryPolicy{
		InitialInterval:    time.Second,
		BackoffCoefficient: 2,
		MaximumInterval:    time.Minute,
		MaximumAttempts:    n,
	}
}
