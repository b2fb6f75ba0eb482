package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
)

// ways are the two ways to carry out a run; they are one loop and give the same.
var ways = map[string]func(context.Context, *pawl.Agent, ...pawl.Message) (*pawl.Result, error){
	"whole": func(ctx context.Context, a *pawl.Agent, msgs ...pawl.Message) (*pawl.Result, error) {
		return a.Run(ctx, msgs...)
	},
	"streamed": func(ctx context.Context, a *pawl.Agent, msgs ...pawl.Message) (*pawl.Result, error) {
		_, res, err := collect(a.Stream(ctx, msgs...))
		return res, err
	},
}

// caller always calls, whatever it is asked; with each reply the arguments change.
func caller() *script.Model {
	return script.New(script.Loop(script.Func(func(req *pawl.Request) script.Turn {
		return script.Call("f", fmt.Sprintf(`{"n":%d}`, len(req.Messages)))
	})))
}

// obedient calls until it is told to answer.
func obedient() *script.Model {
	return script.New(script.Loop(script.Func(func(req *pawl.Request) script.Turn {
		if req.Choice.Mode == pawl.ToolNone {
			return script.Say("the answer")
		}
		return script.Call("f", fmt.Sprintf(`{"n":%d}`, len(req.Messages)))
	})))
}

// N rounds make at most N+1 requests; with Answer the last one has the tool choice none, with Return its calls are handed back.
func TestRounds(t *testing.T) {
	for _, test := range []struct {
		rounds  int // as outside: 0 is never
		atLimit pawl.AtLimit
		model   func() *script.Model

		requests int
		ran      int
		stop     pawl.Stop
		open     int
		results  int // in the last message, of calls that were not run
		text     string
		last     pawl.ToolMode // choice of the last request
	}{
		{0, pawl.Answer, caller, 1, 0, pawl.StopLimit, 0, 1, "", pawl.ToolNone},
		{1, pawl.Answer, caller, 2, 1, pawl.StopLimit, 0, 1, "", pawl.ToolNone},
		{3, pawl.Answer, caller, 4, 3, pawl.StopLimit, 0, 1, "", pawl.ToolNone},
		{0, pawl.Return, caller, 1, 0, pawl.StopLimit, 1, 0, "", pawl.ToolAuto},
		{1, pawl.Return, caller, 2, 1, pawl.StopLimit, 1, 0, "", pawl.ToolAuto},
		{3, pawl.Return, caller, 4, 3, pawl.StopLimit, 1, 0, "", pawl.ToolAuto},
		{0, pawl.Answer, obedient, 1, 0, pawl.StopLimit, 0, 0, "the answer", pawl.ToolNone},
		{1, pawl.Answer, obedient, 2, 1, pawl.StopLimit, 0, 0, "the answer", pawl.ToolNone},
		{3, pawl.Answer, obedient, 4, 3, pawl.StopLimit, 0, 0, "the answer", pawl.ToolNone},
		{0, pawl.Return, obedient, 1, 0, pawl.StopLimit, 1, 0, "", pawl.ToolAuto},
		{3, pawl.Return, obedient, 4, 3, pawl.StopLimit, 1, 0, "", pawl.ToolAuto},
		{0, pawl.Answer, func() *script.Model { return script.New(script.Say("hi")) }, 1, 0, pawl.StopLimit, 0, 0, "hi", pawl.ToolNone},
		{3, pawl.Answer, func() *script.Model { return script.New(script.Call("f", nil), script.Say("hi")) }, 2, 1, pawl.StopAnswer, 0, 0, "hi", pawl.ToolAuto},
		{3, pawl.Return, func() *script.Model { return script.New(script.Call("f", nil), script.Say("hi")) }, 2, 1, pawl.StopAnswer, 0, 0, "hi", pawl.ToolAuto},
		{1, pawl.Return, func() *script.Model { return script.New(script.Call("f", nil), script.Say("hi")) }, 2, 1, pawl.StopAnswer, 0, 0, "hi", pawl.ToolAuto},
	} {
		for way, run := range ways {
			name := fmt.Sprintf("%d rounds, %v, %s", test.rounds, test.atLimit, way)
			ran := 0
			m := test.model()
			limit := test.rounds
			if limit == 0 {
				limit = pawl.NoRounds
			}
			a := &pawl.Agent{Model: m, Limits: pawl.Limits{Rounds: limit, AtLimit: test.atLimit}, Tools: []pawl.Toolset{
				does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
					ran++
					return pawl.TextResult(fmt.Sprint(ran)), nil
				})}}
			res, err := run(t.Context(), a, pawl.User("go"))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			reqs := m.Requests()
			if len(reqs) != test.requests || ran != test.ran || res.Stop != test.stop || len(res.Calls()) != test.open || res.Text() != test.text {
				t.Errorf("%s: got %d requests, %d calls run, %s, %d open, %q\nwant %+v", name, len(reqs), ran, res.Stop, len(res.Calls()), res.Text(), test)
			}
			if res.Spent.Requests != len(reqs) || res.Spent.Rounds != ran || res.Spent.Calls != ran {
				t.Errorf("%s: spent %+v", name, res.Spent)
			}
			last := reqs[len(reqs)-1]
			if last.Choice.Mode != test.last || len(last.Tools) != 1 || last.Whole != (way == "whole") {
				t.Errorf("%s: the last request has choice %v, %d tools, whole %t", name, last.Choice, len(last.Tools), last.Whole)
			}
			if test.stop == pawl.StopLimit && res.Cause == "" {
				t.Errorf("%s: no cause is stated", name)
			}
			end := res.Messages[len(res.Messages)-1]
			skipped := 0
			for _, p := range end.Parts {
				if r, ok := p.(pawl.ToolResult); ok && strings.HasPrefix(r.Text(), "Not run: the limit of ") {
					skipped++
				}
			}
			if skipped != test.results {
				t.Errorf("%s: %d calls were answered as not run, want %d:\n%s", name, skipped, test.results, say(res.Messages))
			}
			if err := valid(res.Messages); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRoundsByDefault(t *testing.T) {
	for way, run := range ways {
		m := caller()
		n := 0
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
			n++
			return pawl.TextResult(fmt.Sprint(n)), nil
		})}}
		if res, err := run(t.Context(), a, pawl.User("go")); err != nil || res.Stop != pawl.StopLimit || n != 20 || len(m.Requests()) != 21 {
			t.Errorf("%s: got %v, %d rounds, %d requests", way, err, n, len(m.Requests()))
		}
	}
	m := caller()
	res, err := pawl.Generate(t.Context(), &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}}, pawl.User("go"))
	if err != nil || len(m.Requests()) != 2 || len(res.Calls()) != 1 || len(res.Steps) != 2 || res.Stop != pawl.StopLimit {
		t.Errorf("Generate: got %v, %d requests, calls %v, %d steps", err, len(m.Requests()), res.Calls(), len(res.Steps))
	}
	var sum pawl.Usage
	for _, s := range res.Steps {
		sum.Add(s.Response.Usage)
	}
	if diff := cmp.Diff(res.Spent.Usage, sum); diff != "" || sum.Total() == 0 {
		t.Errorf("Generate's usage is not that of its steps: %s", diff)
	}
	m = caller()
	if _, err := pawl.Generate(t.Context(), &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}, Limits: pawl.Limits{Rounds: pawl.NoRounds}}, pawl.User("go")); err != nil || len(m.Requests()) != 1 {
		t.Errorf("Generate without rounds: %v, %d requests", err, len(m.Requests()))
	}
}

func TestAForcedChoiceHoldsForTheFirstRequest(t *testing.T) {
	for _, choice := range []pawl.ToolChoice{{Mode: pawl.ToolRequired}, pawl.Named("f"), {Mode: pawl.ToolNone}, {}} {
		m := script.New(script.Call("f", nil), script.Call("f", `{"a":1}`), script.Say("done"))
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}, Choice: choice}
		res, err := a.Run(t.Context(), pawl.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Resume(t.Context(), res, pawl.User("more"))
		if ee := (*script.ExhaustedError)(nil); !errors.As(err, &ee) {
			t.Fatal(err)
		}
		want := []pawl.ToolMode{choice.Mode, pawl.ToolAuto, pawl.ToolAuto, pawl.ToolAuto}
		if choice.Mode == pawl.ToolNone {
			want = slices.Repeat([]pawl.ToolMode{pawl.ToolNone}, 4)
		}
		var got []pawl.ToolMode
		for _, req := range m.Requests() {
			got = append(got, req.Choice.Mode)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%v: %s", choice, diff)
		}
	}
	a := &pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{says("f", "x"), says("g", "x")}, Choice: pawl.Named("h")}
	if _, err := a.Run(t.Context(), pawl.User("go")); err == nil || !strings.Contains(err.Error(), `no tool "h" is offered; offered: f, g`) {
		t.Errorf("got %v", err)
	}
}

// Calls of a reply that was cut are never run, and the model is told; it can send them again.
func TestCallsOfCutRepliesNeverRun(t *testing.T) {
	for _, finish := range []pawl.FinishReason{pawl.FinishLength, pawl.FinishContentFilter, pawl.FinishError} {
		for way, run := range ways {
			ran := 0
			cut := script.Together(script.Say("I look."), script.Call("f", nil), script.Call("f", `{"a":`))
			cut.Finish = finish
			m := script.New(cut, script.Call("f", nil), script.Say("done"))
			res, err := run(t.Context(), &pawl.Agent{Model: m, Tools: []pawl.Toolset{does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
				ran++
				return pawl.TextResult("x"), nil
			})}}, pawl.User("go"))
			if err != nil || res.Stop != pawl.StopAnswer || ran != 1 {
				t.Errorf("%s, %s: got %v, ran %d times", finish, way, err, ran)
				continue
			}
			mustBeValid(t, res)
			for _, x := range res.Steps[0].Executions {
				want := "Not run: your reply was cut (" + string(finish) + "), so this call may not be what you meant. Send it again, shorter if need be."
				if x.Outcome != pawl.OutcomeSkipped || x.Result.Text() != want || x.Attempts != 0 {
					t.Errorf("%s, %s: got %s, %q", finish, way, x.Outcome, x.Result.Text())
				}
			}
		}
	}
}

// Whole calls beside the reason stop are run: calls decide, not the finish reason.
func TestCallsDecideNotTheFinishReason(t *testing.T) {
	for _, finish := range []pawl.FinishReason{pawl.FinishStop, pawl.FinishOther} {
		turn := script.Call("f", nil)
		turn.Finish = finish
		res, err := (&pawl.Agent{Model: script.New(turn, script.Say("done")), Tools: []pawl.Toolset{says("f", "x")}}).Run(t.Context(), pawl.User("go"))
		if err != nil || res.Text() != "done" || res.Steps[0].Response.Finish != pawl.FinishToolCalls {
			t.Errorf("%s: got %+v, %v", finish, res, err)
		}
	}
}

// How a reply without calls ends the run.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		turn  script.Turn
		stop  pawl.Stop
		cause string
		code  pawl.Code
	}{
		{script.Say("hi"), pawl.StopAnswer, "", ""},
		{script.Say(" \n"), pawl.StopAnswer, "the answer is empty", ""},
		{script.Turn{}, pawl.StopAnswer, "the answer is empty", ""},
		{script.Cut(script.Say("it is")), pawl.StopLimit, "the answer was cut at the bound of the model's output", ""},
		{script.Turn{Parts: []pawl.Part{text("no")}, Finish: pawl.FinishContentFilter}, pawl.StopFailed, "content_filter: no", pawl.CodeContentFilter},
		{script.Turn{Finish: pawl.FinishError}, pawl.StopFailed, "server: the provider ended the reply with an error", pawl.CodeServer},
		{script.Turn{Finish: pawl.FinishOther}, pawl.StopAnswer, "the answer is empty", ""},
	} {
		for way, run := range ways {
			res, err := run(t.Context(), &pawl.Agent{Model: script.New(test.turn)}, pawl.User("go"))
			var pe *pawl.ProviderError
			if res.Stop != test.stop || res.Cause != test.cause || errors.As(err, &pe) != (test.code != "") || pe != nil && pe.Code != test.code {
				t.Errorf("%s: got %s, %q, %v; want %s, %q", way, res.Stop, res.Cause, err, test.stop, test.cause)
			}
			if len(res.Steps) != 1 || len(res.Messages) != 2 {
				t.Errorf("%s: %d steps, transcript\n%s", way, len(res.Steps), say(res.Messages))
			}
		}
	}
}

func TestInstructionsStandInFrontAndNotInTheTranscript(t *testing.T) {
	m := script.New(script.Call("f", nil), script.Say("done"))
	res, err := (&pawl.Agent{Model: m, Instructions: "Be brief.", Tools: []pawl.Toolset{says("f", "x")}, Output: json.RawMessage(`{}`),
		Settings: pawl.Settings{MaxTokens: 9}}).Run(t.Context(), pawl.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range m.Requests() {
		if diff := cmp.Diff(req.Messages, append([]pawl.Message{pawl.System("Be brief.")}, res.Messages[:2*i+1]...)); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}
		if req.Key != pawl.Key(fmt.Sprintf("run/%d/model", i)) || string(req.Output) != `{}` || req.Settings.MaxTokens != 9 {
			t.Errorf("request %d: %+v", i, req)
		}
	}
	if res.Messages[0].Role != pawl.RoleUser {
		t.Errorf("the transcript begins with\n%s", say(res.Messages[:1]))
	}
}

// Text that only echoes a call is dropped, and taken back from whoever saw it; prose is kept.
func TestLeaks(t *testing.T) {
	args := `{"city":"Oslo","days":[1,2.50]}`
	for _, test := range []struct {
		text string
		leak bool
	}{
		{`{"days":[1,2.50],"city":"Oslo"}`, true},
		{"```json\n{\"city\": \"Oslo\", \"days\": [1, 2.50]}\n```", true},
		{"```\n" + args + "```", true},
		{"```" + args + "```", true},
		{`{"name":"weather","arguments":` + args + `}`, true},
		{`{"name":"weather","parameters":` + args + `}`, true},
		{`{"name":"weather","arguments":"{\"city\":\"Oslo\",\"days\":[1,2.50]}"}`, true},
		{"  " + args + "\n", true},
		{`I call {"city":"Oslo","days":[1,2.50]}`, false},
		{args + ` is what I send`, false},
		{`{"city":"Bergen","days":[1,2.50]}`, false},
		{`{"name":"other","arguments":` + args + `}`, false},
		{`{}`, false},
		{`{"city":"Oslo"`, false},
		{`["Oslo"]`, false},
		{"Let me look.", false},
		{"", false},
	} {
		for way := range ways {
			turn := script.Together(script.Say(test.text), script.Call("weather", args), script.Say("After it."))
			a := &pawl.Agent{Model: script.New(turn, script.Say("done")), Tools: []pawl.Toolset{says("weather", "rain")}}
			events, res, err := collect(a.Stream(t.Context(), pawl.User("go")))
			if way == "whole" {
				res, err = a.Run(t.Context(), pawl.User("go"))
			}
			if err != nil {
				t.Fatal(err)
			}
			want := test.text + "After it."
			if test.leak {
				want = "After it."
			}
			if got := res.Messages[1].Text(); got != want || len(res.Messages[1].Calls()) != 1 {
				t.Errorf("%s, %q: kept %q", way, test.text, got)
			}
			var shown, taken string
			for _, e := range events {
				switch {
				case e.Step != 1:
				case e.Kind == pawl.EventText && e.Index == 0:
					shown += e.Text
				case e.Kind == pawl.EventTextRetracted:
					taken += e.Text
				}
			}
			if shown != test.text || test.leak && taken != test.text || !test.leak && taken != "" {
				t.Errorf("%q: shown %q, taken back %q", test.text, shown, taken)
			}
		}
	}
	// Several leaks are taken back under the numbers they were told by.
	turn := script.Together(script.Say(args), script.Say("Fine."), script.Say(args), script.Call("weather", args))
	events, res, _ := collect((&pawl.Agent{Model: script.New(turn, script.Say("done")), Tools: []pawl.Toolset{says("weather", "rain")}}).Stream(t.Context(), pawl.User("go")))
	var taken []int
	for _, e := range events {
		if e.Kind == pawl.EventTextRetracted {
			taken = append(taken, e.Index)
		}
	}
	if diff := cmp.Diff(taken, []int{0, 2}); diff != "" || res.Messages[1].Text() != "Fine." {
		t.Errorf("taken back %s", diff)
	}
	// An answer that is JSON is an answer.
	res, err := (&pawl.Agent{Model: script.New(script.Say(args))}).Run(t.Context(), pawl.User("go"))
	if err != nil || res.Text() != args {
		t.Errorf("got %q, %v", res.Text(), err)
	}
}

func TestLimits(t *testing.T) {
	use := func(turn script.Turn, u pawl.Usage) script.Turn {
		turn.Usage = &u
		return turn
	}
	three := script.Together(script.Call("f", `{"n":1}`), script.Call("f", `{"n":2}`), script.Call("f", `{"n":3}`))
	for _, test := range []struct {
		name     string
		limits   pawl.Limits
		turns    []script.Turn
		requests int
		ran      int64
		stop     pawl.Stop
		cause    string
		results  string
	}{
		{"calls", pawl.Limits{Calls: 2}, []script.Turn{three, script.Say("enough")}, 2, 2, pawl.StopLimit, "the limit of 2 calls was reached", "Not run: the limit of 2 calls was reached. Answer with what you have."},
		{"calls, not reached", pawl.Limits{Calls: 3}, []script.Turn{three, script.Say("enough")}, 2, 3, pawl.StopAnswer, "", ""},
		{"calls per step", pawl.Limits{CallsPerStep: 2}, []script.Turn{three, script.Say("enough")}, 2, 2, pawl.StopAnswer, "", "Not run: at most 2 calls of one reply are carried out. Send it again if it is still needed."},
		{"tokens", pawl.Limits{Tokens: 10}, []script.Turn{use(script.Call("f", nil), pawl.Usage{Input: 8, Output: 2}), script.Say("no")}, 1, 1, pawl.StopLimit, "10 tokens of 10 are used up", ""},
		{"tokens, not reached", pawl.Limits{Tokens: 11}, []script.Turn{use(script.Call("f", nil), pawl.Usage{Input: 8, Output: 2}), script.Say("yes")}, 2, 1, pawl.StopAnswer, "", ""},
		{"cost", pawl.Limits{Cost: 0.5}, []script.Turn{use(script.Call("f", nil), pawl.Usage{Cost: 0.5}), script.Say("no")}, 1, 1, pawl.StopLimit, "$0.5000 of $0.5000 are spent", ""},
	} {
		for way, run := range ways {
			var ran atomic.Int64
			m := script.New(test.turns...)
			a := &pawl.Agent{Model: m, Limits: test.limits, Executor: pawl.Parallel{Limit: 1}, Tools: []pawl.Toolset{
				does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
					ran.Add(1)
					return pawl.TextResult("x"), nil
				})}}
			res, err := run(t.Context(), a, pawl.User("go"))
			if err != nil || len(m.Requests()) != test.requests || ran.Load() != test.ran || res.Stop != test.stop || res.Cause != test.cause {
				t.Errorf("%s, %s: got %v, %d requests, %d run, %s, %q", test.name, way, err, len(m.Requests()), ran.Load(), res.Stop, res.Cause)
			}
			mustBeValid(t, res)
			if test.results != "" {
				last := res.Messages[2].Parts[2].(pawl.ToolResult)
				if last.Text() != test.results || !last.IsError {
					t.Errorf("%s, %s: the last call was told %q", test.name, way, last.Text())
				}
			}
		}
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := does("f", func(ctx context.Context, _ pawl.ToolCall) (pawl.ToolResult, error) {
			select {
			case <-time.After(30 * time.Second):
				return pawl.TextResult("x"), nil
			case <-ctx.Done():
				return pawl.ToolResult{}, ctx.Err()
			}
		})
		tool.Effect = pawl.Read
		m := caller()
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}, Limits: pawl.Limits{Time: 70 * time.Second}}
		begin := time.Now()
		res, err := a.Run(t.Context(), pawl.User("go"))
		if err != nil || res.Stop != pawl.StopLimit || res.Cause != "the time of 1m10s is used up" || time.Since(begin) != 70*time.Second || len(m.Requests()) != 3 {
			t.Errorf("got %v, %s, %q after %v and %d requests", err, res.Stop, res.Cause, time.Since(begin), len(m.Requests()))
		}
		if err := valid(res.Messages); err != nil || len(res.Calls()) != 1 {
			t.Errorf("%v, open %v", err, res.Calls())
		}
		// The call that was interrupted is open, and is made when the run goes on.
		if res, err = a.Resume(t.Context(), res); res.Spent.Rounds < 3 {
			t.Errorf("got %+v, %v", res.Spent, err)
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(pawl.ErrTime) // by whoever has a clock
	res, err := (&pawl.Agent{Model: script.New()}).Run(ctx, pawl.User("go"))
	if err != nil || res.Stop != pawl.StopLimit || res.Cause != "the time is used up" {
		t.Errorf("got %v, %s, %q", err, res.Stop, res.Cause)
	}
}

func TestStall(t *testing.T) {
	// The same call, args spelled in two ways, to the same result: the third is told, three more end the run.
	turns := []script.Turn{}
	for i := range 10 {
		turns = append(turns, script.Call("f", []string{`{"a":1,"b":2}`, `{"b":2, "a":1}`}[i%2]))
	}
	m := script.New(turns...)
	ran := 0
	same := does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
		ran++
		return pawl.TextResult("nothing new"), nil
	})
	res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{same}}).Run(t.Context(), pawl.User("go"))
	if err != nil || res.Stop != pawl.StopStalled || ran != 6 || len(m.Requests()) != 6 || !strings.Contains(res.Cause, "f") {
		t.Errorf("got %v, %s, %q after %d calls", err, res.Stop, res.Cause, ran)
	}
	mustBeValid(t, res)
	for i, s := range res.Steps {
		r := s.Executions[0].Result
		if told := strings.HasPrefix(r.Text(), "This call was made before with the same arguments, and its result does not change: nothing new"); told != (i >= 2) || r.IsError != told {
			t.Errorf("call %d: told %q", i+1, r.Text())
		}
	}
	// Polling whose result changes is not stalled, nor is a call whose arguments change.
	for name, tool := range map[string]pawl.ToolFunc{
		"polling": func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
			ran++
			return pawl.TextResult(fmt.Sprint(ran)), nil
		},
	} {
		res, err = (&pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil))), Tools: []pawl.Toolset{does("f", tool)}}).Run(t.Context(), pawl.User("go"))
		if err != nil || res.Stop != pawl.StopLimit || res.Spent.Rounds != 20 {
			t.Errorf("%s: got %v, %s, %q after %d rounds", name, err, res.Stop, res.Cause, res.Spent.Rounds)
		}
	}
	res, err = (&pawl.Agent{Model: caller(), Tools: []pawl.Toolset{same}}).Run(t.Context(), pawl.User("go"))
	if err != nil || res.Stop != pawl.StopLimit {
		t.Errorf("other arguments: got %v, %s", err, res.Stop)
	}
	// Two calls in turn are a repetition as well; a run that recovers is not ended.
	res, err = (&pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil), script.Call("g", nil))), Tools: []pawl.Toolset{same, says("g", "no")}}).Run(t.Context(), pawl.User("go"))
	if err != nil || res.Stop != pawl.StopStalled || res.Spent.Requests > 12 {
		t.Errorf("two in turn: got %v, %s after %d requests", err, res.Stop, res.Spent.Requests)
	}
	// Equal calls side by side in one reply cannot know of each other: they do not end the run before the model has been told.
	many := slices.Repeat([]pawl.Part{call("", "f", "{}")}, 12)
	res, err = (&pawl.Agent{Model: script.New(script.Turn{Parts: many}, script.Say("I see")), Tools: []pawl.Toolset{says("f", "nothing new")}}).Run(t.Context(), pawl.User("go"))
	if err != nil || res.Stop != pawl.StopAnswer {
		t.Errorf("side by side: got %v, %s, %q", err, res.Stop, res.Cause)
	}
}

func TestRepeats(t *testing.T) {
	for _, test := range []struct{ repeats, told, ran int }{{-1, 0, 20}, {0, 3, 6}, {2, 2, 4}, {5, 5, 10}} {
		res, err := (&pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil))), Tools: []pawl.Toolset{says("f", "x")},
			Limits: pawl.Limits{Repeats: test.repeats}}).Run(t.Context(), pawl.User("go"))
		told := 0
		for i, s := range res.Steps {
			if strings.HasPrefix(s.Executions[0].Result.Text(), "This call was made before") && told == 0 {
				told = i + 1
			}
		}
		if err != nil || told != test.told || res.Spent.Calls != test.ran || (res.Stop == pawl.StopStalled) != (test.repeats >= 0) {
			t.Errorf("Repeats %d: got %v, %s, first told at call %d, ended after %d", test.repeats, err, res.Stop, told, res.Spent.Calls)
		}
	}
}

func TestModelErrors(t *testing.T) {
	boom := &pawl.ProviderError{Provider: "openai", Status: 529, Code: pawl.CodeOverloaded, Message: "busy"}
	for way, run := range ways {
		m := script.New(script.Call("f", nil), script.Together(script.Say("Well, it"), script.Fail(boom)))
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}}
		res, err := run(t.Context(), a, pawl.User("go"))
		var pe *pawl.ProviderError
		if !errors.As(err, &pe) || pe != boom || err.Error() != "run/1/model: openai: overloaded (529): busy" || res.Stop != pawl.StopFailed || res.Cause != err.Error() {
			t.Errorf("%s: got %v, %+v", way, err, res)
		}
		if len(res.Messages) != 3 || len(res.Steps) != 1 || res.Spent.Requests != 1 {
			t.Errorf("%s: half a reply is in the transcript:\n%s", way, say(res.Messages))
		}
		a.Model = script.New(script.Turn{}, script.Say("done"))
		if res, err = a.Resume(t.Context(), res); err != nil || res.Text() != "done" {
			t.Errorf("%s: going on after an error: %v", way, err)
		}
	}
	for name, deltas := range map[string][]pawl.Delta{
		"no end":          {{Part: text("a"), Done: true}},
		"nothing":         {},
		"broken contract": {{Index: 4, Part: text("a")}},
		"after the end":   {{Part: text("a"), Finish: pawl.FinishStop}, {Index: 1, Part: text("b")}},
	} {
		turn := script.Turn{Deltas: deltas}
		if len(deltas) == 0 {
			turn = script.Turn{Deltas: []pawl.Delta{}}
		}
		res, err := (&pawl.Agent{Model: script.New(turn)}).Run(t.Context(), pawl.User("go"))
		if err == nil || res.Stop != pawl.StopFailed || len(res.Messages) != 1 {
			t.Errorf("%s: got %v, %+v", name, err, res)
		}
	}
}

// decisionError is what a driver returns that could not read a decision.
type decisionError struct{ x pawl.Execution }

func (e *decisionError) Error() string                   { return "no decision" }
func (e *decisionError) FailedExecution() pawl.Execution { return e.x }

func TestAnErrorThatCarriesAnExecutionIsRecorded(t *testing.T) {
	fault := &decisionError{pawl.Execution{Call: call("", "decision_extraction", ""), Outcome: pawl.OutcomeError, Error: "no JSON"}}
	events, res, err := collect((&pawl.Agent{Model: script.New(script.Fail(fault))}).Stream(t.Context(), pawl.User("go")))
	if !errors.Is(err, fault) || res.Stop != pawl.StopFailed || len(res.Steps) != 1 || len(res.Messages) != 1 {
		t.Fatalf("got %v, %+v", err, res)
	}
	if s := res.Steps[0]; s.Response != nil || s.Request == nil || s.Executions[0].Call.Name != "decision_extraction" {
		t.Errorf("got %+v", s)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, string(e.Kind))
	}
	if diff := cmp.Diff(kinds, []string{"run_started", "step_started", "request_started", "step", "run_ended"}); diff != "" {
		t.Error(diff)
	}
}

// Run and Stream are one loop: same transcript, same steps, same counts.
func TestRunAndStreamGiveTheSame(t *testing.T) {
	m := func() *script.Model {
		return script.New(script.Together(script.Think("hm"), script.Say("I look."), script.Call("f", `{"a": 1}`), script.Call("nope", nil)),
			script.Cut(script.Call("f", `{"a"`)), script.Say("done"))
	}
	var got []*pawl.Result
	for _, run := range ways {
		res, err := run(t.Context(), &pawl.Agent{Model: m(), Instructions: "Be brief.", Tools: []pawl.Toolset{says("f", "x")}}, pawl.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range res.Steps {
			for j := range res.Steps[i].Executions {
				x := &res.Steps[i].Executions[j]
				x.Started, x.Ended = time.Time{}, time.Time{}
			}
		}
		got = append(got, res)
	}
	if diff := cmp.Diff(got[0], got[1], sameData); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBegin(t *testing.T) {
	boom := errors.New("boom")
	m := script.New(script.Say("hi"))
	for name, test := range map[string]struct {
		agent *pawl.Agent
		msgs  []pawl.Message
		want  string
	}{
		"no model":     {&pawl.Agent{}, []pawl.Message{pawl.User("go")}, "no model"},
		"no message":   {&pawl.Agent{Model: m}, nil, "no message to answer"},
		"two tools":    {&pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", ""), says("f", "")}}, []pawl.Message{pawl.User("go")}, `two tools are named "f"`},
		"bad tool":     {&pawl.Agent{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "f"}}}, []pawl.Message{pawl.User("go")}, "neither Run nor Passive"},
		"broken tools": {&pawl.Agent{Model: m, Tools: []pawl.Toolset{brokenSet{boom}}}, []pawl.Message{pawl.User("go")}, "tools: boom"},
		"an answer":    {&pawl.Agent{Model: m}, []pawl.Message{pawl.User("go"), pawl.Assistant(text("hi"))}, "ends with an answer"},
	} {
		res, err := test.agent.Run(t.Context(), test.msgs...)
		if err == nil || !strings.Contains(err.Error(), test.want) || res != nil {
			t.Errorf("%s: got %v, %v", name, res, err)
		}
		n := 0
		for e, err := range test.agent.Stream(t.Context(), test.msgs...) {
			if n++; err == nil || e.Kind != "" {
				t.Errorf("%s: streamed %+v, %v", name, e, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: the stream has %d elements, want the error alone", name, n)
		}
	}
}

// tail is a model that says more and more, and does not look at its context.
func tail() pawl.Model {
	return modelFunc(func(context.Context, *pawl.Request) iter.Seq2[pawl.Delta, error] {
		return func(yield func(pawl.Delta, error) bool) {
			for yield(pawl.Delta{Part: text("and ")}, nil) {
			}
		}
	})
}

func TestMiddlewareAroundTheModel(t *testing.T) {
	var order []string
	note := func(name string) pawl.Middleware {
		return pawl.Middleware{Model: func(m pawl.Model) pawl.Model {
			return modelFunc(func(ctx context.Context, req *pawl.Request) iter.Seq2[pawl.Delta, error] {
				order = append(order, name)
				return m.Stream(ctx, req)
			})
		}}
	}
	if _, err := (&pawl.Agent{Model: script.New(script.Say("hi")), Middleware: []pawl.Middleware{note("a"), {}, note("b")}}).Run(t.Context(), pawl.User("go")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order, []string{"a", "b"}); diff != "" {
		t.Error(diff)
	}
}
