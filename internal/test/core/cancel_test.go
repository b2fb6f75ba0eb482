package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
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
	"github.com/pawl-go/pawl/script"
)

// interrupted runs an agent whose calls are interrupted by cause, and returns the result of the
// run.
func interrupted(t testing.TB, cause error, tools ...pawl.Toolset) (*pawl.Result, *script.Model, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	m := script.New(script.Turn{Parts: []llm.Part{call("w", "write", "{}"), call("r", "read", "{}"), call("q", "quick", "{}"), call("p", "person", "{}")}}, script.Say("done"))
	a := &pawl.Agent{Model: m, Tools: append(tools, passive("person"))}
	var began atomic.Int64
	for _, name := range []string{"write", "read"} {
		tool := does(name, func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			if began.Add(1) == 2 {
				cancel(cause)
			}
			<-ctx.Done()
			return llm.ToolResult{}, ctx.Err()
		})
		tool.Concurrent = true
		if name == "read" {
			tool.Effect = pawl.EffectRead
		}
		a.Tools = append(a.Tools, tool)
	}
	a.Tools = append(a.Tools, does("quick", func(context.Context, llm.ToolCall) (llm.ToolResult,
		error) {
		return llm.TextResult("fine"), nil
	}))
	res, err := runtest.Ended(a.Run(ctx, llm.User("go")))
	if res == nil {
		t.Fatal(err)
	}
	if err := valid(res.Messages); err != nil {
		t.Errorf("%v in\n%s", err, say(res.Messages))
	}
	if n := len(m.Requests()); n != 1 {
		t.Errorf("%d requests were made, want no other after the end", n)
	}
	return res, m, err
}

// Cancelling a task answers every open call, pending calls included, so that the conversation can
// be resumed.
func TestCancelDuringCalls(t *testing.T) {
	res, _, err := interrupted(t, pawl.ErrCancelled)
	if err != nil || res.Stop != pawl.StopCancelled || len(res.Calls()) != 0 || len(res.Pending) != 0 {
		t.Errorf("got %v, %s, open %v, pending %v", err, res.Stop, res.Calls(), res.Pending)
	}
	got := strings.Split(strings.TrimSpace(say(res.Messages[2:])), "\n")
	if got[2] != "tool: q = fine" && got[2] != "tool: q = error: Not run: the run was cancelled." {
		t.Errorf("got %s", got[2])
	}
	got[2] = ""
	want := []string{"tool: w = error: Cancelled while it ran. What it does may have happened.", "tool: r = error: Cancelled while it ran.", "",
		"tool: p = error: Not run: the run was cancelled."}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	a := &pawl.Agent{Model: script.New(script.Turn{}, script.Say("welcome back"))}
	if res, err = a.Resume(t.Context(), res, llm.User("go on")); err != nil || res.Text() != "welcome back" {
		t.Errorf("going on: %v", err)
	}
}

// Any other cause leaves open calls open. Resume executes them, except a call with effect Write
// that had started: it waits for a decision.
func TestShutdownDuringCalls(t *testing.T) {
	res, m, err := interrupted(t, errShutdown)
	if err != errShutdown || res.Stop != pawl.StopCancelled || res.Cause != "interrupted: "+errShutdown.Error() {
		t.Errorf("got %v, %s, %q", err, res.Stop, res.Cause)
	}
	for _, c := range res.Calls() {
		if c.ID == "q" {
			continue // the write may have happened
		}
		if !strings.Contains("wrp", c.ID) {
			t.Errorf("call %s is open", c.ID)
		}
	}
	waits := map[string]pawl.PendingCall{}
	for _, w := range res.Pending {
		waits[w.Call.ID] = w
	}
	if w := waits["w"]; w.Outcome != pawl.OutcomeUnknown || w.Attempt != 1 || w.Why != "Interrupted. What it does may have happened." {
		t.Errorf("the write: got %+v", w)
	}
	var ran []string
	a := &pawl.Agent{Model: m}
	for _, name := range []string{"write", "read", "quick"} {
		tool := does(name, func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			ran = append(ran, fmt.Sprint(name, pawl.InvocationFrom(ctx).Attempt))
			return llm.TextResult("again"), nil
		})
		tool.Concurrent = true // otherwise the calls after the write wait for its answer
		a.Tools = append(a.Tools, tool)
	}
	a.Tools = append(a.Tools, passive("person"))
	a.Parallel = pawl.Parallel{Limit: 1}
	ran = nil
	again, err := runtest.Ended(a.Resume(t.Context(), roundTrip(t, res)))
	if err != nil || again.Stop != pawl.StopPending || slices.Contains(ran, "write1") ||
		slices.Contains(ran, "write2") || !slices.Contains(ran, "read1") {
		t.Fatalf("got %v, %s, ran %v", err, again.Stop, ran)
	}
	if len(again.Pending) != 2 || again.Pending[0].Outcome != pawl.OutcomeUnknown ||
		again.Pending[0].Digest != waits["w"].Digest || again.Pending[0].Why != waits["w"].Why {
		t.Fatalf("got %+v", again.Pending)
	}
	stored := roundTrip(t, res)
	for i := range stored.Pending {
		stored.Pending[i].Why = "" // as an engine finds the call after a crash
	}
	crashed, _ := a.Resume(t.Context(), stored)
	if w := crashed.Pending[0]; w.Outcome != pawl.OutcomeUnknown || !strings.Contains(w.Why, "may have happened") {
		t.Errorf("after a crash: got %+v", w)
	}
	// An approval covers one attempt. A result states what happened.
	w, p := again.Pending[0], again.Pending[1]
	ran = nil
	done, err := a.Resume(t.Context(), roundTrip(t, again), llm.DecisionMessage(w.Approve("ann"), p.Answer("ann",
		llm.TextResult("me"))))
	if err != nil || done.Stop != pawl.StopAnswer || !slices.Equal(ran, []string{"write2"}) {
		t.Errorf("run again: got %v, %s, ran %v", err, done.Stop, ran)
	}
	ran = nil
	done, err = a.Resume(t.Context(), roundTrip(t, again),
		llm.DecisionMessage(w.Answer("ann", llm.TextResult("it was written")), p.Deny("ann", "")))
	if err != nil || done.Stop != pawl.StopAnswer || ran != nil {
		t.Errorf("it happened: got %v, %s, ran %v", err, done.Stop, ran)
	}
	if got := say(done.Messages[2:3]); !strings.HasPrefix(got, "tool: w = it was written\n") || !strings.HasSuffix(got, "tool: p = error: Denied: this call may not run. Do not repeat it.\n") {
		t.Errorf("got %s", got)
	}
	if p.Attempt != 0 || !p.Passive {
		t.Errorf("got %+v", p)
	}
	early := llm.DecisionMessage(llm.Decision{Key: w.Key, Digest: "of another attempt", Approve: true})
	ran = nil
	if done, err = runtest.Ended(a.Resume(t.Context(), roundTrip(t, again), early)); err != nil ||
		done.Stop != pawl.StopPending || ran != nil {
		t.Errorf("a yes to another attempt: got %v, %s, ran %v", err, done.Stop, ran)
	}
}

// Cancelling a task answers a pending call too, for each kind of question.
func TestCancelAnswersTheCallsThatWait(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	m := script.New(script.Together(script.Call("person", nil), script.Call("last", nil)), script.Say("done"))
	last := does("last", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		cancel(pawl.ErrCancelled)
		return llm.TextResult("fine"), nil
	})
	res, err := step(t, ctx, &pawl.Agent{Model: m, Tools: []pawl.Toolset{passive("person"), last},
		Parallel: pawl.Parallel{Limit: 1}})
	if err != nil || res.Stop != pawl.StopCancelled || len(res.Pending) != 0 {
		t.Errorf("got %v, %s, pending %v", err, res.Stop, res.Pending)
	}
	if got := say(res.Messages[2:]); got != "tool: call_1_0 = error: Not run: the run was cancelled.\ntool: call_1_1 = fine\n" {
		t.Errorf("got %s", got)
	}
	first, _, _ := interrupted(t, errShutdown) // it is unknown whether its write happened
	ctx, cancel = context.WithCancelCause(t.Context())
	read := last.Clone()
	read.Name, read.Effect = "read", pawl.EffectRead
	res, err = runtest.Ended((&pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{says("write", ""), read, says("quick", ""),
		passive("person")}, Parallel: pawl.Parallel{Limit: 1}}).Resume(ctx, first))
	if err != nil || len(res.Calls()) != 0 || len(res.Pending) != 0 {
		t.Errorf("got %v, open %v, pending %v", err, res.Calls(), res.Pending)
	}
	if got := res.Messages[2].Parts[0].(llm.ToolResult); got.CallID != "w" || got.Text() != "Cancelled. It was started and interrupted: it may have taken effect." {
		t.Errorf("got %q", got.Text())
	}
	cancel(nil)
}

// An interrupted Write waits for a decision. A second interruption before the decision does not
// execute it.
func TestAnUnknownCallStaysUnknown(t *testing.T) {
	first, _, _ := interrupted(t, errShutdown)
	ran := 0
	a := &pawl.Agent{Model: script.New(script.Turn{}, script.Say("done")),
		Tools: []pawl.Toolset{says("read", ""), says("quick", ""), passive("person"),
			does("write", func(context.Context, llm.ToolCall) (llm.ToolResult,
				error) {
				ran++
				return llm.TextResult(""), nil
			})}}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	second, err := runtest.Ended(a.Resume(ctx, roundTrip(t, first)))
	if err != errShutdown || ran != 0 {
		t.Fatalf("got %v, ran %d times", err, ran)
	}
	third, err := runtest.Ended(a.Resume(t.Context(), roundTrip(t, second)))
	if err != nil || ran != 0 || third.Stop != pawl.StopPending || len(third.Pending) == 0 ||
		third.Pending[0].Outcome != pawl.OutcomeUnknown {
		t.Errorf("the interrupted write ran %d times in silence; %v, %s, pending %+v", ran, err, third.Stop, third.Pending)
	}
	// If the task is cancelled, the result says that the write may have happened.
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(pawl.ErrCancelled)
	given, err := runtest.Ended(a.Resume(ctx, roundTrip(t, first)))
	if err != nil || len(given.Calls()) != 0 || ran != 0 {
		t.Fatalf("got %v, open %v, ran %d times", err, given.Calls(), ran)
	}
	if got := given.Messages[2].Parts[0].(llm.ToolResult); got.CallID != "w" || !strings.Contains(got.Text(), "may have happened") {
		t.Errorf("the model is told %q of a call that had begun", got.Text())
	}
	// The same holds if another call of the step fails or is blocked.
	a.Tools = append(a.Tools[:1:1], a.Tools[2:]...) // quick no longer exists: unknown tool
	for _, ex := range []pawl.Parallel{{FailFast: true, StopOnBlock: true}, {StopOnBlock: true}} {
		a.Parallel = ex
		a.Middleware = []pawl.Middleware{pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
			if c.Name == "read" {
				return c, pawl.BlockError("no")
			}
			return c, nil
		})}
		res, _ := runtest.Ended(a.Resume(t.Context(), roundTrip(t, first)))
		if ran != 0 {
			t.Errorf("%+v: the write ran in silence", ex)
		}
		if err := valid(res.Messages); err != nil {
			t.Error(err)
		}
	}
}

func TestCancelBeforeARequest(t *testing.T) {
	for _, cause := range []error{pawl.ErrCancelled, errShutdown} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		m := script.New(script.Say("hi"))
		res, err := runtest.Ended((&pawl.Agent{Model: m}).Run(ctx, llm.User("go")))
		if res.Stop != pawl.StopCancelled || len(m.Requests()) != 0 ||
			(err == nil) != (cause == pawl.ErrCancelled) || err != nil && err != cause {
			t.Errorf("%v: got %v, %s, %d requests", cause, err, res.Stop, len(m.Requests()))
		}
		if len(res.Messages) != 1 {
			t.Errorf("%v: transcript\n%s", cause, say(res.Messages))
		}
	}
}

func TestCancelDuringARequest(t *testing.T) {
	for _, cause := range []error{pawl.ErrCancelled, errShutdown} {
		for name, m := range map[string]llm.Model{
			"a model that heeds": script.New(script.Turn{Parts: []llm.Part{text("a long answer, held")}, Hold: make(chan struct{})}),
			"a deaf one":         tail(),
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			events, res, err := collect(func(yield func(pawl.Event, error) bool) {
				(&pawl.Agent{Model: m}).Stream(ctx, llm.User("go"))(func(e pawl.Event, err error) bool {
					if e.Kind == pawl.EventText {
						cancel(cause)
					}
					return yield(e, err)
				})
			})
			if res == nil || res.Stop != pawl.StopCancelled || len(res.Messages) != 1 ||
				(err == nil) != (cause == pawl.ErrCancelled) {
				t.Errorf("%s, %v: got %v, %+v", name, cause, err, res)
			}
			if last := events[len(events)-1]; last.Kind != pawl.EventRunEnded {
				t.Errorf("%s: the last event is %s", name, last.Kind)
			}
			cancel(nil)
		}
	}
}

// Breaking out of a stream ends the run. No request follows, no goroutine remains, and open calls
// stay open.
func TestBreakingOutOfAStream(t *testing.T) {
	m := script.New(script.Together(script.Say("I look at two things."), script.Call("f", nil), script.Call("f", `{"a":1}`)), script.Say("done"))
	kinds := map[pawl.EventKind]bool{}
	tool := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		pawl.InvocationFrom(ctx).Emit("working", nil)
		return llm.TextResult("x"), nil
	})
	for e, err := range (&pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}).Stream(t.Context(), llm.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind] = true
	}
	if len(kinds) < 10 {
		t.Fatalf("only %d kinds of events to break at", len(kinds))
	}
	for kind := range kinds {
		m := &script.Model{Turns: m.Turns}
		after := 0
		for e, err := range (&pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}).Stream(t.Context(), llm.User("go")) {
			if after > 0 || err != nil {
				t.Errorf("after breaking at %s: %+v, %v", kind, e, err)
			}
			if e.Kind == kind {
				after++
				break
			}
		}
		n := len(m.Requests())
		switch kind {
		case pawl.EventRunStarted:
			if n != 0 {
				t.Errorf("breaking at %s: %d requests", kind, n)
			}
		case pawl.EventRunEnded:
		default:
			if n > 1 {
				t.Errorf("breaking at %s: %d requests", kind, n)
			}
		}
	}
	for range (&pawl.Agent{Model: tail()}).Stream(t.Context(), llm.User("go")) {
		break // a model that never ends does not block a reader that breaks off
	}
	for e := range (&pawl.Agent{Model: tail()}).Stream(t.Context(), llm.User("go")) {
		if e.Kind == pawl.EventText {
			break
		}
	}
}

// A run that is cancelled at any point can be resumed from its stored state. Every call has its
// result, and no request follows the cancellation. When the tools that ignore their context have
// returned, no goroutine remains (synctest reports one).
func TestCancelAtAThousandPoints(t *testing.T) {
	stops := map[pawl.StopReason]int{}
	late := 0
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 4))
			pause := func() time.Duration { return time.Duration(rnd.IntN(40)) * ms }
			names := []string{"read", "write", "set", "deaf", "plan", "child", "unknown"}
			replies := func(calls []string) (out []written) {
				for range 1 + rnd.IntN(3) {
					w := written{After: []time.Duration{pause()}}
					for range rnd.IntN(4) {
						w.Parts = append(w.Parts, call(fmt.Sprint("c", len(out), "_", len(w.Parts)),
							calls[rnd.IntN(len(calls))], fmt.Sprintf(`{"task":"%d"}`, rnd.IntN(100))))
						w.After = append(w.After, pause())
					}
					if len(w.Parts) == 0 {
						w.Parts = append(w.Parts, text("done"))
					}
					out = append(out, w)
				}
				return out
			}
			var cancelled atomic.Bool
			after := 0
			model := func(m modelFunc) modelFunc {
				return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
					if cancelled.Load() {
						after++
					}
					return m(ctx, req)
				}
			}
			began := new(runtest.Starts)
			set := lasting("set", pawl.EffectWrite, pause(), began)
			set.Serial = func(json.RawMessage) string { return "k" }
			deaf := does("deaf", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				time.Sleep(7 * time.Second)
				return llm.TextResult("at last"), nil
			})
			tools := []pawl.Toolset{lasting("read", pawl.EffectRead, pause(), began),
				lasting("write", pawl.EffectWrite, pause(), began), set}
			child := &pawl.Agent{Name: "child", Model: model(slowly(replies(names[:3])...)), Tools: tools}
			plan := composes("plan", func(ctx context.Context, v *pawl.Invocation) (llm.ToolResult, error) {
				xs, err := v.Do(ctx, call("", "write", "{}"), call("", "read", "{}"))
				return llm.TextResult(fmt.Sprint(len(xs))), err
			})
			a := &pawl.Agent{Model: model(slowly(replies(names)...)),
				Tools: append(tools[:3:3], deaf, plan, child.Tool("")), Parallel: pawl.Parallel{Limit: 1 + rnd.IntN(4)}}
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Duration(rnd.IntN(200_000))*time.Microsecond,
				func() { cancelled.Store(true); cancel(pawl.ErrCancelled) })
			begin := time.Now()
			var res *pawl.Result
			var err error
			if rnd.IntN(2) == 0 {
				res, err = runtest.Ended(a.Run(ctx, llm.User("go")))
			} else {
				_, res, err = collect(a.Stream(ctx, llm.User("go")))
			}
			if took := time.Since(begin); took > 8*time.Second {
				t.Errorf("seed %d: ended after %v", seed, took)
			}
			time.Sleep(time.Minute) // until the tools that ignore their context return
			if err != nil || after > 0 {
				t.Errorf("seed %d: %v, %d requests after the cancel", seed, err, after)
			}
			if stops[res.Stop]++; res.Stop == pawl.StopCancelled && len(res.Messages) > 2 {
				late++
			}
			if faults := llm.Check(res.Messages); len(faults) > 0 || len(res.Calls()) > 0 {
				t.Errorf("seed %d: %v, open %v in\n%s", seed, faults, res.Calls(), say(res.Messages))
			}
			if err := valid(res.Messages); err != nil {
				t.Errorf("seed %d: %v in\n%s", seed, err, say(res.Messages))
			}
		})
	}
	t.Logf("%v, %d of the cancelled ones in the middle of their work", stops, late)
	if stops[pawl.StopCancelled] < 500 || late < 200 {
		t.Errorf("%v, %d in the middle: the test shows too little", stops, late)
	}
}

// tail is a model that streams text without end and ignores its context.
func tail() llm.Model {
	return modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for yield(llm.Delta{Part: text("and ")}, nil) {
			}
		}
	})
}
