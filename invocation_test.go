package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestInvocationKnowsItsCall(t *testing.T) {
	if v := pawl.InvocationFrom(t.Context()); v != nil {
		t.Errorf("outside a call: got %+v", v)
	}
	tool := does("look", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		return llm.TextResult(fmt.Sprint(v.Key, " ", v.Agent, " ", v.Call.Name, " ", v.Attempt, " ",
			len(v.Messages()), " ", v.Messages()[0].Text(), " ", len(v.Tools()))), nil
	})
	res, err := (&pawl.Agent{Name: "ann", Instructions: "Be brief.",
		Model: script.New(script.Call("look", nil), script.Call("look", `{"a":1}`), script.Say("done")),
		Tools: []pawl.Toolset{tool}}).Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	want := "tool: call_1_0 = run/1/0 ann look 1 2 go 1\ntool: call_2_0 = run/2/0 ann look 1 4 go 1\n"
	if got := say([]llm.Message{res.Messages[2], res.Messages[4]}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A call reads the run's values as of the start of its step, and its own changes. The changes merge
// in call order, independent of the order in which calls end.
func TestValuesMergeInCallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := pawl.Func("set", "", func(ctx context.Context, in struct {
			I int `json:"i"`
		}) (string, error) {
			v := pawl.InvocationFrom(ctx)
			var before, own int
			was, err := v.Get("n", &before)
			if err != nil {
				return "", err
			}
			// the last in order is the first to end
			time.Sleep(time.Duration(10-in.I) * time.Millisecond)
			if err := v.Set("n", in.I); err != nil {
				return "", err
			}
			_, err = v.Get("n", &own)
			return fmt.Sprint(was, before, own), err
		})
		m := script.New(script.Together(script.Call("set", `{"i":1}`), script.Call("set", `{"i":2}`), script.Call("set", `{"i":3}`)),
			script.Together(script.Call("set", `{"i":4}`), script.Call("set", `{"i":5}`)), script.Say("done"))
		res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}).Run(t.Context(), llm.User("go"))
		if err != nil || string(res.Values["n"]) != "5" {
			t.Fatalf("got %v, %s", err, res.Values)
		}
		want := "tool: call_1_0 = false 0 1\ntool: call_1_1 = false 0 2\ntool: call_1_2 = false 0 3\ntool: call_2_0 = true 3 4\ntool: call_2_1 = true 3 5\n"
		if got := say([]llm.Message{res.Messages[2], res.Messages[4]}); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
	x := execute(t, does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		if err := v.Set("bad", func() {}); err == nil || !strings.Contains(err.Error(), `value "bad"`) {
			t.Errorf("a value without JSON form: got %v", err)
		}
		if err := v.Set("text", "x"); err != nil {
			t.Error(err)
		}
		if ok, err := v.Get("text", new(int)); !ok || err == nil {
			t.Errorf("a value of another type: got %t, %v", ok, err)
		}
		return llm.TextResult(""), nil
	}), `{}`)
	if string(x.Values["text"]) != `"x"` {
		t.Errorf("got %s", x.Values)
	}
}

func TestCallsInsideACall(t *testing.T) {
	adds := does("adds", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		v, n := pawl.InvocationFrom(ctx), 0
		_, err := v.Get("n", &n)
		_ = v.Set("n", n+1)
		return llm.TextResult(fmt.Sprint(v.Key, " ", n+1)), err
	})
	bad := does("bad", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{}, errors.New("no")
	})
	var xs []pawl.Execution
	plan := composes("plan", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
		_ = v.Set("n", 10)
		first, err := v.Do(ctx, call("", "adds", "{}"), call("mine", "bad", "{}"), call("", "nope", "{}"), call("", "person", "{}"), call("", "adds", `[]`))
		if err != nil {
			return llm.ToolResult{}, err
		}
		second, err := v.Do(ctx, call("", "adds", "{}"))
		xs = append(first, second...)
		none, err2 := v.Do(ctx)
		if len(none) != 0 || err2 != nil {
			t.Errorf("no calls: got %v, %v", none, err2)
		}
		return llm.TextResult("planned"), err
	})
	a := &pawl.Agent{Model: script.New(script.Call("plan", nil), script.Say("done")),
		Tools: []pawl.Toolset{adds, bad, plan, passive("person")}}
	events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range xs {
		got = append(got, fmt.Sprint(x.Key, " ", x.Call.ID, " ", x.Outcome, " ", x.Index))
	}
	if diff := cmp.Diff(got, []string{"run/1/0/s0 s0 ok 0", "run/1/0/s1 mine error 1", "run/1/0/s2 s2 unknown_tool 2", "run/1/0/s3 s3 denied 3", "run/1/0/s4 s4 invalid 4",
		"run/1/0/s5 s5 ok 0"}); diff != "" {
		t.Error(diff)
	}
	if xs[0].Result.Text() != "run/1/0/s0 11" || xs[5].Result.Text() != "run/1/0/s5 12" || string(res.Values["n"]) != "12" {
		t.Errorf("values: got %q, %q, %s", xs[0].Result.Text(), xs[5].Result.Text(), res.Values)
	}
	if !strings.Contains(xs[3].Result.Text(), "a call made inside another call cannot wait") {
		t.Errorf("a call that would have to wait: got %q", xs[3].Result.Text())
	}
	if res.Spent.Calls != 4 { // started calls: plan, adds, bad, adds
		t.Errorf("spent %+v", res.Spent)
	}
	inner := map[llm.Key][]pawl.EventKind{}
	for _, e := range events {
		if strings.Contains(string(e.Path), "/s") {
			inner[e.Path] = append(inner[e.Path], e.Kind)
		}
	}
	if diff := cmp.Diff(inner["run/1/0/s0"],
		[]pawl.EventKind{pawl.EventCallStarted, pawl.EventCallCompleted}); diff != "" || len(inner) != 6 {
		t.Errorf("events of %d inner calls; %s", len(inner), diff)
	}
	if len(res.Steps[0].Executions) != 1 || len(res.Messages) != 4 {
		t.Errorf("inner calls are in the transcript:\n%s", say(res.Messages))
	}
}

// Calls nest three deep and no deeper.
func TestNesting(t *testing.T) {
	deepest := 0
	deep := composes("deep", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
		deepest = max(deepest, strings.Count(string(v.Key), "/s"))
		xs, err := v.Do(ctx, call("", "deep", "{}"))
		if err != nil {
			return llm.ErrorResult(err.Error()), nil
		}
		return xs[0].Result, nil
	})
	x := execute(t, deep, `{}`)
	if x.Result.Text() != "calls are nested more than 3 deep" || deepest != 3 {
		t.Errorf("got %q, %d deep", x.Result.Text(), deepest)
	}
}

// A tool that calls tools must be marked as composing. An unmarked tool would hold a slot while its
// calls wait for one, and all slots could be held this way. Such a tool gets an error.
func TestOnlyToolsThatComposeMakeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault error
		wrong := composes("wrong", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
			_, fault = v.Do(ctx, call("", "leaf", "{}"))
			return llm.TextResult(""), fault
		})
		wrong.Effect = pawl.EffectWrite
		begin := time.Now()
		x, _, _ := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{wrong, says("leaf", "")},
			Parallel: pawl.Parallel{Limit: 1}}, call("", "wrong", "{}"))
		if fault == nil || !strings.Contains(fault.Error(), "Compose") || x.Outcome != pawl.OutcomeError ||
			time.Since(begin) != 0 {
			t.Errorf("got %v, %s after %v", fault, x.Outcome, time.Since(begin))
		}
		// A middleware holds no slot, so it may make calls.
		var xs []pawl.Execution
		asks := pawl.Before(func(ctx context.Context, c llm.ToolCall) (llm.ToolCall, error) {
			var err error
			if c.Name == "wrong" {
				xs, err = pawl.InvocationFrom(ctx).Do(ctx, call("", "leaf", "{}"))
			}
			return c, err
		})
		one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{wrong, says("leaf", "")},
			Parallel: pawl.Parallel{Limit: 1}, Middleware: []pawl.Middleware{asks}}, call("", "wrong", "{}"))
		if len(xs) != 1 || xs[0].Outcome != pawl.OutcomeOK {
			t.Errorf("a middleware's call: got %+v", xs)
		}
	})
}

// An Invocation has no effect after its call has ended.
func TestAfterTheCallHasEnded(t *testing.T) {
	var kept *pawl.Invocation
	var keptCtx context.Context
	leaf := 0
	tool := composes("f", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
		kept, keptCtx = v, ctx
		return llm.TextResult(""), nil
	})
	events, res, err := collect((&pawl.Agent{Model: script.New(script.Call("f", nil),
		script.Func(func(*llm.Request) script.Turn {
			kept.Emit("late", json.RawMessage(`1`))
			if err := kept.Set("n", 1); err == nil {
				t.Error("a value was set")
			}
			if xs, err := kept.Do(context.WithoutCancel(keptCtx), call("", "leaf", "{}")); err == nil {
				t.Errorf("a call was made: %+v", xs)
			}
			return script.Say("done")
		})), Tools: []pawl.Toolset{tool, does("leaf", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		leaf++
		return llm.TextResult(""), nil
	})}}).Stream(t.Context(), llm.User("go")))
	if err != nil || len(res.Values) != 0 || leaf != 0 {
		t.Errorf("got %v, values %s, %d calls", err, res.Values, leaf)
	}
	for _, e := range events {
		if e.Kind == pawl.EventProgress {
			t.Errorf("got %+v", e)
		}
	}
}

// A nested call ends the run as requested, for any later action of the tool that made it.
func TestACallInsideEndsTheRun(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name   string
		inner  pawl.ToolFunc
		ex     pawl.Parallel
		stop   pawl.StopReason
		result string
	}{
		{"Abort", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ToolResult{}, pawl.AbortError(boom)
		}, pawl.Parallel{}, pawl.StopFailed, "Stopped: boom"},
		{"Finish", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ToolResult{}, pawl.FinishError(llm.TextResult("enough"))
		}, pawl.Parallel{}, pawl.StopFinished, "enough"},
		{"FailFast", func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ToolResult{}, boom },
			pawl.Parallel{FailFast: true}, pawl.StopFailed, "Stopped: boom"},
	} {
		for _, heeds := range []bool{true, false} {
			more := 0
			plan := composes("plan", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
				xs, err := v.Do(ctx, call("", "inner", "{}"), call("", "ok", "{}"))
				if err == nil || len(xs) != 2 {
					t.Errorf("%s: Do returned %d executions and no error", test.name, len(xs))
				}
				if heeds {
					return llm.ToolResult{}, err
				}
				if _, err := v.Do(ctx, call("", "count", "{}")); err == nil {
					t.Errorf("%s: Do went on", test.name)
				}
				return llm.TextResult("never mind"), nil
			})
			m := script.New(script.Call("plan", nil), script.Say("done"))
			a := &pawl.Agent{Model: m, Parallel: test.ex, Tools: []pawl.Toolset{plan, says("ok", "fine"), does("inner", test.inner),
				does("count", func(context.Context, llm.ToolCall) (llm.ToolResult,
					error) {
					more++
					return llm.TextResult(""), nil
				})}}
			res, err := a.Run(t.Context(), llm.User("go"))
			if (err != nil) != (test.stop == pawl.StopFailed) || err != nil && !errors.Is(err, boom) ||
				res.Stop != test.stop || len(m.Requests()) != 1 || more != 0 {
				t.Errorf("%s, heeded %t: got %v, %s after %d requests, %d more calls", test.name, heeds, err, res.Stop, len(m.Requests()), more)
			}
			if got := res.Messages[2].Parts[0].(llm.ToolResult); got.Text() != test.result ||
				got.IsError != (test.stop == pawl.StopFailed) {
				t.Errorf("%s, heeded %t: the call is answered with %q", test.name, heeds, got.Text())
			}
			if test.stop == pawl.StopFinished && res.Text() != "enough" {
				t.Errorf("the answer is %q", res.Text())
			}
		}
	}
}

// The values and the usage of a composing call count also if the call is abandoned.
func TestUsageOfAnAbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		child := (&pawl.Agent{Name: "child", Model: script.New(script.Call("ok", nil), script.Call("deaf", nil)),
			Tools: []pawl.Toolset{says("ok", "fine"),
				does("deaf", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					<-release
					return llm.TextResult(""), nil
				})}}).Tool("")
		plan := composes("plan", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
			if _, err := v.Do(ctx, call("", "ok", "{}")); err != nil {
				return llm.ToolResult{}, err
			}
			if err := v.Set("x", 1); err != nil {
				return llm.ToolResult{}, err
			}
			<-release
			return llm.TextResult(""), nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(pawl.ErrCancelled) })
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("plan", nil),
			script.Call("child", `{"task":"x"}`))), Tools: []pawl.Toolset{plan, child, says("ok", "fine")}}
		res, err := runtest.Ended(a.Run(ctx, llm.User("go")))
		if err != nil || res.Stop != pawl.StopCancelled || string(res.Values["x"]) != "1" {
			t.Errorf("got %v, %s, values %v", err, res.Stop, res.Values)
		}
		// Two abandoned calls, the call within the plan, and in the child at least the ended call.
		if s := res.Spent; s.Requests != 3 || s.Calls < 4 || s.Usage.Total() == 0 {
			t.Errorf("spent %+v", s)
		}
		close(release)
		synctest.Wait()
	})
}
