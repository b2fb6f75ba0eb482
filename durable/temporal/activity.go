package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// activities is the activities of a worker.
type activities struct {
	worker      *Worker
	transcripts transcripts
}

type modelInput struct {
	Agent     string          `json:"agent"`
	Path      string          `json:"path,omitzero"`
	Key       llm.Key         `json:"key"`
	Head      string          `json:"head,omitzero"` // of the conversation that was sent before
	New       []llm.Message   `json:"new"`           // the messages after it
	Turn      int             `json:"turn"`
	Edited    int             `json:"edited,omitzero"`
	Summarize bool            `json:"summarize,omitzero"`
	Tools     []toolDef       `json:"tools,omitzero"`
	ToolsRef  string          `json:"tools_ref,omitzero"` // replaces Tools that were sent before
	Choice    llm.ToolChoice  `json:"choice"`
	Output    json.RawMessage `json:"output,omitzero"`
	Settings  llm.Settings    `json:"settings"`
}

type modelOutput struct {
	Response *llm.Response   `json:"response,omitzero"`
	Head     string          `json:"head"`
	ToolsRef string          `json:"tools_ref,omitzero"`
	Error    string          `json:"error,omitzero"`
	Failed   *pawl.Execution `json:"failed,omitzero"` // with Error
	// With Error: the usage, and the requests that were sent.
	Usage    llm.Usage `json:"usage,omitzero"`
	Requests int       `json:"requests,omitzero"`
}

type callInput struct {
	Agent string    `json:"agent"`
	Path  string    `json:"path,omitzero"`
	Run   string    `json:"run"`
	Task  pawl.Task `json:"task"`
	Head  string    `json:"head,omitzero"` // of the conversation before the reply with the call
}

// node returns the agent at path.
func (a *activities) node(root, path string) (*node, error) {
	t := a.worker.tree(root)
	if t == nil {
		return nil, fmt.Errorf("this worker has no agent %q", root)
	}
	n := t.byPath[path]
	if n == nil {
		return nil, fmt.Errorf("agent %q has no agent %q among its tools any more", root, path)
	}
	return n, nil
}

// describe returns the definition of an agent.
func (a *activities) describe(ctx context.Context, root string) (map[string]agentDef, error) {
	ctx, alive := alive(ctx, a.worker.engine.Client)
	defer alive.close()
	n, err := a.node(root, "")
	if err != nil {
		return nil, err
	}
	defs, err := a.worker.tree(n.root).describe(ctx)
	_, hasCaller := caller.From(ctx)
	if errors.Is(err, caller.ErrNone) && !hasCaller {
		// No other worker knows a caller, so another attempt has none either.
		return nil, sdk.NewNonRetryableApplicationError(err.Error(), "pawl.no_caller", err)
	}
	return defs, err
}

// model sends a request to a model, or fetches the reply that its provider computes for a worker
// that was lost.
func (a *activities) model(ctx context.Context, in modelInput) (modelOutput, error) {
	ctx, alive := alive(ctx, a.worker.engine.Client)
	defer alive.close()
	ctx = llm.KeepReply(ctx, alive.replaced)
	ctx, done := a.until(ctx)
	defer done()

	n, err := a.node(in.Agent, in.Path)
	if err != nil {
		return modelOutput{}, err
	}
	req, out, err := a.request(ctx, &in)
	if err != nil {
		return modelOutput{}, err
	}

	// The last heartbeat of a lost worker names the reply that the provider computes.
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &req.Background); err != nil {
			return modelOutput{}, err
		}
		alive.computes(req.Background)
	}

	m, _ := new(pawl.Engine).InnerModel(n.agent)
	resp, err := complete(ctx, m, req, alive)
	switch {
	case err == nil:
		out.Response = resp
	case stopping(ctx):
		return modelOutput{}, err // another worker sends the request again
	default:
		out.fail(resp, err)
	}
	return out, nil
}

// request returns the request of in. The output has the references that the next request uses.
func (a *activities) request(ctx context.Context, in *modelInput) (*llm.Request, modelOutput, error) {
	msgs, head, err := a.transcripts.add(ctx, in.Head, in.New)
	if err != nil {
		return nil, modelOutput{}, err
	}
	out := modelOutput{Head: head}
	defs, err := a.tools(ctx, in, &out)
	if err != nil {
		return nil, modelOutput{}, err
	}

	req := &llm.Request{
		Key:       in.Key,
		Messages:  msgs,
		Choice:    in.Choice,
		Output:    in.Output,
		Settings:  in.Settings,
		Turn:      in.Turn,
		Edited:    in.Edited,
		Summarize: in.Summarize,
		Whole:     true,
	}
	for i := range defs {
		req.Tools = append(req.Tools, defs[i].tool().Spec())
	}
	return req, out, nil
}

// fail records that a request ended with err. resp has the usage until then.
func (out *modelOutput) fail(resp *llm.Response, err error) {
	out.Error = err.Error()
	out.Usage = resp.Usage
	out.Requests = resp.Requests
	var failed pawl.ExecutionError
	if errors.As(err, &failed) {
		x := failed.FailedExecution()
		out.Failed = &x
	}
}

// complete returns the whole reply to req.
func complete(ctx context.Context, m llm.Model, req *llm.Request, p *pulse) (*llm.Response, error) {
	resp := new(llm.Response)
	for d, err := range m.Stream(ctx, req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			return resp, err
		}
		if d.Background != nil {
			p.computes(d.Background)
		}
	}
	return resp, resp.Err()
}

// tools returns the tools of a request, and stores them so that the next request can refer to them.
func (a *activities) tools(ctx context.Context, in *modelInput, out *modelOutput) (defs []toolDef, err error) {
	out.ToolsRef = in.ToolsRef
	if in.ToolsRef != "" {
		b, err := a.transcripts.blobs.Get(ctx, in.ToolsRef)
		if err == nil {
			err = json.Unmarshal(b, &defs)
		}
		return defs, err
	}

	if len(in.Tools) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(in.Tools)
	if err != nil {
		return nil, err
	}
	out.ToolsRef = digestOf(b)
	return in.Tools, a.transcripts.blobs.Put(ctx, out.ToolsRef, b)
}

// call executes a call, or finds that it is pending.
func (a *activities) call(ctx context.Context, in callInput) (pawl.Execution, error) {
	run := activity.GetInfo(ctx).WorkflowExecution
	ctx, alive := alive(ctx, a.worker.engine.Client)
	defer alive.close()
	ctx, done := a.until(ctx)
	defer done()

	n, err := a.node(in.Agent, in.Path)
	if err != nil {
		return pawl.Execution{}, sdk.NewNonRetryableApplicationError(err.Error(), notStarted, err)
	}
	room, leave := a.worker.slotsOf(run.ID)
	defer leave()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	back := &callback{
		client:   a.worker.engine.Client,
		workflow: run.ID,
		run:      run.RunID,
		outer:    in.Task.Key,
		begin:    alive.begin,
		slots:    room,
		end:      end,
	}

	engine := back.engine(in.Run)
	load := ctx
	engine.Conversation = func() []llm.Message {
		msgs, _ := a.transcripts.load(load, in.Head) // a policy asks if it does not know them
		return msgs
	}
	t, err := engine.Attach(ctx, n.agent, in.Task)
	if err != nil {
		return pawl.Execution{}, sdk.NewNonRetryableApplicationError(err.Error(), notStarted, err)
	}

	x := t.Do(ctx, nil)
	return x, unfinished(ctx, back, t, &x)
}

// unfinished returns why x is not the outcome of the call t, but the state in which this worker
// leaves it. nil means that it is the outcome.
func unfinished(ctx context.Context, back *callback, t pawl.Task, x *pawl.Execution) error {
	lost := back.lost.Load()
	switch {
	case lost != nil:
		return fmt.Errorf("the outcome of a call that it made did not arrive: %w", *lost)
	case back.refused != nil:
		return sdk.NewApplicationError("it could not be recorded that the call begins: "+back.refused.Error(), again)
	case !stopping(ctx):
		return nil
	case x.Outcome != pawl.OutcomeCancelled && x.Outcome != pawl.OutcomeUnknown:
		return nil
	case x.Attempts <= t.Attempt, x.Certainty == delivery.NotSent:
		return sdk.NewApplicationError("the worker was stopped before the call began", again)
	}
	return errors.New("the worker was stopped")
}

// The error types of calls that did not start: no worker can execute them, or the worker was
// stopped or could not reach the server.
const (
	notStarted = "pawl.not_begun"
	again      = "pawl.again"
)

// stopping reports whether the worker stops.
func stopping(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// until returns a context that ends like the context of a run in one process: with ErrCancelled
// after a cancellation.
func (a *activities) until(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if stopping(ctx) {
			cancel(context.Cause(ctx))
			return
		}
		cancel(pawl.ErrCancelled)
	})
	return inner, func() { stop(); cancel(nil) }
}
