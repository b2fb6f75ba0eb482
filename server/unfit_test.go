package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/tools/outside"
)

// A caller of an agent of another server, over A2A, finds why its answer does not fit with
// errors.As, as the caller of a run does. The model of the caller reads it. Control: a run that
// failed otherwise has no such error.
func TestUnfitAnswerOverA2A(t *testing.T) {
	agents := []*pawl.Agent{
		{Name: "counter", Model: script.New(script.Loop(script.Say(`{"n":"many"}`))), Limits: pawl.Limits{Corrections: -1},
			Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
	}
	const text, called, failure = "an unfit answer", "an unfit answer by a call", "another failure"
	for _, name := range []string{text, called, failure} {
		t.Run(name, func(t *testing.T) {
			own := *agents[0]
			fails := name == failure
			switch name {
			case called:
				own.Tools = []pawl.Toolset{&pawl.Tool{Name: "count", Input: json.RawMessage(`{"type":"object"}`), Effect: pawl.EffectRead,
					Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("1"), nil }}}
				own.Model = script.New(script.Loop(script.Call("final_answer", `{"n":"many"}`)))
			case failure:
				own.Model = script.New(script.Fail(errors.New("no model")))
			}
			v := serve(t, func(o *options) {
				o.Agents = []*pawl.Agent{&own}
				o.A2A = &server.A2A{}
				o.Access.Tokens = a2aTokens
			})
			t.Setenv("CLERK_TOKEN", a2aTokens[0].Token)
			defs, err := outside.Parse([]byte(`tools: [{a2a: {name: ask, description: Asks., effect: read, url: "` + v.url + "/a2a/counter" +
				`", headers: {Authorization: "Bearer ${CLERK_TOKEN}"}}}]`))
			if err != nil {
				t.Fatal(err)
			}
			set, err := outside.New(defs, nil)
			if err != nil {
				t.Fatal(err)
			}

			x := pawl.Toolsets{set}.Execute(t.Context(), llm.ToolCall{ID: "1", Name: "ask", Args: json.RawMessage(`{"message":"go"}`)})
			if x.Outcome != pawl.OutcomeError || !x.Result.IsError {
				t.Fatalf("%s, %q", x.Outcome, x.Result.Text())
			}
			var unfit *pawl.OutputError
			found := errors.As(x.Err(), &unfit)
			if found == fails {
				t.Fatalf("found %v in %v; the model reads %q", found, x.Err(), x.Result.Text())
			}
			if found && (unfit.Text != `{"n":"many"}` || !slices.Equal(unfit.Faults, []string{"field n: expected integer, got string \"many\""})) {
				t.Errorf("got %q, %q", unfit.Text, unfit.Faults)
			}
		})
	}
}
