// Package onecall is the smallest run that executes a tool. The budget of archtest counts the
// functions of the core that it runs.
package onecall

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestOneCall(t *testing.T) {
	type add struct{ A, B int }
	sum := pawl.Func("sum", "Adds two numbers.", func(_ context.Context, in add) (int, error) {
		return in.A + in.B, nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Call("sum", `{"A":2,"B":3}`), script.Say("5")),
		Tools: []pawl.Toolset{sum},
	}
	res, err := agent.Run(t.Context(), llm.User("What is 2 + 3?"))
	if err != nil || res.Text() != "5" {
		t.Fatalf("got %q, %v, want the answer 5", res.Text(), err)
	}
}
