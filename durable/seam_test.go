package durable_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store/sqlite"
)

// lying is an Executor with a fault.
type lying func(context.Context, pawl.Task, func(pawl.Event)) (pawl.Execution, error)

func (f lying) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	return f(ctx, t, emit)
}

// A durable run of an agent whose Executor lies has no answer without the outcome of its call, and
// asks about the write, also in the next process. The control executes the call.
func TestLyingExecutorsOfDurableRuns(t *testing.T) {
	changed := func(change func(*pawl.Execution)) lying {
		return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
			x := t.Do(ctx, emit)
			change(&x)
			return x, nil
		}
	}
	for name, executor := range map[string]lying{
		"control":   nil,
		"empty":     changed(func(x *pawl.Execution) { *x = pawl.Execution{} }),
		"other key": changed(func(x *pawl.Execution) { x.Key = "run/9/9" }),
		"other ID":  changed(func(x *pawl.Execution) { x.Call.ID = "c9" }),
		"outcome":   changed(func(x *pawl.Execution) { x.Outcome = "done" }),
		"unknown":   changed(func(x *pawl.Execution) { x.Outcome = pawl.OutcomeUnknown }),
		"pending":   changed(func(x *pawl.Execution) { x.Outcome = pawl.OutcomePending }),
		"panic":     func(context.Context, pawl.Task, func(pawl.Event)) (pawl.Execution, error) { panic("lost") },
		"error": func(context.Context, pawl.Task, func(pawl.Event)) (pawl.Execution, error) {
			return pawl.Execution{}, errors.New("connection reset")
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()

			agent := func() *pawl.Agent {
				pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
				pay.Effect = pawl.EffectWrite
				model := script.New(script.Call("pay", `{}`), script.Say("It is paid."))
				return &pawl.Agent{Name: "clerk", Model: model, Tools: []pawl.Toolset{pay}}
			}
			a := agent()
			if executor != nil {
				a.Executor = executor
			}
			res, err := runtest.Ended((&durable.Engine{Journal: db}).Runner("r", a).Run(t.Context(), llm.User("Pay.")))
			if executor == nil {
				if err != nil || res.Text() != "It is paid." {
					t.Errorf("%+v, %v", res, err)
				}
				return
			}
			if !asksOnce(res) {
				t.Fatalf("got %+v, %v; want a question about the write", res, err)
			}

			// The next process has an honest Executor. It asks the same, and does not pay again.
			res, err = runtest.Ended((&durable.Engine{Journal: db}).Runner("r", agent()).Run(t.Context()))
			if !asksOnce(res) {
				t.Errorf("the next process: got %+v, %v; want the question about the write", res, err)
			}
		})
	}
}

// asksOnce reports whether a run has no answer, and asks whether its call took effect.
func asksOnce(res *pawl.Result) bool {
	if res == nil || res.Answer != nil || len(res.Pending) != 1 {
		return false
	}
	return res.Pending[0].Outcome == pawl.OutcomeUnknown
}
