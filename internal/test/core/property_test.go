package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// hostile draws a turn of a model that follows no rules.
func hostile(t *rapid.T) script.Turn {
	names := []string{"ok", "ok", "fails", "panics", "slow", "blocked", "denied", "ask", "person", "strict", "plan", "finishes", "aborts", "nope", ""}
	bytes := []string{`{}`, `{}`, ``, `null`, `[]`, `{"a":`, `{"a":1}`, `{"n":"x"}`, `{"n":1}`, `{"a":1,"a":2}`, `"{}"`, `{} {}`}
	var turn script.Turn
	for range rapid.IntRange(0, 5).Draw(t, "parts") {
		switch rapid.IntRange(0, 5).Draw(t, "part") {
		case 0:
			turn.Parts = append(turn.Parts, text(rapid.SampledFrom(bytes).Draw(t, "text")))
		case 1:
			turn.Parts = append(turn.Parts, llm.Reasoning{Text: "hm"})
		default:
			turn.Parts = append(turn.Parts, call(rapid.SampledFrom([]string{"", "", "", "x", "call_0"}).Draw(t,
				"id"), rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(bytes).Draw(t, "args")))
		}
	}
	switch rapid.IntRange(0, 15).Draw(t, "end") {
	case 0:
		turn.Finish = llm.FinishReasonLength
	case 1:
		turn.Finish = llm.FinishReasonContentFilter
	case 2:
		turn.Err = errors.New("connection lost")
	case 3:
		turn.Finish = llm.FinishReasonStop
	case 4: // fragments that break the contract
		turn.Deltas = []llm.Delta{{Index: rapid.IntRange(-1, 2).Draw(t, "index"), Part: text("x"),
			Done: rapid.Bool().Draw(t, "done")}, {Index: 0, Part: args("y")}, {Finish: llm.FinishReasonStop}}
	}
	return turn
}

// For any model and any fault, the run ends with a stated cause and a valid transcript, each call
// is completed exactly once, and the run can be resumed.
func TestEveryRunEndsWell(t *testing.T) {
	stops := map[pawl.StopReason]int{}
	rapid.Check(t, func(t *rapid.T) {
		var turns []script.Turn
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			turns = append(turns, hostile(t))
		}
		turns = append(turns, script.Say("done"))
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		cause := rapid.SampledFrom([]error{nil, nil, pawl.ErrCancelled, errShutdown, pawl.ErrTime}).Draw(t, "cause")
		when := rapid.IntRange(1, 40).Draw(t, "when")
		slow := does("slow", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			select {
			case <-ctx.Done():
				return llm.ToolResult{}, ctx.Err()
			case <-time.After(time.Millisecond):
				return llm.TextResult("at last"), nil
			}
		})
		slow.Effect = rapid.SampledFrom([]pawl.Effect{pawl.EffectWrite, pawl.EffectRead,
			pawl.EffectIdempotent}).Draw(t, "effect")
		boom := errors.New("boom")
		a := &pawl.Agent{Model: script.New(turns...), Limits: pawl.Limits{Rounds: rapid.IntRange(-1, 4).Draw(t,
			"rounds"), Calls: rapid.IntRange(0, 9).Draw(t, "calls"),
			CallsPerStep: rapid.IntRange(0, 3).Draw(t, "calls per step"),
			AtLimit:      rapid.SampledFrom([]pawl.AtLimit{pawl.AtLimitAnswer, pawl.AtLimitReturn}).Draw(t, "at limit")},
			Parallel: pawl.Parallel{Limit: rapid.IntRange(0, 3).Draw(t, "limit"),
				FailFast: rapid.IntRange(0, 4).Draw(t, "fail fast") == 0, StopOnBlock: rapid.IntRange(0, 4).Draw(t, "stop on block") == 0},
			Tools: []pawl.Toolset{says("ok", "fine"), says("blocked", ""), says("denied", ""), says("ask", "yes"), passive("person"), slow,
				&pawl.Tool{Name: "strict", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`), Run: says("", "fits").Run},
				does("fails", func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ToolResult{}, boom }),
				does("panics", func(context.Context, llm.ToolCall) (llm.ToolResult, error) { panic(boom) }),
				does("finishes", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					return llm.ToolResult{}, pawl.FinishError(llm.TextResult("enough"))
				}),
				does("aborts", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					return llm.ToolResult{}, pawl.AbortError(boom)
				}),
				composes("plan", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
					xs, err := v.Do(ctx, call("", "ok", "{}"), call("", "slow", "{}"), call("", "person", "{}"))
					return llm.TextResult(fmt.Sprint(len(xs))), err
				})},
			Middleware: []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall,
				_ *pawl.Tool) (pawl.Approval, error) {
				switch c.Name {
				case "denied":
					return pawl.Approval{Verdict: pawl.VerdictDeny}, nil
				case "ask":
					return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
				}
				return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
			}), pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
				if c.Name == "blocked" {
					return c, pawl.BlockError("no")
				}
				return c, nil
			})}}

		var events []pawl.Event
		var res *pawl.Result
		var fault error
		for e, err := range a.Stream(ctx, llm.User("go")) {
			if err != nil {
				fault = err
				continue
			}
			events = append(events, e)
			if e.Kind == pawl.EventRunEnded && e.Run == "run" {
				res = e.Result
			}
			if len(events) == when && cause != nil {
				cancel(cause)
			}
			if _, err := json.Marshal(e); err != nil {
				t.Fatalf("%s has no JSON form: %v", e.Kind, err)
			}
		}
		if res == nil {
			t.Fatalf("no result: %v", fault)
		}
		stops[res.Stop]++
		if !slices.Contains([]pawl.StopReason{pawl.StopAnswer, pawl.StopFinished, pawl.StopPending, pawl.StopLimit,
			pawl.StopStalled, pawl.StopCancelled, pawl.StopFailed}, res.Stop) {
			t.Fatalf("stopped as %q", res.Stop)
		}
		if res.Cause == "" && res.Stop != pawl.StopAnswer && res.Stop != pawl.StopFinished {
			t.Fatalf("stopped as %s without a cause", res.Stop)
		}
		_, why := runtest.Ended(res, fault)
		if (why != nil) != (res.Stop == pawl.StopFailed || res.Stop == pawl.StopCancelled && cause == errShutdown) {
			t.Fatalf("stopped as %s, %q with error %v", res.Stop, res.Cause, fault)
		}
		if err := valid(res.Messages); err != nil {
			t.Fatalf("%v in\n%s", err, say(res.Messages))
		}
		if open := len(res.Calls()); open > 0 && (res.Stop == pawl.StopAnswer || res.Stop == pawl.StopStalled ||
			res.Stop == pawl.StopCancelled && cause == pawl.ErrCancelled) {
			t.Fatalf("stopped as %s with open calls:\n%s", res.Stop, say(res.Messages))
		}
		// An empty answer is asked for again, which is a correction.
		if a.Limits.Rounds > 0 && res.Spent.Requests > a.Limits.Rounds+1+res.Spent.Corrections {
			t.Fatalf("%d rounds made %d requests", a.Limits.Rounds, res.Spent.Requests)
		}
		if a.Limits.Calls > 0 && res.Spent.Calls > a.Limits.Calls {
			t.Fatalf("%d calls were begun of %d", res.Spent.Calls, a.Limits.Calls)
		}
		completed, last := map[llm.Key]int{}, events[len(events)-1]
		for i, e := range events {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d has number %d", i+1, e.Seq)
			}
			if e.Kind == pawl.EventCallCompleted {
				completed[e.Path]++
			}
			if e.Kind == pawl.EventCallStarted && completed[e.Path] > 0 {
				t.Fatalf("%s was started after it was completed", e.Path)
			}
		}
		for _, s := range res.Steps {
			for _, x := range s.Executions {
				if completed[x.Key] != 1 {
					t.Fatalf("%s was completed %d times", x.Key, completed[x.Key])
				}
			}
		}
		if last.Kind != pawl.EventRunEnded {
			t.Fatalf("the last event is %s", last.Kind)
		}

		// A run can be resumed from its stored Result after every pending call has a decision.
		from := roundTrip(t, res)
		var words []llm.Decision
		for _, w := range from.Pending {
			words = append(words, w.Answer("ann", llm.TextResult("so be it")))
		}
		if len(from.Calls()) > 0 && len(words) == 0 && res.Stop == pawl.StopLimit {
			return // returned open: the caller executes them
		}
		a.Model = script.New(script.Loop(script.Say("welcome back")))
		again, err := runtest.Ended(a.Resume(context.Background(), from, llm.DecisionMessage(words...), llm.User("go on")))
		if err != nil && again == nil {
			t.Fatalf("it cannot go on: %v\n%s", err, say(from.Messages))
		}
		if err := valid(again.Messages); err != nil {
			t.Fatalf("gone on: %v in\n%s", err, say(again.Messages))
		}
		if !slices.Contains([]pawl.StopReason{pawl.StopAnswer, pawl.StopLimit, pawl.StopFailed, pawl.StopFinished,
			pawl.StopPending}, again.Stop) {
			t.Fatalf("gone on: stopped as %s, %q", again.Stop, again.Cause)
		}
	})
	t.Log(stops)
	if len(stops) < 4 && !testing.Short() { // rapid then draws a fifth of the models
		t.Errorf("only %v were reached: the models are too tame", stops)
	}
}

// For any number of interruptions, stores and resumes, no Write is executed twice, and no
// interrupted Write is repeated without a decision. This also holds within other calls. In the end
// every call has its result.
func TestNoWriteIsRepeatedInSilence(t *testing.T) {
	interruptions := 0
	rapid.Check(t, func(t *rapid.T) {
		var mu sync.Mutex
		begun := map[string]int{}
		write := does("write", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			mu.Lock()
			begun[string(pawl.InvocationFrom(ctx).Key)]++
			mu.Unlock()
			runtime.Gosched()
			if ctx.Err() != nil {
				return llm.ToolResult{}, ctx.Err()
			}
			return llm.TextResult("written"), nil
		})
		read := says("read", "fine")
		read.Effect = pawl.EffectRead
		clerk := &pawl.Agent{Name: "clerk", Model: script.New(script.Together(script.Call("write", nil),
			script.Call("read", nil)), script.Call("write", `{"a":1}`), script.Say("done")),
			Tools: []pawl.Toolset{write, read}}
		plan := composes("plan", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
			for range 2 {
				if _, err := v.Do(ctx, call("", "write", "{}"), call("", "read", "{}")); err != nil {
					return llm.ToolResult{}, err
				}
			}
			return llm.TextResult("planned"), nil
		})
		var turns []script.Turn
		for range rapid.IntRange(1, 3).Draw(t, "turns") {
			var parts []script.Turn
			for range rapid.IntRange(1, 4).Draw(t, "calls") {
				name := rapid.SampledFrom([]string{"write", "write", "read", "plan", "clerk"}).Draw(t, "name")
				parts = append(parts, script.Call(name, fmt.Sprintf(`{"task":"%d"}`, len(turns)*10+len(parts))))
			}
			turns = append(turns, script.Together(parts...))
		}
		a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...),
			Tools:    []pawl.Toolset{write, read, plan, clerk.Tool("")},
			Parallel: pawl.Parallel{Limit: rapid.IntRange(1, 3).Draw(t, "limit")}}
		from := &pawl.Result{Messages: []llm.Message{llm.User("go")}}
		for runs := 0; ; runs++ {
			if runs > 200 {
				t.Fatal("it never ends")
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			when := rapid.IntRange(1, 60).Draw(t, "when")
			var words []llm.Message
			for _, w := range from.Pending {
				if w.Outcome != pawl.OutcomeUnknown {
					t.Fatalf("a call waits as %s", w.Outcome)
				}
				if rapid.Bool().Draw(t, "known") {
					words = append(words, llm.DecisionMessage(w.Answer("ann", llm.TextResult("it was done"))))
				}
			}
			n := 0
			var res *pawl.Result
			for e := range a.ResumeStream(ctx, from, words...) {
				if n++; n == when {
					cancel(errShutdown)
					interruptions++
				}
				if e.Kind == pawl.EventRunEnded && e.Run == "run" {
					res = e.Result
				}
			}
			cancel(nil)
			for key, n := range begun {
				if n > 1 {
					t.Fatalf("the write at %s was begun %d times\n%s", key, n, say(res.Messages))
				}
			}
			if err := valid(res.Messages); err != nil {
				t.Fatalf("%v in\n%s", err, say(res.Messages))
			}
			if res.Stop == pawl.StopAnswer {
				return
			}
			from = roundTrip(t, res)
		}
	})
	if interruptions < 100 && !testing.Short() {
		t.Errorf("only %d interruptions", interruptions)
	}
}
