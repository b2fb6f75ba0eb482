package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestAForcedChoiceHoldsForTheFirstRequest(t *testing.T) {
	for _, choice := range []llm.ToolChoice{{Mode: llm.ToolRequired}, llm.Named("f"), {Mode: llm.ToolNone}, {}} {
		m := script.New(script.Call("f", nil), script.Call("f", `{"a":1}`), script.Say("done"))
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}, Choice: choice}
		res, err := a.Run(t.Context(), llm.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Resume(t.Context(), res, llm.User("more"))
		if ee := (*script.ExhaustedError)(nil); !errors.As(err, &ee) {
			t.Fatal(err)
		}
		want := []llm.ToolMode{choice.Mode, llm.ToolAuto, llm.ToolAuto, llm.ToolAuto}
		if choice.Mode == llm.ToolNone {
			want = slices.Repeat([]llm.ToolMode{llm.ToolNone}, 4)
		}
		var got []llm.ToolMode
		for _, req := range m.Requests() {
			got = append(got, req.Choice.Mode)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%v: %s", choice, diff)
		}
	}
	a := &pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{says("f", "x"), says("g", "x")}, Choice: llm.Named("h")}
	if _, err := a.Run(t.Context(), llm.User("go")); err == nil || !strings.Contains(err.Error(), `no tool "h" is offered; offered: f, g`) {
		t.Errorf("got %v", err)
	}
}

// Calls of a truncated reply never run. The model gets a result that says so and can send them
// again.
func TestCallsOfCutRepliesNeverRun(t *testing.T) {
	for _, finish := range []llm.FinishReason{llm.FinishReasonLength, llm.FinishReasonContentFilter,
		llm.FinishReasonError} {
		for way, run := range ways {
			ran := 0
			cut := script.Together(script.Say("I look."), script.Call("f", nil), script.Call("f", `{"a":`))
			cut.Finish = finish
			m := script.New(cut, script.Call("f", nil), script.Say("done"))
			res, err := run(t.Context(), &pawl.Agent{Model: m, Tools: []pawl.Toolset{does("f",
				func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					ran++
					return llm.TextResult("x"), nil
				})}}, llm.User("go"))
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

// Complete calls in a reply with the finish reason stop are executed: the calls decide, not the
// finish reason.
func TestCallsDecideNotTheFinishReason(t *testing.T) {
	for _, finish := range []llm.FinishReason{llm.FinishReasonStop, llm.FinishReasonOther} {
		turn := script.Call("f", nil)
		turn.Finish = finish
		res, err := (&pawl.Agent{Model: script.New(turn, script.Say("done")),
			Tools: []pawl.Toolset{says("f", "x")}}).Run(t.Context(), llm.User("go"))
		if err != nil || res.Text() != "done" || res.Steps[0].Response.Finish != llm.FinishReasonToolCalls {
			t.Errorf("%s: got %+v, %v", finish, res, err)
		}
	}
}

// The rows state how a reply without calls ends the run.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		turn  script.Turn
		stop  pawl.StopReason
		cause string
		code  llm.Code
	}{
		{script.Say("hi"), pawl.StopAnswer, "", ""},
		{script.Say(" \n"), pawl.StopFailed, "malformed_reply: the answer is empty", llm.CodeMalformedReply},
		{script.Turn{}, pawl.StopFailed, "malformed_reply: the answer is empty", llm.CodeMalformedReply},
		{script.Cut(script.Say("it is")), pawl.StopLimit, "the answer was cut at the bound of the model's output", ""},
		{script.Turn{Parts: []llm.Part{text("no")}, Finish: llm.FinishReasonContentFilter}, pawl.StopFailed,
			"content_filter: no", llm.CodeContentFilter},
		{script.Turn{Finish: llm.FinishReasonError}, pawl.StopFailed, "server: the provider ended the reply with an error", llm.CodeServer},
		{script.Turn{Finish: llm.FinishReasonOther}, pawl.StopFailed, "malformed_reply: the answer is empty", llm.CodeMalformedReply},
	} {
		for way, run := range ways {
			res, err := run(t.Context(), &pawl.Agent{Model: script.New(test.turn),
				Limits: pawl.Limits{Corrections: -1}}, llm.User("go"))
			var pe *llm.ProviderError
			if res.Stop != test.stop || res.Cause != test.cause ||
				res.Limit != map[bool]pawl.LimitName{true: "output"}[test.stop == pawl.StopLimit] ||
				errors.As(err, &pe) != (test.code != "") || pe != nil && pe.Code != test.code {
				t.Errorf("%s: got %s, %q, %v; want %s, %q", way, res.Stop, res.Cause, err, test.stop, test.cause)
			}
			if len(res.Steps) != 1 || len(res.Messages) != 2 {
				t.Errorf("%s: %d steps, transcript\n%s", way, len(res.Steps), say(res.Messages))
			}
		}
	}
}

func TestInstructionsStandInFrontAndNotInTheTranscript(t *testing.T) {
	m := script.New(script.Call("f", nil), script.Say("1"))
	res, err := (&pawl.Agent{Model: holder{m}, Instructions: "Be brief.", Tools: []pawl.Toolset{says("f", "x")},
		Output:   json.RawMessage(`{}`),
		Settings: llm.Settings{MaxTokens: 9}}).Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range m.Requests() {
		if diff := cmp.Diff(req.Messages, append([]llm.Message{llm.System("Be brief.")}, res.Messages[:2*i+1]...)); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}
		if req.Key != llm.Key(fmt.Sprintf("run/%d/model", i)) || string(req.Output) != `{}` || req.Settings.MaxTokens != 9 {
			t.Errorf("request %d: %+v", i, req)
		}
	}
	if res.Messages[0].Role != llm.RoleUser {
		t.Errorf("the transcript begins with\n%s", say(res.Messages[:1]))
	}
}

func TestModelErrors(t *testing.T) {
	boom := &llm.ProviderError{Provider: "openai", Status: 529, Code: llm.CodeOverloaded, Message: "busy"}
	for way, run := range ways {
		m := script.New(script.Call("f", nil), script.Together(script.Say("Well, it"), script.Fail(boom)))
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")}}
		res, err := run(t.Context(), a, llm.User("go"))
		var pe *llm.ProviderError
		if !errors.As(err, &pe) || pe != boom || err.Error() != "run/1/model: openai: overloaded (529): busy" ||
			res.Stop != pawl.StopFailed || res.Cause != err.Error() {
			t.Errorf("%s: got %v, %+v", way, err, res)
		}
		if len(res.Messages) != 3 || len(res.Steps) != 2 || res.Spent.Requests != 2 {
			t.Errorf("%s: half a reply is in the transcript:\n%s", way, say(res.Messages))
		}
		if s := res.Steps[1]; s.Error != boom.Error() || s.Request == nil || s.Response == nil ||
			s.Response.Message.Text() != "Well, it" || s.Response.Finish != "" {
			t.Errorf("%s: the failed step: %+v", way, s)
		}
		a.Model = script.New(script.Turn{}, script.Say("done"))
		if res, err = a.Resume(t.Context(), res); err != nil || res.Text() != "done" {
			t.Errorf("%s: going on after an error: %v", way, err)
		}
	}
	for name, deltas := range map[string][]llm.Delta{
		"no end":          {{Part: text("a"), Done: true}},
		"nothing":         {},
		"broken contract": {{Index: 4, Part: text("a")}},
		"after the end":   {{Part: text("a"), Finish: llm.FinishReasonStop}, {Index: 1, Part: text("b")}},
	} {
		turn := script.Turn{Deltas: deltas}
		if len(deltas) == 0 {
			turn = script.Turn{Deltas: []llm.Delta{}}
		}
		res, err := (&pawl.Agent{Model: script.New(turn)}).Run(t.Context(), llm.User("go"))
		if err == nil || res.Stop != pawl.StopFailed || len(res.Messages) != 1 {
			t.Errorf("%s: got %v, %+v", name, err, res)
		}
	}
}

// decisionError is the error of a driver that could not read a decision.
type decisionError struct{ x pawl.Execution }

func (e *decisionError) Error() string                   { return "no decision" }
func (e *decisionError) FailedExecution() pawl.Execution { return e.x }

func TestAnErrorThatCarriesAnExecutionIsRecorded(t *testing.T) {
	fault := &decisionError{pawl.Execution{Call: call("", "decision_extraction", ""), Outcome: pawl.OutcomeError, Error: "no JSON"}}
	events, res, err := collect((&pawl.Agent{Model: script.New(script.Fail(fault))}).Stream(t.Context(), llm.User("go")))
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
		res, err := run(t.Context(), &pawl.Agent{Model: m(), Instructions: "Be brief.",
			Tools: []pawl.Toolset{says("f", "x")}}, llm.User("go"))
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
		msgs  []llm.Message
		want  string
	}{
		"no model":     {&pawl.Agent{}, []llm.Message{llm.User("go")}, "no model"},
		"no message":   {&pawl.Agent{Model: m}, nil, "no message to answer"},
		"two tools":    {&pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", ""), says("f", "")}}, []llm.Message{llm.User("go")}, `two tools are named "f"`},
		"bad tool":     {&pawl.Agent{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "f"}}}, []llm.Message{llm.User("go")}, "neither Run nor Passive"},
		"broken tools": {&pawl.Agent{Model: m, Tools: []pawl.Toolset{brokenSet{boom}}}, []llm.Message{llm.User("go")}, "Tools[0]: boom"},
		"an answer":    {&pawl.Agent{Model: m}, []llm.Message{llm.User("go"), llm.Assistant(text("hi"))}, "ends with an answer"},
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

func TestMiddlewareAroundTheModel(t *testing.T) {
	var order []string
	note := func(name string) pawl.Middleware {
		return pawl.Middleware{Model: func(m llm.Model) llm.Model {
			return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
				order = append(order, name)
				return m.Stream(ctx, req)
			})
		}}
	}
	if _, err := (&pawl.Agent{Model: script.New(script.Say("hi")),
		Middleware: []pawl.Middleware{note("a"), {}, note("b")}}).Run(t.Context(), llm.User("go")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order, []string{"a", "b"}); diff != "" {
		t.Error(diff)
	}
}
