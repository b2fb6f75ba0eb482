package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
)

// obedient makes calls until a message asks it to answer.
func obedient() *script.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if req.Choice.Mode == llm.ToolNone {
			return script.Say("the answer")
		}
		return script.Call("f", fmt.Sprintf(`{"n":%d}`, len(req.Messages)))
	})))
}

// N rounds make at most N+1 requests. With Answer, the last request has the tool choice none. With
// Return, the calls of the last reply are returned open.
func TestRounds(t *testing.T) {
	for _, test := range []struct {
		rounds  int // as for a user: 0 is never
		atLimit pawl.AtLimit
		model   func() *script.Model

		requests int
		ran      int
		stop     pawl.StopReason
		open     int
		results  int // of the last message, whose calls were not executed
		text     string
		last     llm.ToolMode // choice of the last request
	}{
		{0, pawl.AtLimitAnswer, caller, 1, 0, pawl.StopLimit, 0, 1, "", llm.ToolNone},
		{1, pawl.AtLimitAnswer, caller, 2, 1, pawl.StopLimit, 0, 1, "", llm.ToolNone},
		{3, pawl.AtLimitAnswer, caller, 4, 3, pawl.StopLimit, 0, 1, "", llm.ToolNone},
		{0, pawl.AtLimitReturn, caller, 1, 0, pawl.StopLimit, 1, 0, "", llm.ToolAuto},
		{1, pawl.AtLimitReturn, caller, 2, 1, pawl.StopLimit, 1, 0, "", llm.ToolAuto},
		{3, pawl.AtLimitReturn, caller, 4, 3, pawl.StopLimit, 1, 0, "", llm.ToolAuto},
		{0, pawl.AtLimitAnswer, obedient, 1, 0, pawl.StopLimit, 0, 0, "the answer", llm.ToolNone},
		{1, pawl.AtLimitAnswer, obedient, 2, 1, pawl.StopLimit, 0, 0, "the answer", llm.ToolNone},
		{3, pawl.AtLimitAnswer, obedient, 4, 3, pawl.StopLimit, 0, 0, "the answer", llm.ToolNone},
		{0, pawl.AtLimitReturn, obedient, 1, 0, pawl.StopLimit, 1, 0, "", llm.ToolAuto},
		{3, pawl.AtLimitReturn, obedient, 4, 3, pawl.StopLimit, 1, 0, "", llm.ToolAuto},
		{0, 0, obedient, 1, 0, pawl.StopLimit, 1, 0, "", llm.ToolAuto}, // NoRounds offers the tools
		{0, pawl.AtLimitAnswer, func() *script.Model { return script.New(script.Say("hi")) }, 1, 0, pawl.StopLimit,
			0, 0, "hi", llm.ToolNone},
		{3, pawl.AtLimitAnswer, func() *script.Model {
			return script.New(script.Call("f", nil), script.Say("hi"))
		}, 2, 1, pawl.StopAnswer, 0, 0, "hi", llm.ToolAuto},
		{3, pawl.AtLimitReturn, func() *script.Model {
			return script.New(script.Call("f", nil), script.Say("hi"))
		}, 2, 1, pawl.StopAnswer, 0, 0, "hi", llm.ToolAuto},
		{1, pawl.AtLimitReturn, func() *script.Model {
			return script.New(script.Call("f", nil), script.Say("hi"))
		}, 2, 1, pawl.StopAnswer, 0, 0, "hi", llm.ToolAuto},
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
				does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					ran++
					return llm.TextResult(fmt.Sprint(ran)), nil
				})}}
			res, err := run(t.Context(), a, llm.User("go"))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			reqs := m.Requests()
			if len(reqs) != test.requests || ran != test.ran || res.Stop != test.stop ||
				len(res.Calls()) != test.open || res.Text() != test.text {
				t.Errorf("%s: got %d requests, %d calls run, %s, %d open, %q\nwant %+v", name, len(reqs), ran, res.Stop, len(res.Calls()), res.Text(), test)
			}
			if res.Spent.Requests != len(reqs) || res.Spent.Rounds != ran || res.Spent.Calls != ran {
				t.Errorf("%s: spent %+v", name, res.Spent)
			}
			last := reqs[len(reqs)-1]
			if last.Choice.Mode != test.last || len(last.Tools) != 1 || last.Whole != (way == "whole") {
				t.Errorf("%s: the last request has choice %v, %d tools, whole %t", name, last.Choice, len(last.Tools), last.Whole)
			}
			if test.stop == pawl.StopLimit && (res.Cause == "" || res.Limit != "rounds") ||
				test.stop != pawl.StopLimit && res.Limit != "" {
				t.Errorf("%s: the cause is %q, the limit is %q", name, res.Cause, res.Limit)
			}
			end := res.Messages[len(res.Messages)-1]
			skipped := 0
			for _, p := range end.Parts {
				if r, ok := p.(llm.ToolResult); ok && strings.HasPrefix(r.Text(), "Not run: the limit of ") {
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
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{does("f", func(context.Context,
			llm.ToolCall) (llm.ToolResult, error) {
			n++
			return llm.TextResult(fmt.Sprint(n)), nil
		})}}
		if res, err := run(t.Context(), a, llm.User("go")); err != nil || res.Stop != pawl.StopLimit || n != 20 ||
			len(m.Requests()) != 21 {
			t.Errorf("%s: got %v, %d rounds, %d requests", way, err, n, len(m.Requests()))
		}
	}
	m := caller()
	res, err := runtest.Ended((&pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}}).Once(t.Context(), llm.User("go")))
	if err != nil || len(m.Requests()) != 2 || len(res.Calls()) != 1 || len(res.Steps) != 2 ||
		res.Stop != pawl.StopLimit {
		t.Errorf("Once: got %v, %d requests, calls %v, %d steps", err, len(m.Requests()), res.Calls(), len(res.Steps))
	}
	var sum llm.Usage
	for _, s := range res.Steps {
		sum.Add(s.Response.Usage)
	}
	if diff := cmp.Diff(res.Spent.Usage, sum); diff != "" || sum.Total() == 0 {
		t.Errorf("Once's usage is not that of its steps: %s", diff)
	}
	m = caller()
	if _, err := runtest.Ended((&pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")},
		Limits: pawl.Limits{Rounds: pawl.NoRounds}}).Once(t.Context(), llm.User("go"))); err != nil ||
		len(m.Requests()) != 1 {
		t.Errorf("Once without rounds: %v, %d requests", err, len(m.Requests()))
	}
}

func TestLimits(t *testing.T) {
	use := func(turn script.Turn, u llm.Usage) script.Turn {
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
		stop     pawl.StopReason
		cause    string
		results  string
	}{
		{"calls", pawl.Limits{Calls: 2}, []script.Turn{three, script.Say("enough")}, 2, 2, pawl.StopLimit, "the limit of 2 calls was reached; the model was asked to answer", "Not run: the limit of 2 calls was reached. Answer with what you have."},
		{"calls, not reached", pawl.Limits{Calls: 3}, []script.Turn{three, script.Say("enough")}, 2, 3, pawl.StopAnswer, "", ""},
		{"calls per step", pawl.Limits{CallsPerStep: 2}, []script.Turn{three, script.Say("enough")}, 2, 2, pawl.StopAnswer, "", "Not run: at most 2 calls of one reply are executed. Send it again if it is still needed."},
		{"tokens", pawl.Limits{Tokens: 10}, []script.Turn{use(script.Call("f", nil), llm.Usage{Input: 8,
			Output: 2}), script.Say("no")}, 1, 1, pawl.StopLimit, "10 tokens of 10 are used up", ""},
		{"tokens, nearly", pawl.Limits{Tokens: 11}, []script.Turn{use(script.Call("f", nil), llm.Usage{Input: 8,
			Output: 2}), script.Say("all I know")}, 2, 1, pawl.StopLimit, "43 tokens of 11 are used up; the model was asked to answer", ""},
		{"tokens, nearly, and the model goes on", pawl.Limits{Tokens: 15},
			[]script.Turn{use(script.Call("f", nil), llm.Usage{Input: 8, Output: 2}), script.Call("f", nil)}, 2, 1,
			pawl.StopLimit, "10 tokens of 15 are used up, and the model went on calling", ""},
		{"tokens, passed with an answer", pawl.Limits{Tokens: 11, AtLimit: pawl.AtLimitReturn},
			[]script.Turn{use(script.Call("f", nil), llm.Usage{Input: 8, Output: 2}), script.Say("yes")}, 2, 1,
			pawl.StopLimit, "13 tokens of 11 are used up", ""},
		{"tokens, all used by the answer", pawl.Limits{Tokens: 13, AtLimit: pawl.AtLimitReturn},
			[]script.Turn{use(script.Call("f", nil), llm.Usage{Input: 8, Output: 2}), script.Say("yes")}, 2, 1,
			pawl.StopAnswer, "", ""},
		{"cost, passed by the first request", pawl.Limits{Cost: 0.000001},
			[]script.Turn{use(script.Say("yes"), llm.Usage{Cost: 0.017})}, 1, 0,
			pawl.StopLimit, "$0.0170 of $0.0000 are spent", ""},
		{"cost, nearly", pawl.Limits{Cost: 0.9}, []script.Turn{use(script.Call("f", nil), llm.Usage{Cost: 0.5}),
			script.Say("all I know")}, 2, 1, pawl.StopLimit, "$0.5000 of $0.9000 are spent; the model was asked to answer", ""},
		{"tokens, not reached", pawl.Limits{Tokens: 21},
			[]script.Turn{use(script.Call("f", nil), llm.Usage{Input: 8, Output: 2}), script.Say("yes")}, 2, 1,
			pawl.StopAnswer, "", ""},
		{"tokens, without usage", pawl.Limits{Tokens: 1000}, []script.Turn{use(script.Say("yes"), llm.Usage{})}, 1, 0,
			pawl.StopLimit, "the provider reports no usage, so a limit of tokens cannot be kept", ""},
		{"cost, without usage", pawl.Limits{Cost: 1000}, []script.Turn{use(script.Call("f", nil), llm.Usage{}),
			script.Say("no")}, 1, 1, pawl.StopLimit, "the provider reports no usage, so a limit of cost cannot be kept", ""},
		{"cost", pawl.Limits{Cost: 0.5}, []script.Turn{use(script.Call("f", nil), llm.Usage{Cost: 0.5}),
			script.Say("no")}, 1, 1, pawl.StopLimit, "$0.5000 of $0.5000 are spent", ""},
	} {
		for way, run := range ways {
			var ran atomic.Int64
			m := script.New(test.turns...)
			a := &pawl.Agent{Model: catalog.Price{Input: 1, Output: 1}.Of(m), Limits: test.limits,
				Parallel: pawl.Parallel{Limit: 1}, Tools: []pawl.Toolset{
					does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
						ran.Add(1)
						return llm.TextResult("x"), nil
					})}}
			res, err := run(t.Context(), a, llm.User("go"))
			if err != nil || len(m.Requests()) != test.requests || ran.Load() != test.ran ||
				res.Stop != test.stop || res.Cause != test.cause {
				t.Errorf("%s, %s: got %v, %d requests, %d run, %s, %q", test.name, way, err, len(m.Requests()), ran.Load(), res.Stop, res.Cause)
			}
			limit, _, _ := strings.Cut(test.name, ",")
			if test.stop != pawl.StopLimit {
				limit = ""
			}
			if string(res.Limit) != limit {
				t.Errorf("%s, %s: the limit is %q, want %q", test.name, way, res.Limit, limit)
			}
			mustBeValid(t, res)
			// only the last request has the text that asks for an answer
			if strings.HasSuffix(test.cause, "asked to answer") {
				req := m.Requests()[1]
				note := req.Messages[len(req.Messages)-1]
				why, _, _ := strings.Cut(test.cause, ";")
				why = strings.Replace(why, "43", "10", 1) // before the answer
				if req.Choice.Mode != llm.ToolNone || note.Role != llm.RoleUser ||
					!strings.Contains(note.Text(), why) || strings.Contains(say(res.Messages), note.Text()) {
					t.Errorf("%s, %s: the last request has choice %v and ends with %q", test.name, way, req.Choice, note.Text())
				}
			}
			if test.results != "" {
				last := res.Messages[2].Parts[2].(llm.ToolResult)
				if last.Text() != test.results || !last.IsError {
					t.Errorf("%s, %s: the last call was told %q", test.name, way, last.Text())
				}
			}
		}
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			select {
			case <-time.After(30 * time.Second):
				return llm.TextResult("x"), nil
			case <-ctx.Done():
				return llm.ToolResult{}, ctx.Err()
			}
		})
		tool.Effect = pawl.EffectRead
		m := caller()
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}, Limits: pawl.Limits{Time: 70 * time.Second}}
		begin := time.Now()
		res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
		if err != nil || res.Stop != pawl.StopLimit || res.Limit != "time" ||
			res.Cause != "the time of 1m10s is used up" || time.Since(begin) != 70*time.Second || len(m.Requests()) != 3 {
			t.Errorf("got %v, %s, %q after %v and %d requests", err, res.Stop, res.Cause, time.Since(begin), len(m.Requests()))
		}
		if err := valid(res.Messages); err != nil || len(res.Calls()) != 1 {
			t.Errorf("%v, open %v", err, res.Calls())
		}
		// The interrupted call is open, and is executed when the run is resumed.
		if res, err = runtest.Ended(a.Resume(t.Context(), res)); res.Spent.Rounds < 3 {
			t.Errorf("got %+v, %v", res.Spent, err)
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(pawl.ErrTime) // from the context
	res, err := runtest.Ended((&pawl.Agent{Model: script.New()}).Run(ctx, llm.User("go")))
	if err != nil || res.Stop != pawl.StopLimit || res.Limit != "time" || res.Cause != "the time is used up" {
		t.Errorf("got %v, %s, %q", err, res.Stop, res.Cause)
	}
}

func TestStall(t *testing.T) {
	// The same call with arguments in two spellings and the same result: the third is warned, and
	// three more end the run.
	turns := []script.Turn{}
	for i := range 10 {
		turns = append(turns, script.Call("f", []string{`{"a":1,"b":2}`, `{"b":2, "a":1}`}[i%2]))
	}
	m := script.New(turns...)
	ran := 0
	same := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		ran++
		return llm.TextResult("nothing new"), nil
	})
	res, err := runtest.Ended((&pawl.Agent{Model: m, Tools: []pawl.Toolset{same}}).Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopStalled || ran != 6 || len(m.Requests()) != 6 ||
		!strings.Contains(res.Cause, "f") {
		t.Errorf("got %v, %s, %q after %d calls", err, res.Stop, res.Cause, ran)
	}
	mustBeValid(t, res)
	for i, s := range res.Steps {
		r := s.Executions[0].Result
		if told := strings.HasPrefix(r.Text(), "This call was made before with the same arguments, and its result does not change: nothing new"); told != (i >= 2) || r.IsError != told {
			t.Errorf("call %d: told %q", i+1, r.Text())
		}
	}
	// Neither polling with changing results nor a call with changing arguments is stalled.
	for name, tool := range map[string]pawl.ToolFunc{
		"polling": func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran++
			return llm.TextResult(fmt.Sprint(ran)), nil
		},
	} {
		res, err = runtest.Ended((&pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil))),
			Tools: []pawl.Toolset{does("f", tool)}}).Run(t.Context(), llm.User("go")))
		if err != nil || res.Stop != pawl.StopLimit || res.Spent.Rounds != 20 {
			t.Errorf("%s: got %v, %s, %q after %d rounds", name, err, res.Stop, res.Cause, res.Spent.Rounds)
		}
	}
	res, err = runtest.Ended((&pawl.Agent{Model: caller(), Tools: []pawl.Toolset{same}}).Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopLimit {
		t.Errorf("other arguments: got %v, %s", err, res.Stop)
	}
	// Two alternating calls are a repetition too. A run that recovers does not end.
	res, err = runtest.Ended((&pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil), script.Call("g", nil))),
		Tools: []pawl.Toolset{same, says("g", "no")}}).Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopStalled || res.Spent.Requests > 12 {
		t.Errorf("two in turn: got %v, %s after %d requests", err, res.Stop, res.Spent.Requests)
	}
	// Equal parallel calls of one reply cannot know of each other. They do not end the run before
	// the model was warned.
	many := slices.Repeat([]llm.Part{call("", "f", "{}")}, 12)
	res, err = (&pawl.Agent{Model: script.New(script.Turn{Parts: many}, script.Say("I see")),
		Tools: []pawl.Toolset{says("f", "nothing new")}}).Run(t.Context(), llm.User("go"))
	if err != nil || res.Stop != pawl.StopAnswer {
		t.Errorf("side by side: got %v, %s, %q", err, res.Stop, res.Cause)
	}
}

// Two alternating calls: the warning names both.
func TestBackAndForth(t *testing.T) {
	for _, repeats := range []int{0, 4} {
		m := script.New(script.Loop(script.Call("open", nil), script.Call("shut", nil)))
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("open", "is open"), says("shut", "is shut")},
			Limits: pawl.Limits{LoopThreshold: repeats, Rounds: 40}}
		events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
		n := max(repeats, 3)
		if err != nil || res.Stop != pawl.StopStalled || res.Cause != "the model goes back and forth between calls of shut and open although their results do not change" || res.Spent.Calls != 4*n-1 {
			t.Errorf("Repeats %d: got %v, %s, %q after %d calls", repeats, err, res.Stop, res.Cause, res.Spent.Calls)
		}
		told := res.Steps[2*n-2].Executions[0].Result.Text()
		if told != "You go back and forth between this call and one of shut, with the same arguments, and neither result changes. This one is: is open\nDo something else, or answer with what you have." {
			t.Errorf("Repeats %d: told %q", repeats, told)
		}
		var noticed []string // not known yet when call_completed was emitted
		for _, e := range events {
			if e.Kind == pawl.EventNotice && e.Code == "stalling" {
				noticed = append(noticed, string(e.Path)+" "+e.Text)
			}
		}
		if len(noticed) == 0 || noticed[0] != fmt.Sprintf("run/%d/0 %s", 2*n-1, told) {
			t.Errorf("Repeats %d: noticed %q", repeats, noticed)
		}
	}
}

// A receiver may keep events. A warning that the result of a call gets later does not change its
// call_completed.
func TestCompletedCallOfAnEventStays(t *testing.T) {
	const result = "nothing new"
	m := script.New(script.Loop(script.Call("f", nil)))
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", result)}}
	events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopStalled {
		t.Fatalf("got %v, %s", err, res.Stop)
	}

	completed := 0
	for _, e := range events {
		if e.Kind != pawl.EventCallCompleted {
			continue
		}
		completed++
		if got := e.Execution.Result.Text(); got != result || e.Execution.Result.IsError {
			t.Errorf("call %d: the event has the result %q", completed, got)
		}
	}
	if warned := res.Steps[2].Executions[0].Result; completed != 6 || !warned.IsError {
		t.Errorf("got %d events, and the third result %q", completed, warned.Text())
	}
}

// A tool that always fails: the model is warned after three steps, and the run ends after nine. A
// successful call between them resets the count, and the calls of one reply count as one step.
func TestFailingWithVariedArguments(t *testing.T) {
	fails := func(n int) *pawl.Tool {
		return does("find", func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			if n--; n < 0 {
				return llm.TextResult("found " + string(c.Args)), nil
			}
			return llm.ErrorResult("nothing for " + string(c.Args)), nil
		})
	}
	calls := func(names ...string) (turns []script.Turn) {
		for i, n := range names {
			turns = append(turns, script.Call(n, fmt.Sprintf(`{"n":%d}`, i)))
		}
		return append(turns, script.Say("done"))
	}
	many := slices.Repeat([]string{"find"}, 15)
	for _, test := range []struct {
		name  string
		turns []script.Turn
		fails int
		limit int
		stop  pawl.StopReason
		calls int
		told  int // the step of the first warning; 0 means none
	}{
		{"always", calls(many...), 99, 0, pawl.StopStalled, 9, 3},
		{"always, Repeats 2", calls(many...), 99, 2, pawl.StopStalled, 6, 2},
		{"always, and nobody minds", calls(many...), 99, -1, pawl.StopAnswer, 15, 0},
		{"until it works", calls(many...), 8, 0, pawl.StopAnswer, 15, 3},
		{"with something that works between", calls("find", "find", "ok", "find", "find", "ok", "find", "find", "ok", "find", "find", "ok"), 99, 0, pawl.StopAnswer, 12, 0},
		{"with something else that fails between", calls("find", "nope", "find", "nope", "find"), 99, 0, pawl.StopAnswer, 3, 5},
		{"in one reply", []script.Turn{script.Together(calls(many...)[:15]...), script.Say("done")}, 99, 0, pawl.StopAnswer, 15, 0},
	} {
		for way, run := range ways {
			res, err := run(t.Context(), &pawl.Agent{Model: script.New(test.turns...),
				Tools:  []pawl.Toolset{fails(test.fails), says("ok", "fine")},
				Limits: pawl.Limits{LoopThreshold: test.limit}, Parallel: pawl.Parallel{Limit: 1}}, llm.User("go"))
			told := 0
			for i, s := range res.Steps {
				if len(s.Executions) > 0 && strings.Contains(s.Executions[0].Result.Text(), "nothing worked in between") && told == 0 {
					told = i + 1
				}
			}
			if err != nil || res.Stop != test.stop || res.Spent.Calls != test.calls || told != test.told {
				t.Errorf("%s, %s: got %v, %s, %q after %d calls, first told at %d; want %s after %d, told at %d",
					test.name, way, err, res.Stop, res.Cause, res.Spent.Calls, told, test.stop, test.calls, test.told)
			}
			if test.stop == pawl.StopStalled && !strings.HasPrefix(res.Cause, "calls of find failed in ") {
				t.Errorf("%s: %q", test.name, res.Cause)
			}
			if told > 0 {
				if got := res.Steps[told-1].Executions[0].Result.Text(); !strings.HasPrefix(got, "nothing for {") {
					t.Errorf("%s: the tool's own words are gone: %q", test.name, got)
				}
			}
		}
	}
}

func TestRepeats(t *testing.T) {
	for _, test := range []struct{ repeats, told, ran int }{{-1, 0, 20}, {0, 3, 6}, {2, 2, 4}, {5, 5, 10}} {
		a := &pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil))), Tools: []pawl.Toolset{says("f", "x")},
			Limits: pawl.Limits{LoopThreshold: test.repeats}}
		res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
		told := 0
		for i, s := range res.Steps {
			if strings.HasPrefix(s.Executions[0].Result.Text(), "This call was made before") && told == 0 {
				told = i + 1
			}
		}
		if err != nil || told != test.told || res.Spent.Calls != test.ran ||
			(res.Stop == pawl.StopStalled) != (test.repeats >= 0) {
			t.Errorf("Repeats %d: got %v, %s, first told at call %d, ended after %d", test.repeats, err, res.Stop, told, res.Spent.Calls)
		}
	}
}

// The table of limits has a row for each field of Limits, and each limit that a run can name. The
// error of the run names what sets it.
func TestLimitInfos(t *testing.T) {
	infos := pawl.LimitInfos()
	settings := map[string]bool{}
	for _, info := range infos {
		settings[info.Setting] = true
		if info.Name == "" || (info.Flag == "") == (info.Raise == "") && info.Help == "" {
			t.Errorf("the row %+v is incomplete", info)
		}
		stop := &pawl.StopError{Reason: pawl.StopLimit, Result: &pawl.Result{Stop: pawl.StopLimit, Limit: info.Name}}
		if want := "limit; raise " + info.Setting + " and Resume"; stop.Error() != want {
			t.Errorf("the error is %q, want %q", stop, want)
		}
	}
	for f := range reflect.TypeFor[pawl.Limits]().Fields() {
		if f.Name != "AtLimit" && !settings["Limits."+f.Name] {
			t.Errorf("the table has no row for Limits.%s", f.Name)
		}
	}

	infos[0].Help = "changed"
	if pawl.LimitInfos()[0].Help == "changed" {
		t.Error("a caller changes the table")
	}

	unknown := &pawl.StopError{Reason: pawl.StopLimit, Result: &pawl.Result{Limit: "a later one"}}
	if want := "limit; raise the limit and Resume"; unknown.Error() != want {
		t.Errorf("the error of an unknown limit is %q, want %q", unknown, want)
	}
}

// docs/calls.md has the limits of the table.
func TestLimitsPage(t *testing.T) {
	page, err := os.ReadFile("docs/calls.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| in Go | key below `limits` | flag | nested calls and runs count | what it bounds |\n|---|---|---|---|---|\n")
	for _, info := range pawl.LimitInfos() {
		if info.Help == "" {
			continue
		}
		flag, nested := "", ""
		if info.Flag != "" {
			flag = "`" + info.Flag + "`"
		}
		if info.Nested {
			nested = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", info.Setting, info.Name, flag, nested, info.Help)
	}
	if !strings.Contains(string(page), "\n"+b.String()) {
		t.Errorf("docs/calls.md lacks the table\n%s", b.String())
	}
}

// full is an error of a model that has reached a limit of its own.
type full struct{}

var _ pawl.LimitError = full{}

func (full) Error() string                                     { return "no room" }
func (full) LimitReached() (name pawl.LimitName, cause string) { return "window", "the window is full" }

// A LimitError of a model ends the run at the limit that it names, wrapped or not.
func TestLimitError(t *testing.T) {
	for _, err := range []error{full{}, fmt.Errorf("a layer: %w", full{})} {
		res, err := (&pawl.Agent{Model: script.New(script.Fail(err))}).Run(t.Context(), llm.User("go"))
		stop, ok := errors.AsType[*pawl.StopError](err)
		if !ok || res.Stop != pawl.StopLimit || res.Limit != "window" || res.Cause != "the window is full" {
			t.Errorf("%+v, %v", res, stop)
		}
	}
}
