package examples

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// begin executor

// Remote executes each call in another process. The run keeps the order of calls and their number
// at the same time, and checks what Do returns.
type Remote struct {
	// Send sends a task, passes the events of its execution to event, and returns the execution,
	// all as JSON.
	Send func(ctx context.Context, task []byte, event func([]byte)) ([]byte, error)
}

var _ pawl.Executor = Remote{}

// Do returns an error if the call was not sent, or if no outcome of it arrived.
func (r Remote) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	return t.RunRemote(func(t pawl.Task) (x pawl.Execution, err error) {
		task, err := json.Marshal(t)
		if err != nil {
			return x, delivery.NewError(delivery.NotSent, "The call cannot be sent.", err)
		}
		done, err := r.Send(ctx, task, func(b []byte) {
			var e pawl.Event
			if json.Unmarshal(b, &e) == nil {
				emit(e)
			}
		})
		if err != nil {
			return x, err // the run asks about a write, unless a delivery.Error says NotSent
		}
		return x, json.Unmarshal(done, &x)
	})
}

// Worker is the other process. It has the same agent, and executes what it receives.
func Worker(ctx context.Context, agent *pawl.Agent, task []byte, event func([]byte)) ([]byte, error) {
	var t pawl.Task
	if err := json.Unmarshal(task, &t); err != nil {
		return nil, err
	}
	t, err := new(pawl.Engine).Attach(ctx, agent, t)
	if err != nil {
		return nil, delivery.NewError(delivery.NotSent, "No worker has the tools of this agent.", err)
	}

	// The whole pipeline: validation, approval, time limits. Failures are in the Execution.
	x := t.Do(ctx, func(e pawl.Event) {
		if b, err := json.Marshal(e); err == nil {
			event(b)
		}
	})
	return json.Marshal(x)
}

// end executor

// An Executor decides where a call is executed. The results are in the model's order, whichever
// call ends first, and the events of the other process are events of the run.
func Example_executor() {
	type word struct {
		Text string `json:"text"`
	}
	echo := pawl.Func("echo", "Says it again.", func(ctx context.Context, w word) (string, error) {
		pawl.InvocationFrom(ctx).Emit("saying "+w.Text, nil)
		return w.Text, nil
	})
	model := script.New(
		script.Together(
			script.Call("echo", `{"text":"one"}`),
			script.Call("shout", `{"text":"two"}`), // there is no such tool
			script.Call("echo", `{"text":3}`),      // a number where a text is wanted
		),
		script.Say("done"),
	)
	worker := &pawl.Agent{Model: model, Tools: []pawl.Toolset{echo}}
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{echo}, Executor: Remote{
		Send: func(ctx context.Context, task []byte, event func([]byte)) ([]byte, error) {
			return Worker(ctx, worker, task, event) // a network would be here
		}}}
	res, err := pawl.Collect(agent.Stream(context.Background(), llm.User("Say one, two, three.")), func(e pawl.Event) {
		if e.Kind == pawl.EventProgress {
			fmt.Println("progress:", e.Text)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range res.Steps[0].Executions {
		fmt.Println("executed:", x.Index, x.Outcome)
	}
	// Output:
	// progress: saying one
	// executed: 0 ok
	// executed: 1 unknown_tool
	// executed: 2 invalid
}
