package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// hire returns an agent that gives one task to each clerk in one step.
func hire(clerks ...*pawl.Agent) *pawl.Agent {
	var turns []script.Turn
	a := &pawl.Agent{Name: "boss"}
	for i, c := range clerks {
		turns = append(turns, script.Call(c.Name, fmt.Sprintf(`{"task":"look %d"}`, i)))
		a.Tools = append(a.Tools, c.Tool("Looks things up."))
	}
	a.Model = script.New(script.Together(turns...), script.Say("done"))
	return a
}

func TestAnAgentIsATool(t *testing.T) {
	inner := script.New(script.Call("f", nil), script.Func(func(req *llm.Request) script.Turn {
		return script.Say("for " + req.Messages[0].Text() + " found " + script.Results(req)[0].Text())
	}))
	clerk := &pawl.Agent{Name: "clerk", Model: inner, Tools: []pawl.Toolset{does("f", func(ctx context.Context,
		_ llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		v.Emit("looking", nil)
		return llm.TextResult(fmt.Sprint(v.Agent, " ", v.Key)), nil
	})}}
	a := hire(clerk)
	events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopAnswer {
		t.Fatalf("got %v, %s", err, res.Stop)
	}
	if got := say(res.Messages[2:3]); got != "tool: call_1_0 = for look 0 found clerk run/1/0/clerk/1/0\n" {
		t.Errorf("got %s", got)
	}
	var got []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i+1, e.Seq)
		}
		switch e.Kind {
		case pawl.EventText, pawl.EventCallDelta, pawl.EventCallReady:
		default:
			got = append(got, fmt.Sprint(e.Run, " ", e.Step, " ", e.Kind, " ", e.Path))
		}
	}
	if diff := cmp.Diff(got, []string{
		"run 0 run_started ",
		"run 1 step_started ",
		"run 1 request_started run/0/model",
		"run 1 response_received run/0/model",
		"run 1 call_started run/1/0",
		"run/1/0/clerk 0 run_started ",
		"run/1/0/clerk 1 step_started ",
		"run/1/0/clerk 1 request_started run/1/0/clerk/0/model",
		"run/1/0/clerk 1 response_received run/1/0/clerk/0/model",
		"run/1/0/clerk 1 call_started run/1/0/clerk/1/0",
		"run/1/0/clerk 1 progress run/1/0/clerk/1/0",
		"run/1/0/clerk 1 call_completed run/1/0/clerk/1/0",
		"run/1/0/clerk 1 step ",
		"run/1/0/clerk 2 step_started ",
		"run/1/0/clerk 2 request_started run/1/0/clerk/1/model",
		"run/1/0/clerk 2 response_received run/1/0/clerk/1/model",
		"run/1/0/clerk 2 step ",
		"run/1/0/clerk 2 run_ended ",
		"run 1 call_completed run/1/0",
		"run 1 step ",
		"run 2 step_started ",
		"run 2 request_started run/1/model",
		"run 2 response_received run/1/model",
		"run 2 step ",
		"run 2 run_ended ",
	}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if s := res.Spent; s.Rounds != 1 || s.Requests != 4 || s.Calls != 2 {
		t.Errorf("spent %+v: the inner run counts, except its rounds", s)
	}
	if x := res.Steps[0].Executions[0]; x.Spent.Requests != 2 || x.Spent.Calls != 1 {
		t.Errorf("the call spent %+v", x.Spent)
	}
	if inner.Requests()[0].Whole {
		t.Error("the outer run is streamed, the inner one is not")
	}
	if _, err = a.Run(t.Context(), llm.User("go")); err != nil || !inner.Requests()[2].Whole {
		t.Errorf("the outer run is whole, the inner one is not: %v", err)
	}
}

func TestEventsOfAnInnerRun(t *testing.T) {
	boom := errors.New("overloaded")
	for name, test := range map[string]struct {
		clerk *pawl.Agent
		want  string
		fails bool
	}{
		"fails": {&pawl.Agent{Model: script.New(script.Fail(boom))}, "clerk failed: run/1/0/clerk/0/model: overloaded", true},
		"limit": {&pawl.Agent{Model: caller(), Tools: []pawl.Toolset{says("f", "x")},
			Limits: pawl.Limits{Rounds: 1, AtLimit: pawl.AtLimitReturn}}, "clerk stopped without an answer (limit): ", true},
		"words": {&pawl.Agent{Model: script.New(script.Cut(script.Say("it is")))}, "clerk stopped without an answer (limit): the answer was cut at the bound of the model's output\nIts last words: it is", true},
		"waits": {&pawl.Agent{Model: script.New(script.Call("p", nil), script.Say("so be it")), Tools: []pawl.Toolset{passive("p")}}, "so be it", false},
		"ends": {&pawl.Agent{Model: script.New(script.Call("e", nil)),
			Tools: []pawl.Toolset{does("e", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				return llm.ToolResult{}, pawl.FinishError(llm.TextResult("all done"))
			})}}, "all done", false},
		"aborts": {&pawl.Agent{Model: script.New(script.Call("e", nil)),
			Tools: []pawl.Toolset{does("e", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				return llm.ToolResult{}, pawl.AbortError(boom)
			})}}, "clerk failed: tool e: overloaded", true},
	} {
		test.clerk.Name = "clerk"
		res, err := hire(test.clerk).Run(t.Context(), llm.User("go"))
		if err != nil || res.Stop != pawl.StopAnswer {
			t.Errorf("%s: an inner run does not fail the outer one: %v, %s", name, err, res.Stop)
			continue
		}
		r := res.Messages[2].Parts[0].(llm.ToolResult)
		if !strings.HasPrefix(r.Text(), test.want) || r.IsError != test.fails {
			t.Errorf("%s: got %q, error %t; want %q", name, r.Text(), r.IsError, test.want)
		}
	}
	x := pawl.Toolsets{(&pawl.Agent{Model: script.New(script.Say("hi"))}).Tool("Says hi.")}.Execute(t.Context(), call("", "agent", `{"task":"say hi"}`))
	if x.Outcome != pawl.OutcomeOK || x.Result.Text() != "hi" {
		t.Errorf("outside a run: got %s, %q", x.Outcome, x.Result.Text())
	}
}

// Inner runs share the budget of the outermost run. A child gets what remains at the start of the
// step, and its usage counts for the parent.
func TestInnerRunsShareTheBudget(t *testing.T) {
	use := func(turn script.Turn, n int) script.Turn {
		turn.Usage = &llm.Usage{Input: n}
		return turn
	}
	clerk := func() *pawl.Agent {
		return &pawl.Agent{Name: "clerk", Model: script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			return use(script.Call("f", fmt.Sprintf(`{"n":%d}`, len(req.Messages))), 10)
		}))), Tools: []pawl.Toolset{says("f", "x")}}
	}
	c := clerk()
	a := hire(c)
	a.Limits.Tokens = 60
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopLimit || !strings.HasSuffix(res.Cause, "tokens of 60 are used up") {
		t.Errorf("tokens: got %v, %s, %q", err, res.Stop, res.Cause)
	}
	if n := len(c.Model.(*script.Model).Requests()); n < 3 || n > 6 || res.Spent.Usage.Total() < 60 {
		t.Errorf("tokens: the clerk made %d requests, spent %+v", n, res.Spent)
	}
	c = clerk()
	a = hire(c)
	a.Limits.Calls = 4 // the clerk itself and its three calls
	res, err = runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || res.Spent.Calls != 4 || res.Stop != pawl.StopLimit {
		t.Errorf("calls: got %v, %s, spent %+v", err, res.Stop, res.Spent)
	}
	// A call that an inner limit refuses does not count against the outer limit.
	c = clerk()
	c.Limits.Calls = 1
	a = hire(c)
	a.Limits.Calls = 3
	a.Tools = append(a.Tools, says("f", "x"))
	a.Model = script.New(script.Call("clerk", `{"task":"x"}`), script.Call("f", nil), script.Say("done"))
	if res, err = a.Run(t.Context(), llm.User("go")); err != nil || res.Stop != pawl.StopAnswer || res.Spent.Calls != 3 {
		t.Errorf("inner limit: got %v, %s, %q, spent %+v", err, res.Stop, res.Cause, res.Spent)
	}
}

func TestAgentsNestThreeDeep(t *testing.T) {
	a := &pawl.Agent{Name: "bottom", Model: script.New(script.Say("so deep"))}
	for i := range 5 {
		turn := script.Call(a.Name, `{"task":"go down"}`)
		a = &pawl.Agent{Name: fmt.Sprint("level", i), Tools: []pawl.Toolset{a.Tool("")},
			Model: script.New(turn, script.Func(func(req *llm.Request) script.Turn {
				return script.Say(script.Results(req)[0].Text())
			}))}
	}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil || res.Text() != "Not run: agents and calls are nested more than 3 deep." {
		t.Errorf("got %v, %q", err, res.Text())
	}
}

var errShutdown = errors.New("the machine goes down")

// An interrupted inner run is not an answer. Its call stays open or is answered as cancelled, as
// any other call.
func TestAnInnerRunThatIsInterrupted(t *testing.T) {
	for _, cause := range []error{errShutdown, pawl.ErrCancelled} {
		for _, n := range []int{1, 2} {
			ctx, cancel := context.WithCancelCause(t.Context())
			slow := does("slow", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				cancel(cause)
				<-ctx.Done()
				return llm.ToolResult{}, ctx.Err()
			})
			slow.Effect = pawl.EffectRead
			var clerks []*pawl.Agent
			for i := range n {
				clerks = append(clerks,
					&pawl.Agent{Name: fmt.Sprint("clerk", i),
						Model: script.New(script.Call("slow", nil), script.Say("done")), Tools: []pawl.Toolset{slow}})
			}
			res, err := runtest.Ended(hire(clerks...).Run(ctx, llm.User("go")))
			if res.Stop != pawl.StopCancelled || (err == nil) != (cause == pawl.ErrCancelled) {
				t.Errorf("%v: got %v, %s", cause, err, res.Stop)
			}
			if open := len(res.Calls()); open != 0 && cause == pawl.ErrCancelled || open != n && cause == errShutdown {
				t.Errorf("%v: %d of %d calls are open:\n%s", cause, open, n, say(res.Messages))
			}
			for _, x := range res.Steps[0].Executions {
				if x.Outcome != pawl.OutcomeCancelled {
					t.Errorf("%v: got %s, %q", cause, x.Outcome, x.Result.Text())
				}
			}
		}
	}
}

// Repeating an interrupted composing call would repeat the writes of its inner calls. It therefore
// waits for a decision, as a call with effect Write does.
func TestAnInterruptedCallThatHadWrittenIsNotRepeated(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			written := 0
			writes := does("write", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				written++
				return llm.TextResult("written"), nil
			})
			release := make(chan struct{})
			slow := does("slow", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				cancel(errShutdown)
				if deaf {
					<-release
				}
				<-ctx.Done()
				return llm.ToolResult{}, ctx.Err()
			})
			slow.Effect = pawl.EffectRead
			clerk := &pawl.Agent{Name: "clerk", Model: script.New(script.Call("write", nil), script.Call("slow",
				nil), script.Say("done")), Tools: []pawl.Toolset{writes, slow}}
			chief := &pawl.Agent{Name: "chief", Model: script.New(script.Call("clerk", `{"task":"x"}`),
				script.Say("done")), Tools: []pawl.Toolset{clerk.Tool("")}}
			other := &pawl.Agent{Name: "other", Model: script.New(script.Say("hi"))}
			// two calls, so that the call that does not end can be abandoned
			a := hire(chief, other)
			res, err := runtest.Ended(a.Run(ctx, llm.User("go")))
			if err != errShutdown || written != 1 || len(res.Pending) != 1 ||
				res.Pending[0].Outcome != pawl.OutcomeUnknown || res.Pending[0].Call.Name != "chief" {
				t.Fatalf("got %v, written %d times, pending %+v", err, written, res.Pending)
			}
			close(release)
			synctest.Wait()
			again, err := runtest.Ended(a.Resume(t.Context(), res))
			if err != nil || written != 1 || again.Stop != pawl.StopPending {
				t.Errorf("written %d times; %v, %s", written, err, again.Stop)
			}
			again, err = a.Resume(t.Context(), again, llm.DecisionMessage(again.Pending[0].Answer("ann", llm.TextResult("it was written"))))
			if err != nil || written != 1 || again.Stop != pawl.StopAnswer {
				t.Errorf("written %d times; %v, %s", written, err, again.Stop)
			}
		})
	}
}
