package guide

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Echo is a provider: it calls the tool that the question names, and repeats the results.
type Echo struct{}

var _ llm.Model = Echo{}

// Stream yields one reply in fragments. The last fragment has the finish reason.
func (Echo) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		for _, t := range req.Tools {
			if strings.Contains(last.Text(), t.Name) {
				call := llm.ToolCall{ID: "call_1", Name: t.Name, Args: []byte(`{}`)}
				_ = yield(llm.Delta{Part: call, Done: true}, nil) &&
					yield(llm.Delta{Finish: llm.FinishReasonToolCalls}, nil)
				return
			}
		}
		for _, p := range last.Parts {
			if r, ok := p.(llm.ToolResult); ok && !yield(llm.Delta{Part: llm.Text{Text: r.Text()}}, nil) {
				return
			}
		}
		yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
	}
}

// Logged is an executor: it executes each call in this process, and logs it.
type Logged struct{}

var _ pawl.Executor = Logged{}

// Do executes one call. The run keeps the order of calls, and emits call_completed.
func (Logged) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	x := t.Do(ctx, emit) // the whole pipeline; failures are in the Execution
	fmt.Println("executed", x.Call.Name, x.Outcome)
	return x, nil
}

func Example_extending() {
	clock := pawl.Func("clock", "Returns the time.", func(context.Context, struct{}) (string, error) {
		return "It is noon.", nil
	})
	agent := &pawl.Agent{Model: Echo{}, Executor: Logged{}, Tools: []pawl.Toolset{clock}}
	res, err := agent.Run(context.Background(), llm.User("What does the clock say?"))
	fmt.Println(res.Text(), err)

	// Output:
	// executed clock ok
	// It is noon. <nil>
}
