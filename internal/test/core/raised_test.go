package core_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
)

// A run that stopped at a limit does what its error says: the limit is raised, and Resume continues
// it without a message. An answer that only passed the limit is the answer, without a request.
func TestRaisedLimit(t *testing.T) {
	used := func(turn script.Turn, n int) script.Turn {
		turn.Usage = &llm.Usage{Input: n / 2, Output: n / 2}
		return turn
	}
	twice := script.Together(script.Call("f", `{"n":1}`), script.Call("f", `{"n":2}`))
	cut := script.Say("half")
	cut.Finish = llm.FinishReasonLength
	for _, c := range []struct {
		name     string
		limits   pawl.Limits
		output   string
		turns    []script.Turn
		limit    pawl.LimitName
		text     string // the answer under the raised limit
		requests int    // under the raised limit
	}{
		{"rounds, asked for an answer", pawl.Limits{Rounds: 1}, "",
			[]script.Turn{script.Call("f", `{}`), script.Say("partial"), script.Say("full")}, "rounds", "full", 1},
		{"rounds, the calls returned", pawl.Limits{Rounds: 1, AtLimit: pawl.AtLimitReturn}, "",
			[]script.Turn{script.Call("f", `{}`), script.Call("f", `{"n":1}`), script.Say("full")}, "rounds", "full", 1},
		{"calls", pawl.Limits{Calls: 1}, "",
			[]script.Turn{twice, script.Say("partial"), script.Say("full")}, "calls", "full", 1},
		{"cost, asked for an answer", pawl.Limits{Cost: 0.003}, "",
			[]script.Turn{used(script.Call("f", `{}`), 2000), used(script.Say("partial"), 2000), script.Say("full")}, "cost", "full", 1},
		{"cost, passed by the answer", pawl.Limits{Cost: 0.001}, "",
			[]script.Turn{used(script.Say("whole"), 2000), script.Say("again")}, "cost", "whole", 0},
		{"tokens, passed by the answer", pawl.Limits{Tokens: 1000}, "",
			[]script.Turn{used(script.Say("whole"), 2000), script.Say("again")}, "tokens", "whole", 0},
		{"tokens, passed by an answer with a schema", pawl.Limits{Tokens: 1000},
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
			[]script.Turn{used(script.Say(`{"a":1}`), 2000), script.Say(`{"a":2}`)}, "tokens", `{"a":1}`, 0},
		{"tokens, passed by calls", pawl.Limits{Tokens: 1000}, "",
			[]script.Turn{used(script.Call("f", `{}`), 2000), script.Say("full")}, "tokens", "full", 1},
		{"the length of a reply", pawl.Limits{}, "",
			[]script.Turn{cut, script.Say("full")}, "output", "full", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &sequence{turns: c.turns}
			asked := func() int { return len(c.turns) - len(m.turns) }
			agent := &pawl.Agent{Model: catalog.Price{Input: 1, Output: 1}.Of(m), Limits: c.limits}
			if c.output != "" {
				agent.Output = json.RawMessage(c.output)
			} else {
				agent.Tools = []pawl.Toolset{says("f", "ok")}
			}
			res, err := agent.Run(t.Context(), llm.User("go"))
			var stop *pawl.StopError
			if !errors.As(err, &stop) || res.Limit != c.limit || !strings.Contains(err.Error(), "and Resume") {
				t.Fatalf("%+v, %v; want the limit %s", res, err, c.limit)
			}
			stored, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			res = new(pawl.Result)
			if err := json.Unmarshal(stored, res); err != nil {
				t.Fatal(err)
			}

			// The negative control: under the same limit an answer that passed it is no answer.
			before := asked()
			if c.requests == 0 {
				again, err := agent.Resume(t.Context(), res)
				if !errors.As(err, &stop) || again.Limit != c.limit || asked() != before {
					t.Errorf("the same limit: %+v, %v, %d requests", again, err, asked()-before)
				}
			}
			raised := *agent
			raised.Limits = pawl.Limits{}
			again, err := raised.Resume(t.Context(), res)
			if err != nil || again.Text() != c.text || asked()-before != c.requests {
				t.Fatalf("the raised limit: %q, %v, %d requests; want %q, %d", again.Text(), err, asked()-before, c.text, c.requests)
			}
			mustBeValid(t, again)
			if again.Spent.Requests != asked() {
				t.Errorf("%d requests are counted, want %d", again.Spent.Requests, asked())
			}
			if last := again.Messages[len(again.Messages)-1]; c.output == "" && last.Text() != c.text {
				t.Errorf("the conversation ends with %q", last.Text())
			}
		})
	}
}

// The cause of a limit on cost has the usage at the end, also if the model was asked for an answer.
func TestCauseHasTheUsage(t *testing.T) {
	u := &llm.Usage{Input: 1000, Output: 1000}
	first, last := script.Call("f", `{}`), script.Say("partial")
	first.Usage, last.Usage = u, u
	agent := &pawl.Agent{Model: catalog.Price{Input: 1, Output: 1}.Of(script.New(first, last)),
		Tools: []pawl.Toolset{says("f", "ok")}, Limits: pawl.Limits{Cost: 0.003}}
	res, _ := agent.Run(t.Context(), llm.User("go"))
	if want := "$0.0040 of $0.0030 are spent; the model was asked to answer"; res.Cause != want {
		t.Errorf("got the cause %q, want %q; spent %v", res.Cause, want, res.Spent.Usage.Cost)
	}
}
