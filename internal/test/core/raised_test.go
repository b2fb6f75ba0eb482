package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
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

// What a limit means for an answer is a field of the Result and not its Cause, which is a sentence
// for people: an answer that passed a limit is kept with any sentence, and an answer that
// a limit forced is asked for again.
func TestRaisedReadsNoCause(t *testing.T) {
	usage := &llm.Usage{Input: 90, Output: 20}
	whole, call := script.Say("the answer"), script.Call("f", `{}`)
	whole.Usage, call.Usage = usage, usage
	for _, c := range []struct {
		name     string
		limits   pawl.Limits
		turns    []script.Turn
		requests int // of both runs
	}{
		{"passed", pawl.Limits{Tokens: 100}, []script.Turn{whole, script.Say("again")}, 1},
		{"forced by tokens", pawl.Limits{Tokens: 200}, []script.Turn{call, script.Say("in short"), script.Say("again")}, 3},
		{"forced by rounds", pawl.Limits{Rounds: 1}, []script.Turn{call, script.Say("in short"), script.Say("again")}, 3},
	} {
		for _, cause := range []string{"", "110 von 100 Token sind verbraucht", "12 tokens of 10 are used up", "all are spent"} {
			agent := &pawl.Agent{Model: script.New(c.turns...), Tools: []pawl.Toolset{says("f", "ok")}, Limits: c.limits}
			res, err := agent.Run(t.Context(), llm.User("go"))
			if res == nil || res.Stop != pawl.StopLimit {
				t.Fatalf("%s: %+v, %v; want a limit", c.name, res, err)
			}
			if cause != "" {
				res.Cause = cause
			}
			agent.Limits = pawl.Limits{}
			res, err = agent.Resume(t.Context(), res)
			if err != nil || res.Spent.Requests != c.requests {
				t.Errorf("%s, cause %q: %d requests, %v; want %d", c.name, cause, res.Spent.Requests, err, c.requests)
			}
		}
	}
}

// An answer by a tool that passed a limit is the answer under the raised limit, with the same stop
// reason as without a limit.
func TestRaisedAnswerOfATool(t *testing.T) {
	call := script.Call("submit", `{}`)
	call.Usage = &llm.Usage{Input: 90, Output: 20}
	submit := does("submit", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{}, pawl.FinishError(llm.TextResult("the report"))
	})
	agent := &pawl.Agent{Model: script.New(call), Tools: []pawl.Toolset{submit}, Limits: pawl.Limits{Tokens: 100}}
	res, err := agent.Run(t.Context(), llm.User("go"))
	if res == nil || res.Stop != pawl.StopLimit || res.Text() != "the report" || res.Answer.Forced {
		t.Fatalf("%+v, %v; want the limit of tokens and the report", res, err)
	}
	agent.Limits.Tokens = 0
	res, err = agent.Resume(t.Context(), res)
	if err != nil || res.Stop != pawl.StopFinished || res.Text() != "the report" || res.Spent.Requests != 1 {
		t.Errorf("%+v, %v; want the report with no further request", res, err)
	}
}

// A Result that was stored without Answer says the same as before.
func TestStoredWithoutAnswer(t *testing.T) {
	said := []llm.Message{llm.User("go"), llm.Assistant(llm.Text{Text: "said"})}
	ended := []pawl.Step{{Executions: []pawl.Execution{{Key: "run/1/0", Ends: pawl.StopFinished, Result: llm.TextResult("by a tool")}}}}
	for _, c := range []struct {
		name string
		res  pawl.Result
		want string
	}{
		{"a reply", pawl.Result{Stop: pawl.StopAnswer, Messages: said}, "said"},
		{"output", pawl.Result{Stop: pawl.StopAnswer, Messages: said, Output: json.RawMessage(`{"a":1}`)}, `{"a":1}`},
		{"a tool", pawl.Result{Stop: pawl.StopFinished, Messages: said, Steps: ended}, "by a tool"},
		{"a tool, with a limit", pawl.Result{Stop: pawl.StopLimit, Messages: said, Steps: ended}, "by a tool"},
		{"a failure", pawl.Result{Stop: pawl.StopFailed, Messages: said, Steps: ended}, "said"},
	} {
		if got := c.res.Text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A run has the answer that a tool gave, whole and streamed.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "Go", func(t *testing.T, task string) string {
		res, err := answertest.Writer().Run(t.Context(), llm.User(task))
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := pawl.Collect(answertest.Writer().Stream(t.Context(), llm.User(task)), nil)
		if err != nil || streamed.Text() != res.Text() {
			t.Errorf("%v; the streamed run has the answer %q", err, streamed.Text())
		}
		return res.Text()
	})
}

// A number of rounds means the same whole and streamed.
func TestRoundsAtTheDoors(t *testing.T) {
	ask := func(t *testing.T, res *pawl.Result, err error) string {
		t.Helper()
		res, err = runtest.Ended(res, err)
		if err != nil {
			t.Fatal(err)
		}
		return answertest.ShownBy(res)
	}
	answertest.PlayRounds(t, "Go", func(t *testing.T, l *answertest.Looker, _ int) string {
		res, err := l.Run(t.Context(), llm.User("go"))
		return ask(t, res, err)
	})
	answertest.PlayRounds(t, "Go, streamed", func(t *testing.T, l *answertest.Looker, _ int) string {
		res, err := pawl.Collect(l.Stream(t.Context(), llm.User("go")), nil)
		return ask(t, res, err)
	})
}
