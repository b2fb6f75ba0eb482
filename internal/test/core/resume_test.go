package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// mixed is an agent whose first reply has calls of active and of passive tools.
func mixed(ran *[]string) *pawl.Agent {
	active := does("active", func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		*ran = append(*ran, c.ID)
		return llm.TextResult("did " + c.ID), nil
	})
	active.Effect = pawl.EffectWrite
	return &pawl.Agent{Tools: []pawl.Toolset{active, passive("ask")}, Parallel: pawl.Parallel{Limit: 1},
		Model: script.New(script.Turn{Parts: []llm.Part{call("p1", "ask", `{"q":1}`), call("a1", "active", "{}"), call("p2", "ask", `{"q":2}`), call("a2", "active", "{}")}},
			script.Func(func(req *llm.Request) script.Turn {
				var all []string
				for _, r := range script.Results(req) {
					all = append(all, r.CallID+"="+r.Text())
				}
				return script.Say(strings.Join(all, " "))
			}))}
}

// The active calls run and the passive calls are pending. Resume accepts results in any order, all
// at once or one after another.
func TestMixedActiveAndPassiveCalls(t *testing.T) {
	var ran []string
	a := mixed(&ran)
	res, err := step(t, t.Context(), a)
	if err != nil || res.Stop != pawl.StopPending || !slices.Equal(ran, []string{"a1", "a2"}) || res.Spent.Rounds != 0 {
		t.Fatalf("got %v, %s, ran %v, spent %+v", err, res.Stop, ran, res.Spent)
	}
	if got := say(res.Messages[2:]); got != "tool: a1 = did a1\ntool: a2 = did a2\n" {
		t.Errorf("got %s", got)
	}
	if len(res.Pending) != 2 || res.Pending[0].Call.ID != "p1" || res.Pending[1].Key != "run/1/2" ||
		!res.Pending[0].Passive || res.Cause != "calls wait for an answer: ask, ask" {
		t.Fatalf("got %+v, %q", res.Pending, res.Cause)
	}
	const want = "p1=one a1=did a1 p2=two a2=did a2"
	w1, w2 := res.Pending[0], res.Pending[1]
	for name, msgs := range map[string][]llm.Message{
		"results in order":     {llm.Results(answer("p1", "one"), answer("p2", "two"))},
		"results out of order": {llm.Results(answer("p2", "two"), answer("p1", "one"))},
		"two messages":         {llm.Results(answer("p2", "two")), llm.Results(answer("p1", "one"))},
		"decisions":            {llm.DecisionMessage(w2.Answer("ann", llm.TextResult("two")), w1.Answer("ann", llm.TextResult("one")))},
		"one of each":          {llm.Results(answer("p2", "two")), llm.DecisionMessage(w1.Answer("ann", llm.TextResult("one")))},
		"in one message":       {{Role: llm.RoleTool, Parts: []llm.Part{answer("p2", "two"), w1.Answer("ann", llm.TextResult("one"))}}},
	} {
		for _, stored := range []bool{false, true} {
			from := res
			if stored {
				from = roundTrip(t, res)
			}
			before := say(from.Messages)
			ran = nil
			got, err := a.Resume(t.Context(), from, msgs...)
			if err != nil || got.Stop != pawl.StopAnswer || got.Text() != want || ran != nil {
				t.Errorf("%s, stored %t: got %v, %q, ran %v", name, stored, err, got.Text(), ran)
				continue
			}
			mustBeValid(t, got)
			if say(from.Messages) != before {
				t.Errorf("%s: the Result that was resumed has changed", name)
			}
			if got.Spent.Rounds != 1 || got.Spent.Requests != 2 {
				t.Errorf("%s: spent %+v", name, got.Spent)
			}
		}
	}
	// One by one: the remaining open calls are pending again.
	part, err := runtest.Ended(a.Resume(t.Context(), roundTrip(t, res), llm.Results(answer("p2", "two"))))
	if err != nil || part.Stop != pawl.StopPending || len(part.Pending) != 1 || part.Pending[0].Call.ID != "p1" ||
		part.Pending[0].Digest != w1.Digest {
		t.Fatalf("got %v, %+v", err, part)
	}
	got, err := a.Resume(t.Context(), roundTrip(t, part), llm.DecisionMessage(w1.Answer("ann", llm.TextResult("one"))))
	if err != nil || got.Text() != want {
		t.Errorf("got %v, %q", err, got.Text())
	}
	// A message that is not an answer must wait for the answers.
	if _, err = a.Resume(t.Context(), roundTrip(t, res), llm.User("hello?")); err == nil || !strings.Contains(err.Error(), "call p1 (ask) still waits; answer or deny it before a new message") {
		t.Errorf("got %v", err)
	}
	got, err = a.Resume(t.Context(), roundTrip(t, res), llm.User("and be brief"), llm.Results(answer("p2", "two"), answer("p1", "one")))
	if err != nil || got.Messages[3].Text() != "and be brief" || got.Messages[3].Role != llm.RoleUser {
		t.Errorf("results and a message: got %v\n%s", err, say(got.Messages))
	}
}

// A message that a person sends while calls are open follows their results, for any number of stops
// in between.
func TestMessagesThatWaitAreNotLost(t *testing.T) {
	var ran []string
	a := mixed(&ran)
	history := []llm.Message{llm.User("go"), llm.Assistant(call("p1", "ask", "{}")), llm.User("and be brief")}
	res, err := runtest.Ended(a.Resume(t.Context(), &pawl.Result{Messages: history}))
	if err != nil || res.Stop != pawl.StopPending {
		t.Fatalf("got %v, %s", err, res.Stop)
	}
	if err := valid(res.Messages); err != nil {
		t.Error(err)
	}
	res, err = a.Resume(t.Context(), roundTrip(t, res), llm.DecisionMessage(res.Pending[0].Answer("ann", llm.TextResult("one"))))
	if err != nil || res.Stop != pawl.StopAnswer {
		t.Fatalf("got %v, %s", err, res.Stop)
	}
	if got := say(res.Messages[1:4]); got != "assistant: p1 ask {}\ntool: p1 = one\nuser: and be brief\n" {
		t.Errorf("got %s", got)
	}
}

// A run that is stored at every stop has the same result as an uninterrupted run.
func TestResumeAfterStorageGivesTheSame(t *testing.T) {
	turns := []script.Turn{script.Call("read", `{"a":1}`), script.Together(script.Call("write", `{"b":2}`), script.Call("ask", "{}")),
		script.Together(script.Call("write", `{"b":3}`), script.Call("read", `{"a":`)), script.Say("done")}
	run := func(store func(*pawl.Result) *pawl.Result) (*pawl.Result, []*llm.Request) {
		read := says("read", "fine")
		read.Effect = pawl.EffectRead
		counts := does("write", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			v, n := pawl.InvocationFrom(ctx), 0
			_, err := v.Get("n", &n)
			_ = v.Set("n", n+1)
			return llm.TextResult(fmt.Sprint("written ", n+1)), err
		})
		m := script.New(turns...)
		a := &pawl.Agent{Model: m, Instructions: "Be brief.", Tools: []pawl.Toolset{read, counts, passive("ask")},
			Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
		res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
		for stops := 0; err == nil && res.Stop == pawl.StopPending; stops++ {
			if stops > 5 {
				t.Fatal("it never ends")
			}
			var ds []llm.Decision
			for _, w := range res.Pending {
				d := w.Approve("ann")
				if w.Passive {
					d = w.Answer("ann", llm.TextResult("me"))
				}
				ds = append(ds, d)
			}
			res, err = runtest.Ended(a.Resume(t.Context(), store(res), llm.DecisionMessage(ds...)))
		}
		if err != nil {
			t.Fatal(err)
		}
		return res, m.Requests()
	}
	plain, asked := run(func(r *pawl.Result) *pawl.Result { return r })
	stored, askedStored := run(func(r *pawl.Result) *pawl.Result { return roundTrip(t, r) })
	mustBeValid(t, stored)
	if plain.Text() != "done" || string(plain.Values["n"]) != "2" {
		t.Fatalf("got %q, %s", plain.Text(), plain.Values)
	}
	if diff := cmp.Diff(jsonOf(t, stored.Messages), jsonOf(t, plain.Messages)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(stored.Spent, plain.Spent); diff != "" {
		t.Error(diff)
	}
	for i := range asked {
		if diff := cmp.Diff(jsonOf(t, askedStored[i]), jsonOf(t, asked[i])); diff != "" ||
			asked[i].Key != askedStored[i].Key {
			t.Errorf("request %d: %s", i, diff)
		}
	}
}

// A caller may resume from open calls of its own. They are executed first.
func TestARunBeginsWithOpenCalls(t *testing.T) {
	var ran []string
	a := mixed(&ran)
	from := &pawl.Result{Messages: []llm.Message{llm.User("go"), llm.Assistant(call("x", "active", "{}"), call("y", "active", "{}"))}}
	res, err := a.Resume(t.Context(), from, llm.Results(answer("x", "given")))
	if err != nil || !slices.Equal(ran, []string{"y"}) || res.Text() != "x=given y=did y" {
		t.Errorf("got %v, ran %v, %q", err, ran, res.Text())
	}
	mustBeValid(t, res)
	if s := res.Steps[0]; s.Response != nil || len(s.Executions) != 1 || s.Executions[0].Key != "run/1/1" {
		t.Errorf("the first step: %+v", s)
	}
	from = &pawl.Result{Messages: []llm.Message{llm.User("go"), llm.Assistant(call("x", "active", "{}"))}}
	events, _, _ := collect(a.ResumeStream(t.Context(), from))
	if len(events) < 3 || events[1].Kind != pawl.EventStepStarted || events[1].Step != 1 ||
		events[2].Kind != pawl.EventCallStarted {
		t.Errorf("a step that begins with open calls is not told: %v", kinds(events))
	}
}

func kinds(events []pawl.Event) (out []pawl.EventKind) {
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

// A resumed run continues its counters and so its limits.
func TestResumeKeepsCounting(t *testing.T) {
	ran := 0
	tool := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		ran++
		return llm.TextResult(fmt.Sprint(ran)), nil
	})
	invalid := &pawl.Tool{Name: "strict", Input: json.RawMessage(`{"type":"object","required":["a"]}`), Run: tool.Run}
	a := &pawl.Agent{Model: script.New(script.Together(script.Call("f", nil), script.Call("strict", nil),
		script.Call("none", nil)), script.Say("one"),
		script.Together(script.Call("f", nil), script.Call("f", `{"a":1}`)), script.Say("two")),
		Tools: []pawl.Toolset{tool, invalid}, Limits: pawl.Limits{Calls: 2}}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil || res.Stop != pawl.StopAnswer || res.Spent.Calls != 1 || res.Spent.Rounds != 1 {
		t.Fatalf("got %v, %s, %+v; a call that was not begun does not count", err, res.Stop, res.Spent)
	}
	res, err = runtest.Ended(a.Resume(t.Context(), roundTrip(t, res), llm.User("more")))
	if err != nil || ran != 2 || res.Spent.Calls != 2 || res.Spent.Requests != 4 || res.Stop != pawl.StopLimit {
		t.Errorf("got %v, %s, ran %d, %+v", err, res.Stop, ran, res.Spent)
	}
	a = &pawl.Agent{Model: caller(), Tools: []pawl.Toolset{tool},
		Limits: pawl.Limits{Rounds: 2, AtLimit: pawl.AtLimitReturn}}
	res, _ = runtest.Ended(a.Run(t.Context(), llm.User("go")))
	n := ran
	if res, err = runtest.Ended(a.Resume(t.Context(), roundTrip(t, res))); err != nil || ran != n ||
		res.Stop != pawl.StopLimit || len(res.Calls()) != 1 {
		t.Errorf("rounds that are used up: got %v, %s, %d calls more, open %v", err, res.Stop, ran-n, res.Calls())
	}
}

func TestEndedStepsCountAsRounds(t *testing.T) {
	finishes := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{}, pawl.FinishError(llm.TextResult("x"))
	})
	events, res, err := collect((&pawl.Agent{Model: script.New(script.Call("f", nil)),
		Tools: []pawl.Toolset{finishes}}).Stream(t.Context(), llm.User("go")))
	if err != nil || res.Spent.Rounds != 1 {
		t.Errorf("got %v, %+v", err, res.Spent)
	}
	for _, e := range events {
		if e.Kind == pawl.EventStep && e.Spent.Rounds != 1 {
			t.Errorf("the step tells %+v", e.Spent)
		}
	}
}

func TestTranscriptErrors(t *testing.T) {
	ask, one := llm.User("go"), llm.Assistant(call("a", "active", "{}"))
	done := llm.Results(answer("a", "x"))
	part := func(role llm.Role, parts ...llm.Part) llm.Message { return llm.Message{Role: role, Parts: parts} }
	for name, test := range map[string]struct {
		msgs []llm.Message
		at   int
		want string
	}{
		"result without a call":   {[]llm.Message{ask, done}, 1, `the result for call "a" answers no open call; open: none`},
		"result of another call":  {[]llm.Message{ask, one, llm.Results(answer("b", ""))}, 2, `the result for call "b" answers no open call; open: a (active)`},
		"answered twice":          {[]llm.Message{ask, one, done, done}, 3, "answers no open call"},
		"twice in one":            {[]llm.Message{ask, one, llm.Results(answer("a", ""), answer("a", ""))}, 2, `call "a" has two results`},
		"answered too late":       {[]llm.Message{ask, one, done, llm.Assistant(text("hi")), done}, 4, "answers no open call"},
		"unknown role":            {[]llm.Message{part("human", text("a"))}, 0, `unknown role "human"`},
		"no role":                 {[]llm.Message{{}}, 0, `unknown role ""`},
		"call by the user":        {[]llm.Message{part(llm.RoleUser, call("a", "f", ""))}, 0, "a message of the role user cannot hold a call"},
		"reasoning by the user":   {[]llm.Message{part(llm.RoleUser, llm.Reasoning{})}, 0, "a message of the role user cannot hold reasoning"},
		"result by the user":      {[]llm.Message{ask, one, part(llm.RoleUser, answer("a", ""))}, 2, "a message of the role user cannot hold a result"},
		"text among results":      {[]llm.Message{ask, one, part(llm.RoleTool, text("x"))}, 2, "a message of the role tool cannot hold text"},
		"nil part, long ago":      {[]llm.Message{ask, llm.Assistant(nil), ask, llm.Assistant(text("hi")), ask}, 1, "a part is nil"},
		"unknown role, long ago":  {[]llm.Message{ask, part("human", text("a")), llm.Assistant(text("hi")), ask}, 1, `unknown role "human"`},
		"an answer, once healed":  {[]llm.Message{ask, one, ask, llm.Assistant(text("hi"))}, 3, "ends with an answer"},
		"nil part":                {[]llm.Message{part(llm.RoleUser, nil)}, 0, "a part is nil"},
		"ends with an answer":     {[]llm.Message{ask, llm.Assistant(text("hi"))}, 1, "ends with an answer"},
		"ends with an empty one":  {[]llm.Message{ask, llm.Assistant()}, 1, "ends with an answer"},
		"results within a result": {[]llm.Message{ask, one, llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{call("x", "f", "")}})}, 2, "a result cannot hold a call"},
	} {
		m := script.New(script.Loop(script.Say("hi")))
		_, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{says("active", "")}}).Run(t.Context(), test.msgs...)
		var te *pawl.TranscriptError
		if !errors.As(err, &te) || te.Index != test.at || !strings.Contains(te.Text, test.want) {
			t.Errorf("%s: got %v, want message %d: %s", name, err, test.at, test.want)
		}
		if len(m.Requests()) > 0 {
			t.Errorf("%s: the model was asked", name)
		}
	}
	for name, msgs := range map[string][]llm.Message{
		"ids come again in another reply": {ask, one, done, one, done, llm.User("and?")},
		"results in two messages":         {ask, llm.Assistant(call("a", "active", ""), call("b", "active", "")), llm.Results(answer("b", "")), done},
		"a word before the results":       {ask, one, ask, done},
		"reasoning and media": {part(llm.RoleUser, text("see"), llm.Media{URL: "u"}),
			llm.Assistant(llm.Reasoning{}, text("I see")), part(llm.RoleDeveloper, text("go on"))},
		"two questions": {ask, ask},
	} {
		res, err := (&pawl.Agent{Model: &script.Model{Turns: []script.Turn{script.Loop(script.Say("hi"))}},
			Tools: []pawl.Toolset{says("active", "")}}).Run(t.Context(), msgs...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		mustBeValid(t, res)
	}
}
