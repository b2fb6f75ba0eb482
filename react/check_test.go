package react_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

// Arguments are read as in native calling: repaired if they have one meaning, and recorded. Text
// other than JSON is the value of a tool's only parameter, if that takes text.
func TestArguments(t *testing.T) {
	calc := pawl.Func("calc", "Calculates.", func(_ context.Context, in struct {
		Expression string `json:"expression"`
	}) (string, error) {
		return "= " + in.Expression, nil
	})
	now := pawl.Func("now", "The time.", func(context.Context, struct{}) (string, error) { return "noon", nil })
	for _, tt := range []struct{ name, reply, result string }{
		{"no JSON", "Action: calc\nAction Input: 5 + 3", "= 5 + 3"},
		{"a JSON string", "Action: calc\nAction Input: \"5 + 3\"", "= 5 + 3"},
		{"a number", "Action: calc\nAction Input: 53", "= 53"},
		{"Python", "Action: calc\nAction Input: {'expression': '5 + 3',}", "= 5 + 3"},
		{"fenced", "Action: calc\nAction Input:\n```json\n{\"expression\": \"5 + 3\"}\n```", "= 5 + 3"},
		{"as text in JSON", `{"thought":"","type":"call_tool","tool":"calc","args":"{\"expression\":\"5 + 3\"}"}`, "= 5 + 3"},
		{"nothing", "Action: now\nAction Input:", "noon"},
		{"no input", "Action: now", "noon"},
		{"null", `{"thought":"","type":"call_tool","tool":"now","args":null}`, "noon"},
		{"left out", `{"thought":"","type":"call_tool","tool":"now"}`, "noon"},
	} {
		m := react.New(script.New(script.Say(tt.reply), script.Say("Final Answer: ok")), &react.Options{MaxRetries: -1})
		res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{calc, now, weather()}}).Run(t.Context(), llm.User("go"))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := res.Steps[0].Executions[0]; got.Result.Text() != tt.result || got.Outcome != pawl.OutcomeOK {
			t.Errorf("%s: got %s %q, want %q", tt.name, got.Outcome, got.Result.Text(), tt.result)
		}
	}
	// With two parameters, or a parameter that takes no text, the value would be a guess.
	for _, reply := range []string{"Action: weather\nAction Input: Oslo", "Action: calc\nAction Input: {5 + 3", "Action: now\nAction Input: [1]"} {
		m := react.New(script.New(script.Say(reply)), &react.Options{MaxRetries: -1})
		_, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{calc, now, weather()}}).Run(t.Context(), llm.User("go"))
		var de *react.DecisionError
		if !errors.As(err, &de) || de.Stage != react.Validation {
			t.Errorf("%q: got %v", reply, err)
		}
	}
}
