package temporal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// backInput is a call that a composing tool makes.
type backInput struct {
	Outer llm.Key   `json:"outer"` // the composing call
	Task  pawl.Task `json:"task"`
}

// callback sends the calls of a composing tool to its workflow. Each is an update whose ID is the
// call's key: if the tool is executed again because its worker was lost, it finds the outcomes of
// its calls.
type callback struct {
	client   client.Client
	workflow string
	run      string
	outer    llm.Key
	begin    func() error            // reports to the server that a side effect may happen now
	refused  error                   // the result of begin
	end      context.CancelCauseFunc // ends the composing call
	lost     atomic.Pointer[error]   // why the outcome of a call did not arrive; nil means it did
	slots    chan struct{}           // of the run: see Worker.slotsOf
}

var _ pawl.Executor = (*callback)(nil)

// engine returns the engine of the calls that the tool makes. They can wait: they wait in the
// workflow. run is the ID of the run.
func (c *callback) engine(run string) *pawl.Engine {
	bind := func(a *pawl.Agent, _ llm.Key) *pawl.Agent {
		b := *a
		b.Executor = c
		return &b
	}
	return &pawl.Engine{Run: run, Bind: bind, Replays: true, Intend: c.intend}
}

// intend reports the start of a Write to the server before the Write starts.
func (c *callback) intend(_ context.Context, _ pawl.Task, _ llm.ToolCall, tool *pawl.Tool, _ int) error {
	if tool.Effect.Assumed() == pawl.EffectWrite {
		c.refused = c.begin()
	}
	return c.refused
}

// atOnce is the number of calls of composing tools that a run has in progress. Each is an update,
// and the server accepts 10 for a run, answers included.
const atOnce = 5

// Do sends a call to the workflow, and waits until it has ended, its questions included.
func (c *callback) Do(ctx context.Context, t pawl.Task, _ func(pawl.Event)) (pawl.Execution, error) {
	leave := c.enter(ctx, t.Tool())
	defer leave()
	return c.one(ctx, t), nil
}

// enter takes a slot for a call of tool, unless ctx ends first. leave releases it. A composing tool
// gets none, since its own calls must find room.
func (c *callback) enter(ctx context.Context, tool *pawl.Tool) (leave func()) {
	if tool != nil && tool.Effect == pawl.EffectCompose {
		return func() {}
	}
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }
	case <-ctx.Done():
		return func() {}
	}
}

func (c *callback) one(ctx context.Context, t pawl.Task) pawl.Execution {
	var x pawl.Execution
	var err error
	if panicked := guarded(func() { x, err = c.send(ctx, t) }); panicked != nil {
		err = panicked
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return t.Do(ctx, func(pawl.Event) {}) // it reports the end of the context
	case err != nil && !wasAnswered(err):
		// It may have been executed. The next activity of the composing call finds its outcome, and
		// this one must not continue without it.
		c.lost.Store(&err)
		c.end(err)
		return t.Do(ctx, func(pawl.Event) {})
	case err != nil:
		x = pawl.Execution{
			Key:     t.Key,
			Call:    t.Call,
			Outcome: pawl.OutcomeError,
			Error:   err.Error(),
			Result:  llm.ErrorResult("The call could not be made."),
		}
		x.Result.CallID = t.Call.ID
		x.Result.Key = t.Key
	}
	x.Index = t.Index
	return x
}

// errNoClient is the error of a worker in the test environment of the SDK.
var errNoClient = errors.New("the worker has no client to call back with")

// wasAnswered reports whether a call that ended with err was not executed: the workflow rejected
// it, or it was not sent.
func wasAnswered(err error) bool {
	var rejected *sdk.ApplicationError
	return errors.Is(err, errNoClient) || errors.As(err, &rejected)
}

// guarded calls f and returns its panic as an error.
func guarded(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	f()
	return nil
}

func (c *callback) send(ctx context.Context, t pawl.Task) (x pawl.Execution, err error) {
	if c.client == nil {
		return x, errNoClient
	}

	// With the same ID in each attempt of the activity, the workflow executes the call once.
	update := client.UpdateWorkflowOptions{
		WorkflowID:   c.workflow,
		RunID:        c.run,
		UpdateID:     string(t.Key),
		UpdateName:   updateCall,
		Args:         []any{backInput{c.outer, t}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := c.client.UpdateWorkflow(ctx, update)
		if err == nil {
			err = h.Get(ctx, &x)
		}

		if !isType(err, callsFull) {
			return x, err
		}
		select { // another tool has the room
		case <-ctx.Done():
			return x, err
		case <-time.After(pause):
		}
	}
}
