package examples

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// begin executor

// Backwards executes the calls of a step one after another, the last one first, and logs them. The
// results are still in the model's order, because each completed event carries its index.
type Backwards struct{ Log *[]string }

var _ pawl.Executor = Backwards{}

// Execute yields the events, and one completed event for each task, all on the goroutine that
// ranges over the sequence.
func (b Backwards) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return func(yield func(pawl.Event) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		more := true
		emit := func(e pawl.Event) {
			if more && !yield(e) {
				more = false
				// the caller stopped: the remaining calls end at once, each with its execution
				cancel()
			}
		}
		for i := len(tasks) - 1; i >= 0; i-- {
			// the whole pipeline; it never fails, and failures are recorded in the Execution
			x := tasks[i].Do(ctx, emit)
			*b.Log = append(*b.Log, fmt.Sprintf("%s %s", x.Call.Name, x.Outcome))
			emit(tasks[i].Completed(x))
		}
	}
}

// end executor

// An Executor decides where and when calls are executed. Validation, approval and time limits stay
// with the pipeline.
func Example_executor() {
	type word struct {
		Text string `json:"text"`
	}
	echo := pawl.Func("echo", "Says it again.", func(_ context.Context, w word) (string, error) { return w.Text, nil })
	model := script.New(
		script.Together(
			script.Call("echo", `{"text":"one"}`),
			script.Call("shout", `{"text":"two"}`), // there is no such tool
			script.Call("echo", `{"text":3}`),      // a number where a text is wanted
		),
		script.Say("done"),
	)
	var log []string
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{echo}, Executor: Backwards{&log}}
	res, err := agent.Run(context.Background(), llm.User("Say one, two, three."))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range log {
		fmt.Println("ran:", line)
	}
	for _, x := range res.Steps[0].Executions {
		fmt.Println("told:", x.Index, x.Outcome)
	}
	// Output:
	// ran: echo invalid
	// ran: shout unknown_tool
	// ran: echo ok
	// told: 0 ok
	// told: 1 unknown_tool
	// told: 2 invalid
}
