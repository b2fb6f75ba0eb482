package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// activities is the activities of a worker.
type activities struct {
	w           *Worker
	transcripts transcripts
}

type modelInput struct {
	Agent    string          `json:"agent"`
	Path     string          `json:"path,omitzero"`
	Key      llm.Key         `json:"key"`
	Head     string          `json:"head,omitzero"` // of the conversation that was sent before
	New      []llm.Message   `json:"new"`           // the messages after it
	Turn     int             `json:"turn"`
	Edited   int             `json:"edited,omitzero"`
	Tools    []toolDef       `json:"tools,omitzero"`
	ToolsRef string          `json:"tools_ref,omitzero"` // replaces Tools that were sent before
	Choice   llm.ToolChoice  `json:"choice"`
	Output   json.RawMessage `json:"output,omitzero"`
	Settings llm.Settings    `json:"settings"`
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
	t := a.w.tree(root)
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
	ctx, alive := alive(ctx, a.w.engine.Client)
	defer alive.end()
	n, err := a.node(root, "")
	if err != nil {
		return nil, err
	}
	return a.w.tree(n.root).describe(ctx)
}

// model sends a request to a model, or fetches the reply that its provider computes for a worker
// that was lost.
func (a *activities) model(ctx context.Context, in modelInput) (modelOutput, error) {
	ctx, alive := alive(ctx, a.w.engine.Client)
	defer alive.end()
	ctx = llm.KeepReply(ctx, alive.replaced)
	ctx, done := a.until(ctx)
	defer done()
	n, err := a.node(in.Agent, in.Path)
	if err != nil {
		return modelOutput{}, err
	}
	msgs, head, err := a.transcripts.add(ctx, in.Head, in.New)
	if err != nil {
		return modelOutput{}, err
	}
	out := modelOutput{Head: head}
	defs, err := a.tools(ctx, &in, &out)
	if err != nil {
		return modelOutput{}, err
	}
	req := &llm.Request{Key: in.Key, Messages: msgs, Choice: in.Choice, Output: in.Output, Settings: in.Settings,
		Turn: in.Turn, Edited: in.Edited, Whole: true}
	for i := range defs {
		req.Tools = append(req.Tools, defs[i].tool().Spec())
	}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &req.Background); err != nil {
			return modelOutput{}, err
		}
		alive.computes(req.Background)
	}
	m, _ := new(pawl.Engine).InnerModel(n.agent)
	resp, err := complete(ctx, m, req, alive)
	switch {
	case err != nil && stopping(ctx):
		return modelOutput{}, err // another worker sends the request again
	case err != nil:
		out.Error, out.Usage, out.Requests = err.Error(), resp.Usage, resp.Requests
		var failed pawl.ExecutionError
		if errors.As(err, &failed) {
			x := failed.FailedExecution()
			out.Failed = &x
		}
		return out, nil
	}
	out.Response = resp
	return out, nil
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
	info := activity.GetInfo(ctx)
	ctx, alive := alive(ctx, a.w.engine.Client)
	defer alive.end()
	ctx, done := a.until(ctx)
	defer done()
	n, err := a.node(in.Agent, in.Path)
	if err != nil {
		return pawl.Execution{}, sdk.NewNonRetryableApplicationError(err.Error(), notStarted, err)
	}
	room, leave := a.w.slotsOf(info.WorkflowExecution.ID)
	defer leave()
	back := &callback{client: a.w.engine.Client, workflow: info.WorkflowExecution.ID,
		run: info.WorkflowExecution.RunID, outer: in.Task.Key, begin: alive.begin, slots: room}
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
	for e := range (pawl.Parallel{}).Execute(ctx, []pawl.Task{t}) {
		if x := e.Execution; x != nil && x.Key == t.Key {
			if back.refused != nil {
				return *x, sdk.NewApplicationError("it could not be recorded that the call begins: "+back.refused.Error(), again)
			}
			if stopping(ctx) && (x.Outcome == pawl.OutcomeCancelled || x.Outcome == pawl.OutcomeUnknown) {
				if x.Attempts <= t.Attempt {
					return *x, sdk.NewApplicationError("the worker was stopped before the call began", again)
				}
				return *x, errors.New("the worker was stopped")
			}
			return *x, nil
		}
	}
	return pawl.Execution{}, errors.New("the call did not end")
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
