package temporal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// contextKey is the context key of the workflow.Context of a coroutine.
type contextKey struct{}

// within returns the workflow.Context of the coroutine.
func within(ctx context.Context) workflow.Context {
	return ctx.Value(contextKey{}).(workflow.Context)
}

// noNode returns the error for an agent that the worker does not know.
func noNode(a *pawl.Agent) error {
	return fmt.Errorf("agent %q is no tool of the agent that was added to the worker", a.Name)
}

// engine returns the engine of the workflow's runs. Since the second form of the state, nested
// agents run as child workflows.
func (f *flow) engine() *pawl.Engine {
	e := &pawl.Engine{
		Run:      f.run,
		Bind:     f.bind,
		Replays:  true,
		Schedule: f.schedule,
		After:    f.after,
		Wait:     f.wait,
	}
	if f.in.State > 1 {
		e.Branch = f.startBranch
	}
	return e
}

// bind returns the agent that represents a in the workflow: the recorded definition, with a model
// and an executor that use activities. The middleware runs in the activities.
func (f *flow) bind(a *pawl.Agent, run llm.Key) *pawl.Agent {
	n := f.tree.byAgent[a]
	if n == nil { // an agent passed to Run that is no tool of the agent
		return &pawl.Agent{Name: a.Name, Model: &model{err: noNode(a)}}
	}

	d := f.defs[n.path]
	outermost := f.roots == 0
	f.roots++
	m := &model{flow: f, node: n, root: outermost}
	x := &executor{flow: f, node: n, remote: map[*pawl.Tool]*toolDef{}, inOrder: d.StopOnBlock, model: m}
	f.executors[cmp.Or(run, "run")] = x
	b := &pawl.Agent{
		Name:         d.Name,
		Instructions: d.Instructions,
		Label:        d.Label,
		Choice:       d.Choice,
		Output:       d.Output,
		Limits:       d.Limits,
		Settings:     d.Settings,
		Model:        m,
		Executor:     x,
	}
	if bytes.Equal(d.Output, n.agent.Output) {
		b.OutputCheck = n.agent.OutputCheck
	}
	for i := range d.Tools {
		b.Tools = append(b.Tools, x.bind(&d.Tools[i]))
	}

	// The time of a run counts from the start of its first history.
	if outermost && b.Limits.Time > 0 {
		b.Limits.Time = max(b.Limits.Time-workflow.Now(f.root).Sub(f.in.Began), time.Nanosecond)
	}
	return b
}

// bind returns the tool of the definition def. It runs in the workflow if it may, and otherwise by
// an activity.
func (x *executor) bind(def *toolDef) *pawl.Tool {
	tool := def.tool()
	own := x.node.inline[def.Name]
	if !def.Inline || own == nil {
		x.remote[tool] = def
		return tool
	}
	tool.Run = own.Run
	tool.Timeout = -1
	tool.Repair = own.Repair
	return tool
}

// after ends a run's time with a timer of the workflow.
func (f *flow) after(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	outer := within(ctx)
	wctx, stop := workflow.WithCancel(outer)
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, contextKey{}, wctx))
	timer := workflow.NewTimer(wctx, d)
	workflow.Go(wctx, func(g workflow.Context) {
		if timer.Get(g, nil) == nil {
			cancel(cause)
			stop()
		}
	})
	return inner, func() { cancel(nil); stop() }
}

// wait lets other coroutines work until ready is closed. One of them closes it.
func (f *flow) wait(ctx context.Context, ready <-chan struct{}) {
	_ = workflow.Await(within(ctx), func() bool {
		select { // coroutines of this workflow close both, so that the outcome is deterministic
		case <-ready:
			return true
		default:
			return ctx.Err() != nil
		}
	})
}

// model sends requests by an activity. It serves one run.
type model struct {
	flow  *flow
	node  *node
	root  bool  // of the outermost run
	err   error // the reason why there is no model
	sent  []sentMessage
	heads []head
	tools string // the reference of toolsOf
	names []*llm.ToolSpec
}

// head is a stored conversation and its number of messages.
type head struct {
	messages int
	digest   string
}

// head returns the digest of the conversation that the last request had. Empty means that there was
// no request.
func (m *model) head() string {
	if len(m.heads) == 0 {
		return ""
	}
	return m.heads[len(m.heads)-1].digest
}

// sentMessage identifies a message that was sent before.
type sentMessage struct {
	first *llm.Part
	parts int
	role  llm.Role
}

var (
	_ llm.Model        = (*model)(nil)
	_ llm.Pricer       = (*model)(nil)
	_ llm.OutputHolder = (*model)(nil)
)

// MaxCost returns the answer of the real model, which only calculates.
func (m *model) MaxCost(req *llm.Request) (float64, bool) {
	if m.node == nil || m.node.pricer == nil {
		return 0, false
	}
	return m.node.pricer.MaxCost(req)
}

// HoldsOutput returns the answer of the real model.
func (m *model) HoldsOutput(req *llm.Request) bool {
	if m.node == nil {
		return false
	}
	h, ok := llm.As[llm.OutputHolder](m.node.model)
	if !ok { // a middleware without Unwrap
		h, ok = llm.As[llm.OutputHolder](m.node.agent.Model)
	}
	return ok && h.HoldsOutput(req)
}

// Stream sends the request by an activity, and yields the whole reply.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		resp, err := m.ask(ctx, req)
		if err != nil {
			if resp == nil || yield(llm.Delta{Usage: &resp.Usage, Requests: resp.Requests}, nil) {
				yield(llm.Delta{}, err)
			}
			return
		}
		for d, err := range resp.Deltas() {
			if !yield(d, err) {
				return
			}
		}
	}
}

// ask returns the reply to req. With an error of the model, the reply has its usage alone.
func (m *model) ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	f := m.flow
	switch {
	case m.err != nil:
		return nil, m.err
	// Before a request no call is open, so that a new history begins with the conversation alone.
	case m.root && f.full():
		return nil, errContinue
	}

	in := m.input(req)
	wctx := workflow.WithActivityOptions(within(ctx), workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    f.worker.engine.heartbeat(),
		WaitForCancellation: true,
		RetryPolicy:         retries(tries),
		Summary:             string(req.Key),
	})
	var out modelOutput
	f.busy++
	err := workflow.ExecuteActivity(wctx, activityModel, in).Get(wctx, &out)
	f.busy--
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, worded(err)
	}

	m.heads = append(m.heads, head{len(req.Messages), out.Head})
	m.tools = out.ToolsRef
	if out.Failed != nil || out.Error != "" {
		return &llm.Response{Usage: out.Usage, Requests: out.Requests}, out.failure()
	}
	if out.Response == nil { // of a worker with another version of the program
		return nil, errors.New("the activity of the request returned no reply")
	}
	f.record.Replies = append(f.record.Replies, journal.ExportedReply{Key: req.Key, Response: *out.Response})
	return out.Response, nil
}

// failure returns the error of the model.
func (out *modelOutput) failure() error {
	if out.Failed != nil {
		return &failedModel{out.Error, *out.Failed}
	}
	return errors.New(out.Error)
}

// input refers to the messages that were sent before, and contains the new ones.
func (m *model) input(req *llm.Request) modelInput {
	m.forget(req.Messages)
	in := modelInput{
		Agent:     m.node.root,
		Path:      m.node.path,
		Key:       req.Key,
		Turn:      req.Turn,
		Edited:    req.Edited,
		Summarize: req.Summarize,
		Choice:    req.Choice,
		Output:    req.Output,
		Settings:  req.Settings,
		New:       req.Messages,
	}
	if last := len(m.heads) - 1; last >= 0 {
		in.Head = m.heads[last].digest
		in.New = req.Messages[m.heads[last].messages:]
	}

	in.ToolsRef = m.tools
	if !slices.Equal(m.names, req.Tools) || m.tools == "" {
		in.ToolsRef = ""
		for _, t := range req.Tools {
			in.Tools = append(in.Tools, defineSpec(t))
		}
	}
	m.names = req.Tools
	return in
}

// forget removes what was sent before and is not the beginning of msgs, such as the messages that a
// window of the history has replaced, and adds msgs.
func (m *model) forget(msgs []llm.Message) {
	same := 0
	for same < len(m.sent) && same < len(msgs) && m.sent[same].is(&msgs[same]) {
		same++
	}

	m.sent = m.sent[:same]
	for i := range msgs[same:] {
		m.sent = append(m.sent, sentOf(&msgs[same+i]))
	}
	for len(m.heads) > 0 && m.heads[len(m.heads)-1].messages > same {
		m.heads = m.heads[:len(m.heads)-1]
	}
}

func sentOf(m *llm.Message) sentMessage {
	s := sentMessage{parts: len(m.Parts), role: m.Role}
	if len(m.Parts) > 0 {
		s.first = &m.Parts[0]
	}
	return s
}

func (s sentMessage) is(m *llm.Message) bool { return len(m.Parts) > 0 && s == sentOf(m) }

// failedModel is a model's error that records the attempt.
type failedModel struct {
	text    string
	attempt pawl.Execution
}

// Error returns the text of the model's error.
func (e *failedModel) Error() string { return e.text }

// FailedExecution returns the attempt.
func (e *failedModel) FailedExecution() pawl.Execution { return e.attempt }

var _ pawl.ExecutionError = (*failedModel)(nil)

// worded returns err without the text that the SDK adds.
func worded(err error) error {
	var app *sdk.ApplicationError
	var late *sdk.TimeoutError
	var stopped *sdk.TerminatedError
	switch {
	case errors.As(err, &app):
		return errors.New(app.Message())
	case errors.As(err, &late):
		return fmt.Errorf("its worker was lost (%s)", late.TimeoutType())
	case errors.As(err, &stopped):
		return errors.New("its workflow was ended on the cluster")
	}
	return err
}
