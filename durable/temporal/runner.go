package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Runner is a run on the cluster: see Engine.Runner. It is safe for concurrent use, also from
// several processes.
type Runner struct {
	ID    string // of the run, equal to the ID of its workflow
	Agent string // the name of the agent in the workers

	// From is a Result that the run starts from, as with Agent.Resume: messages, values, usage and
	// pending calls. A Runner with From starts the run. nil means that the run starts with its
	// messages only.
	From *pawl.Result

	output json.RawMessage // in place of the agent's; nil means the agent's
	engine *Engine
}

var _ pawl.OutputRunner = (*Runner)(nil)

// Runner returns the run with the given ID of the agent with the given name in the workers. The
// first Run with messages starts it, and each later Run waits for it.
func (e *Engine) Runner(id, agent string) *Runner { return &Runner{ID: id, Agent: agent, engine: e} }

// WithOutput returns a copy of r whose answer fits schema, for pawl.Into. It has an effect when the
// run starts; the OutputCheck of the agent is not used then, because it is for the agent's Output.
func (r *Runner) WithOutput(schema json.RawMessage) pawl.Runner {
	c := *r
	c.output = schema
	return &c
}

// FollowUp returns the run that continues res, the result of r, with a new message, for pawl.Into:
// the process that asks has the check of the answer, and the workflow has not. The run has the ID
// of r with "-again" at its end.
func (r *Runner) FollowUp(ctx context.Context, res *pawl.Result) (next pawl.Runner, stored bool, err error) {
	c := *r
	c.ID += "-again"
	c.From = res
	_, err = r.engine.Client.DescribeWorkflowExecution(ctx, c.ID, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return &c, false, nil
	case err != nil:
		return nil, false, r.engine.about(c.ID, err)
	}
	return &c, true, nil
}

// Stream is Run with events: the start of the run, each complete reply, the end of each call,
// including nested calls, each complete step, and the end of the run. It yields no fragments and no
// progress of tools, and its step events have no Spent. A later Stream yields all events from the
// start.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		seq := int64(0)
		more := true
		// After the caller has stopped listening, nothing is yielded.
		emit := func(e pawl.Event) bool {
			seq++
			e.Seq = seq
			more = more && yield(e, nil)
			return more
		}

		if !emit(pawl.Event{Kind: pawl.EventRunStarted, Run: "run", Agent: r.Agent}) {
			return
		}
		res, text, err := r.follow(ctx, msgs, emit)
		if !more {
			return
		}
		if res != nil && !emit(pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: res, Error: text}) {
			return
		}
		err = errorOf(res, text, err)
		if err != nil {
			yield(pawl.Event{}, err)
		}
	}
}

// errorOf returns the error of a run. text is Event.Error of its end; err means that the end is not
// known.
func errorOf(res *pawl.Result, text string, err error) error {
	switch {
	case err != nil || res == nil:
		return err
	case res.Stop != pawl.StopFailed:
		return res.Err()
	}

	var unfit *pawl.OutputError
	if errors.As(res.Err(), &unfit) {
		return unfit
	}
	return errors.New(text)
}

// Run starts the run with msgs, or waits for it, until it has ended or only waits for answers. In
// the latter case the Result has StopPending and no messages. The errors are as in Agent.Run; the
// error of a failed run is its text.
//
// For an existing run, msgs may be empty, the messages of its start (not checked: the first ones
// apply), Decisions on open calls, or results of passive calls.
//
// The run continues when ctx ends: see Engine.Cancel. Result.Steps are made from the history of the
// run, which a worker must read: without one they are nil, and so they are in State and in the
// Result of a run that waits. They have no Request and no times.
func (r *Runner) Run(ctx context.Context, msgs ...llm.Message) (*pawl.Result, error) {
	res, text, err := r.follow(ctx, msgs, nil)
	return res, errorOf(res, text, err)
}

// follow returns the end of the run: its Result and Event.Error. emit receives its events and may
// be nil. It returns false when the caller has stopped listening.
func (r *Runner) follow(ctx context.Context, msgs []llm.Message, emit func(pawl.Event) bool) (*pawl.Result, string,
	error) {
	ds, begin, err := r.sort(ctx, msgs)
	if err != nil {
		return nil, "", err
	}
	switch {
	case begin:
		if err := r.start(ctx, msgs); err != nil {
			return nil, "", err
		}
	case len(ds) > 0:
		if err := r.engine.Decide(ctx, r.ID, ds...); err != nil {
			return nil, "", err
		}
	}
	return r.engine.wait(ctx, r.ID, emit)
}

// sort separates answers from messages. begin reports that the messages start the run.
func (r *Runner) sort(ctx context.Context, msgs []llm.Message) (ds []llm.Decision, begin bool, err error) {
	if r.From != nil || !onlyAnswers(msgs) {
		return nil, true, nil
	}

	var state *State
	for _, m := range msgs {
		for _, p := range m.Parts {
			res, isResult := p.(llm.ToolResult)
			if !isResult {
				ds = append(ds, p.(llm.Decision))
				continue
			}
			if state == nil {
				state, err = r.engine.State(ctx, r.ID)
			}
			if errors.Is(err, ErrUnknownRun) {
				return nil, true, nil // a conversation with results
			}
			if err != nil {
				return nil, false, err
			}
			ds = append(ds, state.answers(res)...)
		}
	}

	if len(msgs) > 0 && len(ds) == 0 {
		return nil, false, fmt.Errorf("run %s: %w", r.ID, ErrNotAsked)
	}
	return ds, false, nil
}

// onlyAnswers reports whether msgs consist of decisions and results.
func onlyAnswers(msgs []llm.Message) bool {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p.(type) {
			case llm.Decision, llm.ToolResult:
			default:
				return false
			}
		}
	}
	return true
}

// answers returns the answers that a result is to the open calls of a run.
func (s *State) answers(res llm.ToolResult) []llm.Decision {
	var ds []llm.Decision
	for _, w := range s.Pending {
		if w.Call.ID == res.CallID {
			ds = append(ds, w.Answer("caller", res))
		}
	}
	return ds
}

// start starts the run, unless it exists.
func (r *Runner) start(ctx context.Context, msgs []llm.Message) error {
	e := r.engine
	in := input{
		State:    stateVersion,
		Agent:    r.Agent,
		Messages: msgs,
		From:     r.from(),
		Answered: r.From == nil && opens(msgs),
		Events:   e.Events,
		Output:   r.output,
	}

	// An ID stands for one run, so that a repeated start finds it, in progress or ended.
	_, err := e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       r.ID,
		TaskQueue:                e.queue(),
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            summary(r.Agent),
		Memo:                     map[string]any{memoAgent: r.Agent},
	}, workflowName, in)

	var there *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &there) {
		return nil // it has ended: wait returns its outcome
	}
	return e.about(r.ID, err)
}

// from returns the part of From that a run continues: nil means that there is none.
func (r *Runner) from() *pawl.Result {
	if r.From == nil {
		return nil
	}
	return &pawl.Result{
		Messages: r.From.Messages,
		Spent:    r.From.Spent,
		Values:   r.From.Values,
		Pending:  r.From.Pending,
		Stop:     r.From.Stop,
		Limit:    r.From.Limit,
		Cause:    r.From.Cause,
		Output:   r.From.Output,
		Answer:   r.From.Answer,
	}
}

// opens reports whether the last reply in msgs has open calls.
func opens(msgs []llm.Message) bool { return len((&pawl.Result{Messages: msgs}).Calls()) > 0 }

// wait returns when the run has ended or is pending. It tolerates a server that does not answer for
// some time.
func (e *Engine) wait(ctx context.Context, id string, emit func(pawl.Event) bool) (*pawl.Result, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan ended, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { over <- e.awaitEnd(ctx, id) })

	w := e.newWatch()
	for {
		select {
		case x := <-over:
			w.endRun(ctx, id, &x.out, emit)
			return x.out.Result, x.out.Error, e.about(id, x.err)
		case <-time.After(e.poll()):
		}

		if emit != nil && !w.pass(ctx, id, emit) {
			return nil, "", ctx.Err()
		}
		s, err := e.State(ctx, id)
		if err != nil || !s.Waits {
			continue // there may be no worker to answer; the caller waits for one
		}

		// The state may be newer than the events that were passed on.
		if emit != nil && !w.pass(ctx, id, emit) {
			return nil, "", ctx.Err()
		}
		return &pawl.Result{
			Stop:    pawl.StopPending,
			Cause:   "calls wait for an answer",
			Pending: s.Pending,
			Spent:   s.Spent,
		}, "", nil
	}
}

// pass emits new events, and reports whether the caller still listens.
func (w *watch) pass(ctx context.Context, id string, emit func(pawl.Event) bool) bool {
	all, err := w.newEvents(ctx, id)
	if err != nil {
		return true // there may be no worker to answer
	}
	for _, e := range all {
		if !emit(e) {
			return false
		}
	}
	return true
}

// stepsTime is the time in which a worker has to answer the query for the steps of a run that has
// ended.
const stepsTime = 5 * time.Second

// endRun emits the events since the last call, and sets Result.Steps. Without a worker that
// answers, there are none. emit may be nil.
func (w *watch) endRun(ctx context.Context, id string, out *Outcome, emit func(pawl.Event) bool) {
	if ctx.Err() != nil {
		return
	}
	if emit == nil {
		emit = func(pawl.Event) bool { return true }
		limited, cancel := context.WithTimeout(ctx, stepsTime)
		defer cancel()
		ctx = limited
	}

	all, err := w.newEvents(ctx, id)
	if err != nil {
		return
	}
	if out.Result != nil {
		all = append(all, w.steps.finish(out)...)
		out.Result.Steps = w.steps.done
	}
	for _, e := range all {
		if !emit(e) {
			return
		}
	}
}

// ended is the end of a workflow.
type ended struct {
	out Outcome
	err error
}

// awaitEnd waits for the end of a run.
func (e *Engine) awaitEnd(ctx context.Context, id string) (x ended) {
	for {
		x.err = e.Client.GetWorkflow(ctx, id, "").Get(ctx, &x.out)
		if !unreachable(x.err) || ctx.Err() != nil {
			return x
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.poll()):
		}
	}
}

func (e *Engine) poll() time.Duration {
	if e.Poll <= 0 {
		return 500 * time.Millisecond
	}
	return e.Poll
}
