package core_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

func TestFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var began atomic.Int64
		bad := does("bad", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			time.Sleep(time.Second)
			return llm.ToolResult{}, boom
		})
		slow := does("slow", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			began.Add(1)
			<-ctx.Done()
			return llm.ToolResult{}, ctx.Err()
		})
		bad.Concurrent, slow.Concurrent = true, true
		a := &pawl.Agent{Model: together(named("slow", "bad", "slow", "slow", "slow")...), Tools: []pawl.Toolset{bad, slow},
			Parallel: pawl.Parallel{Limit: 3, FailFast: true}}
		begin := time.Now()
		res, err := step(t, t.Context(), a)
		var te *pawl.ToolError
		if !errors.As(err, &te) || te.Execution.Call.Name != "bad" || !errors.Is(err, boom) || err.Error() != "tool bad: boom" {
			t.Errorf("got error %v", err)
		}
		if time.Since(begin) != time.Second || began.Load() != 2 {
			t.Errorf("%d slow calls were begun in %v; want 2 in 1 s", began.Load(), time.Since(begin))
		}
		if res.Stop != pawl.StopFailed || res.Spent.Requests != 1 {
			t.Errorf("got %s after %d requests", res.Stop, res.Spent.Requests)
		}
		if diff := cmp.Diff(outcomes(res), []pawl.Outcome{pawl.OutcomeCancelled, pawl.OutcomeError,
			pawl.OutcomeCancelled, pawl.OutcomeSkipped, pawl.OutcomeSkipped}); diff != "" {
			t.Error(diff)
		}
		if n := len(res.Messages[2].Parts); n != 5 {
			t.Errorf("%d results, want one for each call", n)
		}
		if got := res.Messages[2].Parts[3].(llm.ToolResult).Text(); got != "Not run: another call of this step failed." {
			t.Errorf("got %q", got)
		}
	})
}

// After a call has failed, no other call starts, also not a call that a middleware holds or that
// waits for a slot.
func TestFailFastBeginsNothingThatWasOnItsWay(t *testing.T) {
	for range 50 { // select chooses at random between a free slot and a cancelled context
		began := false
		bad := does("bad", func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ErrorResult("no"), nil })
		late := does("late", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			began = true
			return llm.TextResult(""), nil
		})
		wait := pawl.Before(func(ctx context.Context, c llm.ToolCall) (llm.ToolCall, error) {
			if c.Name == "late" {
				<-ctx.Done()
			}
			return c, nil
		})
		bad.Concurrent = true
		res, err := step(t, t.Context(), &pawl.Agent{Model: together(named("late", "bad")...), Tools: []pawl.Toolset{bad, late},
			Middleware: []pawl.Middleware{wait}, Parallel: pawl.Parallel{FailFast: true}})
		if err == nil || began || outcomes(res)[0] != pawl.OutcomeSkipped {
			t.Fatalf("begun: %t, outcomes %v, error %v", began, outcomes(res), err)
		}
	}
}

func TestFailFastOfASingleCall(t *testing.T) {
	bad := does("bad", func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ErrorResult("no"), nil })
	res, err := step(t, t.Context(), &pawl.Agent{Model: together(named("bad")...), Tools: []pawl.Toolset{bad},
		Parallel: pawl.Parallel{FailFast: true}})
	var te *pawl.ToolError
	if !errors.As(err, &te) || res.Stop != pawl.StopFailed || res.Steps[0].Executions[0].Ends != pawl.StopFailed {
		t.Errorf("got %s, %v", res.Stop, err)
	}
}

func TestStopOnBlock(t *testing.T) {
	var ran []string
	tool := func(name string) *pawl.Tool {
		return does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran = append(ran, name)
			return llm.TextResult(""), nil
		})
	}
	guard := pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
		if c.Name == "b" {
			return c, pawl.BlockError("not on Sundays")
		}
		return c, nil
	})
	a := &pawl.Agent{Model: together(named("a", "b", "c", "a")...), Tools: []pawl.Toolset{tool("a"), tool("b"), tool("c")},
		Middleware: []pawl.Middleware{guard}, Parallel: pawl.Parallel{StopOnBlock: true}}
	res, err := step(t, t.Context(), a)
	if err != nil || res.Stop != pawl.StopAnswer {
		t.Errorf("the run is to go on: got %s, %v", res.Stop, err)
	}
	if diff := cmp.Diff(outcomes(res), []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeBlocked, pawl.OutcomeSkipped,
		pawl.OutcomeSkipped}); diff != "" || !slices.Equal(ran, []string{"a"}) {
		t.Errorf("ran %v, outcomes %s", ran, diff)
	}
	want := "tool: c0 = \ntool: c1 = error: Blocked: not on Sundays\ntool: c2 = error: Not run: the call before it, b, was blocked.\ntool: c3 = error: Not run: the call before it, b, was blocked.\n"
	if got := say(res.Messages[2:3]); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	a.Parallel = pawl.Parallel{} // otherwise a block does not stop the other calls
	ran = nil
	a.Parallel = pawl.Parallel{Limit: 1}
	if res, _ = step(t, t.Context(), a); !slices.Equal(ran, []string{"a", "c", "a"}) {
		t.Errorf("ran %v, outcomes %v", ran, outcomes(res))
	}
}
