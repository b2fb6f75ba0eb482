package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// both is a composing tool that makes the calls of rounds, one Do for each round, and returns their
// results.
func both(name string, rounds func() [][]llm.ToolCall) *pawl.Tool {
	t := does(name, func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		var said []string
		for _, calls := range rounds() {
			xs, err := pawl.InvocationFrom(ctx).Do(ctx, calls...)
			for _, x := range xs {
				said = append(said, x.Result.Text())
			}
			if errors.Is(err, pawl.ErrDiverged) {
				return llm.ToolResult{}, err
			}
		}
		// the error of Do is ignored on purpose: a pending call cannot be swallowed
		return llm.TextResult(strings.Join(said, ",")), nil
	})
	t.Effect = pawl.EffectCompose
	return t
}

func inner(name string) llm.ToolCall {
	return llm.ToolCall{Name: name, Args: json.RawMessage("{}")}
}

// storing returns the context of runs of a whose executor, a *pawltest.Kept, stores their calls.
func storing(ctx context.Context, a *pawl.Agent) context.Context {
	return pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: a.Executor.(*pawltest.Kept).Engine()})
}

// asksFor is a policy that asks for approval of calls of the named tools.
func asksFor(names ...string) pawl.Middleware {
	return pawl.Approve(func(_ context.Context, _ llm.ToolCall, t *pawl.Tool) (pawl.Approval, error) {
		if slices.Contains(names, t.Name) {
			return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
}

// With stored executions, a nested call can be pending. The calls in parallel to it are executed
// once, and an approval resumes the composing call with the stored results. Calls at depth two, and
// approved calls that contain others, ask once each.
func TestACallInsideACallWaits(t *testing.T) {
	var mu sync.Mutex // a and middle run together
	ran := map[string]int{}
	count := func(name string) *pawl.Tool {
		return does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[name]++
			return llm.TextResult(name), nil
		})
	}
	outer := both("outer", func() [][]llm.ToolCall { return [][]llm.ToolCall{{inner("a"), inner("middle")}, {inner("b")}} })
	middle := both("middle", func() [][]llm.ToolCall { return [][]llm.ToolCall{{inner("pay"), inner("c")}, {inner("d")}} })
	newAgent := func(k *pawltest.Kept) *pawl.Agent {
		return &pawl.Agent{Model: script.New(script.Call("outer", `{}`), script.Say("done")), Executor: k, Limits: pawl.Limits{Calls: 7},
			Tools:      []pawl.Toolset{outer, middle, count("a"), count("b"), count("c"), count("d"), count("pay")},
			Middleware: []pawl.Middleware{asksFor("pay", "outer")}}
	}
	kept := new(pawltest.Kept)
	a := newAgent(kept)
	var asked []llm.Key
	res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
	for range 2 {
		if err != nil || res.Stop != pawl.StopPending || len(res.Pending) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		asked = append(asked, res.Pending[0].Key)
		stored, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		var back pawl.Result
		if err := json.Unmarshal(stored, &back); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Resume(storing(t.Context(), a), &back, llm.User("well?")); err == nil ||
			!strings.Contains(err.Error(), "still waits") {
			t.Errorf("a new message passed a call that waits: %v", err)
		}
		again, err := runtest.Ended(a.Resume(storing(t.Context(), a), &back))
		if err != nil || again.Stop != pawl.StopPending || again.Pending[0].Digest != back.Pending[0].Digest {
			t.Fatalf("without a decision: %+v, %v", again, err)
		}
		if res, err = runtest.Ended(a.Resume(storing(t.Context(), a), again,
			llm.DecisionMessage(again.Pending[0].Approve("tom")))); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(asked, []llm.Key{"run/1/0", "run/1/0/s1/s0"}) {
		t.Errorf("asked for %q", asked)
	}
	want := "a,pay,c,d,b"
	if res.Stop != pawl.StopAnswer || res.Messages[2].Parts[0].(llm.ToolResult).Text() != want {
		t.Errorf("%s: %q, want %q", res.Stop, res.Messages[2].Parts[0].(llm.ToolResult).Text(), want)
	}
	for name, n := range ran {
		if n != 1 || len(ran) != 5 {
			t.Errorf("%s ran %d times; all: %v", name, n, ran)
		}
	}
	if res.Spent.Calls != 7 {
		t.Errorf("%d calls were counted, want 7", res.Spent.Calls)
	}
}

// The composing tool gets the denial and continues.
func TestACallInsideACallIsDenied(t *testing.T) {
	outer := both("outer", func() [][]llm.ToolCall { return [][]llm.ToolCall{{inner("pay")}} })
	a := &pawl.Agent{Model: script.New(script.Call("outer", `{}`), script.Say("done")), Executor: new(pawltest.Kept),
		Tools: []pawl.Toolset{outer, says("pay", "paid")}, Middleware: []pawl.Middleware{asksFor("pay")}}
	res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err = a.Resume(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Deny("tom", "too dear")))
	if err != nil || res.Messages[2].Parts[0].(llm.ToolResult).Text() != "Denied: too dear" {
		t.Errorf("%+v, %v", res, err)
	}
}

// Budgets hold for a repeated composing call: its replayed calls count as they did before.
func TestReplayedCallsCount(t *testing.T) {
	outer := both("outer", func() [][]llm.ToolCall {
		return [][]llm.ToolCall{{inner("a"), inner("a"), inner("pay")}, {inner("a")}}
	})
	a := &pawl.Agent{Model: script.New(script.Call("outer", `{}`), script.Say("done")),
		Executor: new(pawltest.Kept), Limits: pawl.Limits{Calls: 4},
		Tools: []pawl.Toolset{outer, says("a", "1"), says("pay", "paid")}, Middleware: []pawl.Middleware{asksFor("pay")}}
	res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err = runtest.Ended(a.Resume(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Approve("tom"))))
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Messages[2].Parts[0].(llm.ToolResult).Text(); !strings.HasPrefix(got, "1,1,paid,Not run: the limit of 4 calls") || res.Spent.Calls != 4 {
		t.Errorf("%d calls: %q", res.Spent.Calls, got)
	}
}

// A composing tool that makes another call when it is repeated is stopped before the call has any
// effect.
func TestDiverged(t *testing.T) {
	ran, calls := 0, []llm.ToolCall{inner("a"), inner("pay")}
	outer := both("outer", func() [][]llm.ToolCall { return [][]llm.ToolCall{calls} })
	other := does("other", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		ran++
		return llm.TextResult("x"), nil
	})
	a := &pawl.Agent{Model: script.New(script.Call("outer", `{}`), script.Say("done")), Executor: new(pawltest.Kept),
		Tools: []pawl.Toolset{outer, other, says("a", "1"), says("pay", "paid")}, Middleware: []pawl.Middleware{asksFor("pay")}}
	res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	calls = []llm.ToolCall{inner("other"), inner("pay")}
	res, err = a.Resume(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Approve("tom")))
	if err != nil || ran > 0 || res.Messages[2].Parts[0].(llm.ToolResult).Text() != "diverged: another call was made here before: a, and now other" {
		t.Errorf("ran %d, %+v, %v", ran, res, err)
	}
}

// A call of an agent tool is pending together with the call within its run. The agent runs again
// with the stored results of its calls, and its model answers as before.
func TestACallInAnAgentWaits(t *testing.T) {
	paid := 0
	pay := does("pay", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		paid++
		return llm.TextResult("paid"), nil
	})
	kept := new(pawltest.Kept)
	newAgent := func() *pawl.Agent {
		clerk := &pawl.Agent{Name: "clerk", Model: script.New(script.Call("pay", `{}`), script.Say("all paid")), Executor: kept,
			Tools: []pawl.Toolset{pay}, Middleware: []pawl.Middleware{asksFor("pay")}}
		return &pawl.Agent{Model: script.New(script.Call("clerk", `{"task":"pay"}`), script.Say("done")),
			Executor: kept, Tools: []pawl.Toolset{clerk.Tool("A clerk.")}}
	}
	a := newAgent()
	res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
	if err != nil || res.Stop != pawl.StopPending || len(res.Pending) != 1 || res.Pending[0].Key != "run/1/0/clerk/1/0" {
		t.Fatalf("%+v, %v", res, err)
	}
	a = newAgent()
	res, err = a.Resume(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Approve("tom")))
	if err != nil || paid != 1 || res.Messages[2].Parts[0].(llm.ToolResult).Text() != "all paid" {
		t.Errorf("paid %d, %+v, %v", paid, res, err)
	}
}

// If a run is cancelled while a nested call is pending, its conversation is complete. A shutdown
// keeps the question.
func TestGivenUpWhileACallInsideWaits(t *testing.T) {
	for _, cause := range []error{pawl.ErrCancelled, errors.New("shutdown")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		outer := both("outer", func() [][]llm.ToolCall { return [][]llm.ToolCall{{inner("a"), inner("pay")}} })
		stop := does("a", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult("1"), nil
		})
		last := does("last", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			cancel(cause)
			return llm.TextResult("x"), nil
		})
		last.Effect = pawl.EffectRead // a Write would wait for the answer
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("outer", `{}`), script.Call("last", `{}`)),
			script.Say("done")), Executor: new(pawltest.Kept), Parallel: pawl.Parallel{StopOnBlock: true},
			Tools: []pawl.Toolset{outer, stop, says("pay", "paid"), last}, Middleware: []pawl.Middleware{asksFor("pay")}}
		res, err := runtest.Ended(a.Run(storing(ctx, a), llm.User("go")))
		if err != nil && cause == pawl.ErrCancelled {
			t.Fatal(err)
		}
		if open := len(res.Calls()); cause == pawl.ErrCancelled && (open != 0 || len(res.Pending) != 0) ||
			cause != pawl.ErrCancelled && (open != 1 || len(res.Pending) != 1) {
			t.Errorf("%v: %d open, pending %+v", cause, open, res.Pending)
		}
	}
}
