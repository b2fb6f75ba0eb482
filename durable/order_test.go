package durable_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A Write that is approved before an earlier Write stays open, keeps its stored approval, and runs
// after the earlier one. ReplayEvents shows the stop with the held calls.
func TestAWriteDoesNotOvertakeAPendingWrite(t *testing.T) {
	var ran []string
	tool := func(name string) *pawl.Tool {
		run := func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran = append(ran, name)
			return llm.TextResult(name), nil
		}
		return &pawl.Tool{Name: name, Effect: pawl.EffectWrite, Run: run}
	}
	newAgent := func() *pawl.Agent {
		return &pawl.Agent{Model: script.New(script.Together(script.Call("pay", nil), script.Call("send", nil),
			script.Call("file", nil)), script.Say("done")),
			Tools:      []pawl.Toolset{tool("pay"), tool("send"), tool("file")},
			Middleware: []pawl.Middleware{pawl.Approve(policy.Rules{Ask: []string{"pay", "send"}, Allow: []string{"file"}}.Approve)}}
	}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	res, err := runtest.Ended(eng.Runner("r", newAgent()).Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopPending || len(res.Pending) != 2 || len(ran) != 0 {
		t.Fatalf("%+v, %v, ran %v", res, err, ran)
	}
	pay, send := res.Pending[0], res.Pending[1]
	res, err = runtest.Ended(eng.Runner("r", newAgent()).Run(t.Context(), llm.DecisionMessage(send.Approve("ann"))))
	if err != nil || res.Stop != pawl.StopPending || len(ran) != 0 {
		t.Fatalf("after the second approval: %+v, %v, ran %v", res, err, ran)
	}
	open := 0
	for e, err := range eng.ReplayEvents("r", newAgent()).Stream(t.Context()) {
		var stop *pawl.StopError
		if err != nil && !errors.As(err, &stop) {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventCallCompleted && e.Execution.Outcome == pawl.OutcomePending {
			open++
		}
		if e.Kind == pawl.EventRunEnded && e.Result.Stop != pawl.StopPending {
			t.Errorf("the replay stops with %s", e.Result.Stop)
		}
	}
	if open != 3 || len(ran) != 0 {
		t.Errorf("the replay has %d open calls, want 3; ran %v", open, ran)
	}
	res, err = runtest.Ended(eng.Runner("r", newAgent()).Run(t.Context(), llm.DecisionMessage(pay.Approve("ann"))))
	if err != nil || res.Stop != pawl.StopAnswer || !slices.Equal(ran, []string{"pay", "send", "file"}) {
		t.Errorf("after the first approval: %+v, %v, ran %v", res, err, ran)
	}
}
