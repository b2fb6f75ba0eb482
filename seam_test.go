package pawl_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// The run checks its Executor: a fault stops it as failed, the other calls have their results, and
// a write without an execution is pending, since it may have taken effect. A question that is
// missing is added. A failure of transport is no fault.
func TestExecutorFaults(t *testing.T) {
	sent := func(c delivery.Certainty) error {
		return delivery.NewError(c, "the machine is away", errors.New("no route"))
	}
	returns := func(change func(*pawl.Execution)) by {
		return func(ctx context.Context, t pawl.Task, emit emitter) (pawl.Execution, error) {
			x := t.Do(ctx, emit)
			change(&x)
			return x, nil
		}
	}
	fails := func(err error) by {
		return func(context.Context, pawl.Task, emitter) (pawl.Execution, error) {
			return pawl.Execution{}, err
		}
	}
	emits := func(change func(*pawl.Event)) by {
		return func(ctx context.Context, t pawl.Task, emit emitter) (pawl.Execution, error) {
			x := t.Do(ctx, emit)
			e := pawl.Event{Kind: pawl.EventCallCompleted, Run: t.Run, Step: t.Step, Path: t.Key, Execution: &x}
			change(&e)
			emit(e)
			return x, nil
		}
	}
	for _, c := range []struct {
		name  string
		b     by     // executes the first call, which is of b
		fault string // "" means none
		stop  pawl.StopReason
		asks  bool // b is pending
	}{
		{"none", here, "", pawl.StopAnswer, false},
		{"nothing", returns(func(x *pawl.Execution) { *x = pawl.Execution{} }), "is empty", pawl.StopFailed, true},
		{"another call", returns(func(x *pawl.Execution) { x.Call.ID = "c9" }), `"c9"`, pawl.StopFailed, true},
		{"another key", returns(func(x *pawl.Execution) { x.Key = "run/7/0" }), `"run/7/0"`, pawl.StopFailed, true},
		{"the key of the other call", returns(func(x *pawl.Execution) { x.Key = "run/1/1" }), `"run/1/1"`, pawl.StopFailed, true},
		{"another place", returns(func(x *pawl.Execution) { x.Index = -1 }), "", pawl.StopAnswer, false},
		{"another outcome", returns(func(x *pawl.Execution) { x.Outcome = "fine" }), `"fine"`, pawl.StopFailed, true},
		{"another end", returns(func(x *pawl.Execution) { x.Ends = pawl.StopPending }), `"pending"`, pawl.StopFailed, true},
		{"no part", returns(func(x *pawl.Execution) { x.Result.Parts = []llm.Part{nil} }), "a part of the type <nil>",
			pawl.StopFailed, true},
		{"a call as a part", returns(func(x *pawl.Execution) { x.Result.Parts = []llm.Part{llm.ToolCall{}} }), "llm.ToolCall",
			pawl.StopFailed, true},
		{"data that is no JSON", returns(func(x *pawl.Execution) { x.Result.Data = []byte("{{") }), "Data of its result",
			pawl.StopFailed, true},
		{"a value that is no JSON", returns(func(x *pawl.Execution) { x.Values = pawl.Values{"n": []byte("{{")} }), `"n" is not JSON`,
			pawl.StopFailed, true},
		{"no outcome", returns(func(x *pawl.Execution) { x.Outcome = "" }), `""`, pawl.StopFailed, true},
		{"unknown, no question", returns(func(x *pawl.Execution) { x.Outcome = pawl.OutcomeUnknown }), "", pawl.StopPending, true},
		{"pending, no question", returns(func(x *pawl.Execution) { x.Outcome = pawl.OutcomePending }), "", pawl.StopPending, true},
		{"a panic", func(context.Context, pawl.Task, emitter) (pawl.Execution, error) { panic("lost") },
			"it panicked: lost", pawl.StopFailed, true},
		{"the end of the goroutine", func(context.Context, pawl.Task, emitter) (pawl.Execution, error) {
			runtime.Goexit()
			return pawl.Execution{}, nil
		}, "ended the goroutine", pawl.StopFailed, true},
		{"call_completed", emits(func(*pawl.Event) {}), "emitted call_completed", pawl.StopFailed, false},
		{"an event of the other call", emits(func(e *pawl.Event) { e.Path = "run/1/1" }), `"run/1/1"`, pawl.StopFailed, false},
		{"the end of the run", emits(func(e *pawl.Event) { *e = pawl.Event{Kind: pawl.EventRunEnded, Run: "run"} }),
			"emitted run_ended", pawl.StopFailed, false},
		{"a progress", emits(func(e *pawl.Event) { e.Kind = pawl.EventProgress }), "", pawl.StopAnswer, false},

		{"no outcome arrived", fails(errors.New("connection reset")), "", pawl.StopPending, true},
		{"sent", fails(sent(delivery.Unknown)), "", pawl.StopPending, true},
		{"not sent", fails(sent(delivery.NotSent)), "", pawl.StopAnswer, false},
		{"refused", fails(sent(delivery.Refused)), "", pawl.StopAnswer, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			agent := &pawl.Agent{Model: script.New(script.Together(script.Call("b", `{}`), script.Call("a", `{}`)), script.Say("done")),
				Tools: []pawl.Toolset{says("a", "1"), says("b", "2")},
				Executor: by(func(ctx context.Context, t pawl.Task, emit emitter) (pawl.Execution, error) {
					if t.Call.Name == "b" {
						return c.b(ctx, t, emit)
					}
					return t.Do(ctx, emit), nil
				})}
			ends := 0
			res, err := pawl.Collect(agent.Stream(t.Context(), llm.User("go")), func(e pawl.Event) {
				if e.Kind == pawl.EventCallCompleted {
					ends++
				}
			})
			if res == nil || res.Stop != c.stop {
				t.Fatalf("got %+v, %v; want the stop reason %s", res, err, c.stop)
			}
			if ends != 2 {
				t.Errorf("%d calls are completed, want 2", ends)
			}
			var fault *pawl.ExecutorError
			if errors.As(err, &fault) != (c.fault != "") || fault != nil && !strings.Contains(fault.Text, c.fault) {
				t.Errorf("got the error %v, want the fault %q", err, c.fault)
			}
			if asks := len(res.Pending) == 1 && res.Pending[0].Key == "run/1/0"; asks != c.asks {
				t.Fatalf("pending: %+v; want a question about b: %v", res.Pending, c.asks)
			}
			if results := say(res.Messages[2:3]); !strings.Contains(results, "= 1\n") {
				t.Errorf("the result of a is not in the conversation: %s", results)
			}
			if !c.asks {
				return
			}

			// The answer settles the call: it is not executed again.
			agent.Executor = nil
			res, err = agent.Resume(t.Context(), res, llm.DecisionMessage(res.Pending[0].Answer("ann", llm.TextResult("it happened"))))
			if err != nil || res.Text() != "done" || res.Spent.Calls > 2 {
				t.Errorf("resumed: %+v, %v", res, err)
			}
		})
	}
}

// What the model reads of a call without an outcome depends on what the tool does, and on what is
// known.
func TestTransportFailures(t *testing.T) {
	for _, c := range []struct {
		effect    pawl.Effect
		err       error
		outcome   pawl.Outcome
		certainty delivery.Certainty
		says      string
	}{
		{pawl.EffectRead, errors.New("reset"), pawl.OutcomeError, "", "No result of the call arrived."},
		{pawl.EffectPure, errors.New("reset"), pawl.OutcomeError, "", "No result of the call arrived."},
		{pawl.EffectIdempotent, errors.New("reset"), pawl.OutcomeError, delivery.Unknown, "may have happened"},
		{pawl.EffectWrite, errors.New("reset"), pawl.OutcomeUnknown, delivery.Unknown, ""},
		{0, errors.New("reset"), pawl.OutcomeUnknown, delivery.Unknown, ""},
		{pawl.EffectWrite, delivery.NewError(delivery.NotSent, "no worker is there", nil), pawl.OutcomeError, delivery.NotSent, "Not sent: no worker is there"},
		{pawl.EffectWrite, delivery.NewError(delivery.Refused, "too many", nil), pawl.OutcomeError, delivery.Refused, "Refused before any work: too many"},
		{pawl.EffectRead, delivery.NewError(delivery.NotSent, "no worker is there", nil), pawl.OutcomeError, "", "no worker is there"},
		{pawl.EffectWrite, delivery.NewError("", "lost", nil), pawl.OutcomeUnknown, delivery.Unknown, ""},
	} {
		act := says("act", "done")
		act.Effect = c.effect
		agent := &pawl.Agent{Model: script.New(script.Call("act", `{}`), script.Say("ok")), Tools: []pawl.Toolset{act},
			Executor: by(func(_ context.Context, t pawl.Task, _ emitter) (pawl.Execution, error) {
				return t.RunRemote(func(pawl.Task) (pawl.Execution, error) { return pawl.Execution{}, c.err })
			})}
		res, err := runtest.Ended(agent.Run(t.Context(), llm.User("go")))
		x := res.Steps[0].Executions[0]
		same := x.Outcome == c.outcome && x.Certainty == c.certainty && strings.Contains(x.Result.Text(), c.says)
		if err != nil || !same {
			t.Errorf("effect %v, %v: got %v, %s, %q, %q", c.effect, c.err, err, x.Outcome, x.Certainty, x.Result.Text())
		}
		counted := 1
		if c.certainty == delivery.NotSent || c.certainty == delivery.Refused || strings.Contains(c.err.Error(), "worker") {
			counted = 0
		}
		if res.Spent.Calls != counted {
			t.Errorf("effect %v, %v: %d calls are counted, want %d", c.effect, c.err, res.Spent.Calls, counted)
		}
	}
}

// A call that had no effect stays open if its Executor returns an error when the run has ended.
func TestTransportFailsAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		effect pawl.Effect
		err    error
		asks   bool
	}{
		{pawl.EffectRead, errors.New("reset"), false},
		{pawl.EffectWrite, errors.New("reset"), true},
		{pawl.EffectWrite, delivery.NewError(delivery.NotSent, "no worker is there", nil), false},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		act := says("act", "done")
		act.Effect = c.effect
		agent := &pawl.Agent{Model: script.New(script.Call("act", `{}`), script.Say("ok")), Tools: []pawl.Toolset{act},
			Executor: by(func(context.Context, pawl.Task, emitter) (pawl.Execution, error) {
				cancel(errors.New("the process ends"))
				return pawl.Execution{}, c.err
			})}
		res, err := runtest.Ended(agent.Run(ctx, llm.User("go")))
		if res == nil || res.Stop != pawl.StopCancelled || len(res.Calls()) != 1 || len(res.Pending) == 1 != c.asks {
			t.Errorf("effect %v, %v: got %+v, %v", c.effect, c.err, res, err)
		}
	}
}

// A fault in the execution of a nested call ends the run too. The tool around it cannot hide it.
func TestExecutorFaultsInside(t *testing.T) {
	outer := does("outer", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		_, err := pawl.InvocationFrom(ctx).Do(ctx, llm.ToolCall{Name: "a", Args: []byte(`{}`)})
		if err == nil {
			t.Error("Do returns no error")
		}
		return llm.TextResult("fine"), nil
	})
	outer.Effect = pawl.EffectCompose
	agent := &pawl.Agent{Model: script.New(script.Call("outer", `{}`)), Tools: []pawl.Toolset{outer, says("a", "1")},
		Executor: by(func(ctx context.Context, t pawl.Task, emit emitter) (pawl.Execution, error) {
			if t.Call.Name == "a" {
				return pawl.Execution{}, nil
			}
			return t.Do(ctx, emit), nil
		})}
	res, err := agent.Run(t.Context(), llm.User("go"))
	var fault *pawl.ExecutorError
	if !errors.As(err, &fault) || res.Stop != pawl.StopFailed {
		t.Errorf("got %+v, %v", res, err)
	}
}

// An Executor does not return when the run is interrupted. Ten seconds later the run ends without
// it. Each call is completed once, also if Do returns at this moment. A stored outcome stays, a
// write that was begun becomes a question, and a call that was not begun stays open.
func TestStuckExecutor(t *testing.T) {
	const grace = 10 * time.Second
	for _, late := range []time.Duration{grace, grace + 1, time.Minute} {
		for _, cause := range []error{errors.New("the process ends"), pawl.ErrCancelled} {
			synctest.Test(t, func(t *testing.T) {
				testStuckExecutor(t, late, grace, cause)
			})
		}
	}
}

func testStuckExecutor(t *testing.T, late, grace time.Duration, cause error) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stored := func(_ context.Context, tasks []pawl.Task) ([]*pawl.Execution, func()) {
		x := pawl.Execution{Key: tasks[0].Key, Call: tasks[0].Call, Outcome: pawl.OutcomeOK, Result: llm.TextResult("stored")}
		x.Result.CallID = x.Call.ID
		all := make([]*pawl.Execution, len(tasks))
		all[0] = &x
		return all, func() {}
	}
	ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: &pawl.Engine{Begin: stored}})

	tool := func(name string, effect pawl.Effect) *pawl.Tool {
		made := says(name, "done")
		made.Effect = effect
		return made
	}
	var began atomic.Int32
	agent := &pawl.Agent{
		Model: script.New(script.Together(script.Call("old", `{}`), script.Call("read", `{}`), script.Call("pay", `{}`),
			script.Call("send", `{}`), script.Call("none", `{}`)), script.Say("done")),
		Tools: []pawl.Toolset{tool("old", pawl.EffectWrite), tool("read", pawl.EffectRead), tool("pay", pawl.EffectUnstated),
			tool("send", pawl.EffectWrite)},
		Executor: by(func(_ context.Context, c pawl.Task, emit emitter) (pawl.Execution, error) {
			if began.Add(1) == 3 {
				cancel(cause)
			}
			time.Sleep(late)
			emit(pawl.Event{Kind: pawl.EventProgress, Run: c.Run, Step: c.Step, Path: c.Key})
			return pawl.Execution{}, errors.New("no outcome arrived")
		}),
		Parallel: pawl.Parallel{Limit: 3},
	}
	start := time.Now()
	completed := map[llm.Key]int{}
	res, _ := pawl.Collect(agent.Stream(ctx, llm.User("go")), func(e pawl.Event) {
		switch {
		case e.Kind == pawl.EventCallCompleted:
			completed[e.Path]++
		case e.Kind == pawl.EventProgress && completed[e.Path] > 0:
			t.Errorf("an event of %s after its end", e.Path)
		}
	})

	if took := time.Since(start); took > grace {
		t.Errorf("the run took %v", took)
	}
	want := map[llm.Key]int{"run/1/0": 1, "run/1/1": 1, "run/1/2": 1, "run/1/3": 1, "run/1/4": 1}
	if diff := cmp.Diff(completed, want); diff != "" {
		t.Errorf("completed calls (-got +want):\n%s", diff)
	}
	if first := res.Steps[0].Executions[0]; first.Result.Text() != "stored" {
		t.Errorf("the stored outcome is now %+v", first)
	}
	pay := res.Steps[0].Executions[2]
	if pay.Certainty != delivery.Unknown {
		t.Errorf("the write that was begun: %+v", pay)
	}
	asks := len(res.Pending) > 0 && res.Pending[0].Key == "run/1/2" && res.Pending[0].Outcome == pawl.OutcomeUnknown
	if asks != (cause != pawl.ErrCancelled) {
		t.Errorf("pending: %+v", res.Pending)
	}
	send := res.Steps[0].Executions[3]
	if late > grace && (send.Attempts > 0 || began.Load() != 3) {
		t.Errorf("a call began after the end: %+v", send)
	}
	time.Sleep(2 * time.Minute) // the Executor returns
}

// Events that an Executor emits after Do has returned are dropped.
func TestLateEventsOfAnExecutor(t *testing.T) {
	late := make(chan struct{})
	agent := &pawl.Agent{Model: script.New(script.Together(script.Call("a", `{}`), script.Call("b", `{}`)), script.Say("done")),
		Tools: []pawl.Toolset{says("a", "1"), says("b", "2")},
		Executor: by(func(ctx context.Context, t pawl.Task, emit emitter) (pawl.Execution, error) {
			x := t.Do(ctx, emit)
			if t.Call.Name == "b" {
				<-late
				return x, nil
			}
			go func() {
				defer close(late)
				for range 100 {
					emit(pawl.Event{Kind: pawl.EventProgress, Run: t.Run, Step: t.Step, Path: t.Key, Text: "late"})
				}
			}()
			return x, nil
		})}
	ended := false
	_, err := pawl.Collect(agent.Stream(t.Context(), llm.User("go")), func(e pawl.Event) {
		if e.Path == "run/1/0" && ended {
			t.Errorf("%s of a call that has ended", e.Kind)
		}
		ended = ended || e.Path == "run/1/0" && e.Kind == pawl.EventCallCompleted
	})
	if err != nil {
		t.Error(err)
	}
}

// The result of a call names its call, also if the Executor returned none.
func TestExecutionWithoutResult(t *testing.T) {
	agent := &pawl.Agent{Model: script.New(script.Call("a", `{}`), script.Say("done")), Tools: []pawl.Toolset{says("a", "1")},
		Executor: by(func(_ context.Context, t pawl.Task, _ emitter) (pawl.Execution, error) {
			return pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeOK}, nil
		})}
	res, err := agent.Run(t.Context(), llm.User("go"))
	if err != nil || len(llm.Check(res.Messages)) > 0 {
		t.Errorf("%v; the conversation has the faults %+v", err, llm.Check(res.Messages))
	}
}

// A Model that breaks its contract answers nothing: the run fails, and executes none of the calls
// of the reply.
func TestModelFaults(t *testing.T) {
	called := func(i int) llm.Delta {
		return llm.Delta{Index: i, Part: llm.ToolCall{ID: "c1", Name: "a", Args: []byte(`{}`)}, Done: true}
	}
	said := func(i int) llm.Delta { return llm.Delta{Index: i, Part: llm.Text{Text: "It is paid."}, Done: true} }
	end := llm.Delta{Finish: llm.FinishReasonStop}
	for _, c := range []struct {
		name   string
		deltas []llm.Delta
		fault  string // "" means none
	}{
		{"none", []llm.Delta{said(0), end}, ""},
		{"no finish", []llm.Delta{said(0)}, "without a finish reason"},
		{"nothing", nil, "without a finish reason"},
		{"an unknown finish", []llm.Delta{said(0), {Finish: "done"}}, `unknown finish reason "done"`},
		{"an unknown finish after a call", []llm.Delta{called(0), {Finish: "done"}}, `unknown finish reason "done"`},
		{"a part after the end", []llm.Delta{said(0), end, called(1)}, "after the reply had ended"},
		{"two ends", []llm.Delta{said(0), end, end}, "after the reply had ended"},
		{"a part skipped", []llm.Delta{said(1), end}, "part 0 was next"},
		{"a part of another kind", []llm.Delta{{Part: llm.Text{Text: "a"}}, called(0), end}, "changed from llm.Text"},
		{"a result of a call", []llm.Delta{{Part: llm.ToolResult{CallID: "c1"}, Done: true}, end}, "cannot hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			a := does("a", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				ran++
				return llm.TextResult("done"), nil
			})
			model := modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					for _, d := range c.deltas {
						if !yield(d, nil) {
							return
						}
					}
				}
			})
			res, err := (&pawl.Agent{Model: model, Tools: []pawl.Toolset{a}}).Run(t.Context(), llm.User("go"))
			switch {
			case c.fault == "" && (err != nil || res.Text() != "It is paid."):
				t.Errorf("%+v, %v", res, err)
			case c.fault == "":
			case err == nil || res.Stop != pawl.StopFailed || res.Answer != nil || ran > 0:
				t.Errorf("%+v, %v, %d calls ran", res, err, ran)
			case !strings.Contains(err.Error(), c.fault):
				t.Errorf("the error is %q, want %q", err, c.fault)
			}
		})
	}
}

// A Runner that breaks its contract has no plain answer: Collect reports an end without a Result,
// two ends, and none.
func TestRunnerFaults(t *testing.T) {
	res := &pawl.Result{Stop: pawl.StopAnswer, Answer: &pawl.Answer{Text: "It is paid."}}
	begin := pawl.Event{Kind: pawl.EventRunStarted, Run: "run"}
	end := pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: res}
	nested := pawl.Event{Kind: pawl.EventRunEnded, Run: "run/1/0/clerk", Result: res}
	for _, c := range []struct {
		name   string
		events []pawl.Event
		fault  string // "" means none
	}{
		{"none", []pawl.Event{begin, nested, end}, ""},
		{"nothing", nil, "without the end"},
		{"no end", []pawl.Event{begin, nested}, "without the end"},
		{"two ends", []pawl.Event{begin, end, end}, "twice"},
		{"no result", []pawl.Event{begin, {Kind: pawl.EventRunEnded, Run: "run"}}, "no Result"},
	} {
		_, err := pawl.Collect(func(yield func(pawl.Event, error) bool) {
			for _, e := range c.events {
				if !yield(e, nil) {
					return
				}
			}
		}, nil)
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: the error is %v, want %q", c.name, err, c.fault)
		}
	}
}
