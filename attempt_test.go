package pawl_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// A tool that ignores its context delays a step of several calls at most for the grace period. Then
// the run continues, and the abandoned tool no longer affects it.
func TestAToolThatIgnoresItsContextIsAbandoned(t *testing.T) {
	// with 1 and 2, some calls have not started when the others are abandoned
	for _, limit := range []int{1, 2, 10} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			release := make(chan struct{})
			var after error
			deaf := does("deaf", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				<-release
				v.Emit("still here", nil)
				after = v.Set("x", 1)
				_ = v.Messages()
				if xs, err := v.Do(context.WithoutCancel(ctx), call("", "other", "{}")); err == nil {
					t.Errorf("a call that had ended made another: %+v", xs)
				}
				return llm.TextResult("too late"), nil
			})
			other := says("other", "fine")
			a := &pawl.Agent{Model: together(named("deaf", "other", "other", "other")...),
				Tools: []pawl.Toolset{deaf, other}, Parallel: pawl.Parallel{Limit: limit}}
			time.AfterFunc(time.Second, func() { cancel(pawl.ErrCancelled) })
			begin := time.Now()
			res, err := step(t, ctx, a)
			if took := time.Since(begin); took != 6*time.Second {
				t.Errorf("limit %d: went on after %v, want 1 s and the grace of 5 s", limit, took)
			}
			if err != nil || res.Stop != pawl.StopCancelled || len(res.Calls()) > 0 {
				t.Errorf("limit %d: got %s, %v, open calls %v", limit, res.Stop, err, res.Calls())
			}
			if x := res.Steps[0].Executions[0]; x.Outcome != pawl.OutcomeCancelled ||
				x.Result.Text() != "Cancelled while it ran. What it does may have happened." || x.Attempts != 1 {
				t.Errorf("limit %d: got %+v", limit, x)
			}
			close(release)
			synctest.Wait()
			if after == nil {
				t.Error("a value was set after the call had ended")
			}
		})
	}
}

// A single call that ignores its context does not hold the run either.
func TestASingleToolThatIgnoresItsContextIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cancelled := range []bool{true, false} {
			release := make(chan struct{})
			deaf := does("deaf", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				<-release
				return llm.TextResult("too late"), nil
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			want, took := pawl.OutcomeTimeout, 60*time.Second+100*time.Millisecond
			if cancelled {
				time.AfterFunc(time.Second, func() { cancel(pawl.ErrCancelled) })
				want, took = pawl.OutcomeCancelled, 6*time.Second
			}
			begin := time.Now()
			res, err := step(t, ctx, &pawl.Agent{Model: together(named("deaf")...), Tools: []pawl.Toolset{deaf}})
			if err != nil || outcomes(res)[0] != want || time.Since(begin) != took {
				t.Errorf("got %v, %v after %v, want %s after %v", err, outcomes(res), time.Since(begin), want, took)
			}
			close(release)
			synctest.Wait()
			cancel(nil)
		}
	})
}

func TestAToolThatOutlivesItsTimeoutIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := does("deaf", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			<-release
			_, _ = v.Messages(), v.Tools()
			return llm.TextResult("too late"), nil
		})
		deaf.Timeout = time.Second
		deaf.Concurrent = true
		free := does("free", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			time.Sleep(time.Minute)
			return llm.TextResult("fine"), nil
		})
		// The next step runs while the abandoned tool reads the state of the run.
		m := script.New(script.Turn{Parts: []llm.Part{call("c0", "deaf", "{}"), call("c1", "deaf", "{}"), call("c2", "free", "{}")}},
			script.Func(func(*llm.Request) script.Turn { close(release); return script.Call("free", nil) }), script.Say("done"))
		begin := time.Now()
		res, err := step(t, t.Context(), &pawl.Agent{Model: m, Tools: []pawl.Toolset{deaf, free},
			Parallel: pawl.Parallel{Limit: 2}})
		if took := time.Since(begin); err != nil || took != 1100*time.Millisecond+2*time.Minute {
			t.Errorf("took %v, %v", took, err)
		}
		if diff := cmp.Diff(outcomes(res), []pawl.Outcome{pawl.OutcomeTimeout, pawl.OutcomeTimeout, pawl.OutcomeOK,
			pawl.OutcomeOK}); diff != "" {
			t.Error(diff)
		}
		if got := res.Steps[0].Executions[0].Result.Text(); got != "deaf did not end within 1s and still runs. What it does may have happened." {
			t.Errorf("got %q", got)
		}
		synctest.Wait()
	})
}

// A tool that ends its goroutine, as t.FailNow does, ends only its call.
func TestAToolThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quits := does("quits", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			runtime.Goexit()
			return llm.ToolResult{}, nil
		})
		quits.Timeout = -1
		res, err := step(t, t.Context(), &pawl.Agent{Model: together(named("quits", "ok", "quits", "ok")...),
			Tools:    []pawl.Toolset{quits, says("ok", "")},
			Parallel: pawl.Parallel{Limit: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(outcomes(res), []pawl.Outcome{pawl.OutcomePanicked, pawl.OutcomeOK,
			pawl.OutcomePanicked, pawl.OutcomeOK}); diff != "" {
			t.Error(diff)
		}
	})
}
