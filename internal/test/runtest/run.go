// run.go: executes a run, and reads what it was.
package runtest

import (
	"context"
	"iter"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Collect consumes a run and returns its events, its Result and its error, without a StopError.
func Collect(seq iter.Seq2[pawl.Event, error]) (events []pawl.Event, res *pawl.Result, err error) {
	for e, fault := range seq {
		if fault != nil {
			err = fault
			continue
		}
		events = append(events, e)
		if e.Kind == pawl.EventRunEnded && e.Run == "run" {
			res = e.Result
		}
	}
	res, err = Ended(res, err)
	return events, res, err
}

// Ways are the two ways to execute a run. Both use one loop and have the same result.
var Ways = map[string]func(context.Context, *pawl.Agent, ...llm.Message) (*pawl.Result, error){
	"whole": func(ctx context.Context, a *pawl.Agent, msgs ...llm.Message) (*pawl.Result, error) {
		return Ended(a.Run(ctx, msgs...))
	},
	"streamed": func(ctx context.Context, a *pawl.Agent, msgs ...llm.Message) (*pawl.Result, error) {
		_, res, err := Collect(a.Stream(ctx, msgs...))
		return res, err
	},
}

// Step runs one step of calls and checks the invariants of every executor: one call_completed for
// each call, and a valid transcript.
func Step(t testing.TB, ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
	t.Helper()
	events, res, err := Collect(a.Stream(ctx, llm.User("go")))
	if res == nil {
		t.Fatalf("no result: %v", err)
	}
	MustBeValid(t, res)
	completed := map[llm.Key]int{}
	for _, e := range events {
		if e.Kind == pawl.EventCallCompleted {
			completed[e.Path]++
		}
	}
	for _, s := range res.Steps {
		for i, x := range s.Executions {
			if completed[x.Key] != 1 {
				t.Errorf("call %s was completed %d times", x.Key, completed[x.Key])
			}
			if x.Index != i {
				t.Errorf("execution %d has index %d", i, x.Index)
			}
		}
	}
	return res, err
}

// Outcomes lists the outcomes of all executions of res, in order.
func Outcomes(res *pawl.Result) []pawl.Outcome {
	var out []pawl.Outcome
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			out = append(out, x.Outcome)
		}
	}
	return out
}

// One runs a single call through the pipeline of a and returns its execution, the run's Result and
// error.
func One(t testing.TB, ctx context.Context, a *pawl.Agent, c llm.ToolCall) (pawl.Execution, *pawl.Result, error) {
	t.Helper()
	a.Model = Together(c)
	res, err := Step(t, ctx, a)
	if len(res.Steps) == 0 || len(res.Steps[0].Executions) != 1 {
		t.Fatalf("no execution: %s, %s, %v", res.Stop, res.Cause, err)
	}
	return res.Steps[0].Executions[0], res, err
}
