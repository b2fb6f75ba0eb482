package pawl_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// The run checks its Executor: a fault stops it as failed, the other calls have their results, and
// a write without an execution is pending, since it may have taken effect. A question that is
// missing is added.
func TestExecutorFaults(t *testing.T) {
	type yielder = func(pawl.Event) bool
	twice := func(e pawl.Event, yield yielder) bool {
		if !yield(e) {
			return false
		}
		return yield(e)
	}
	for _, c := range []struct {
		name string

		// change handles the call_completed of the first call, which is of b.
		change func(e pawl.Event, yield yielder) bool
		fault  string // "" means none
		stop   pawl.StopReason
		asks   bool // b is pending
	}{
		{"none", func(e pawl.Event, yield yielder) bool { return yield(e) }, "", pawl.StopAnswer, false},
		{"lost", func(e pawl.Event, yield yielder) bool { return true }, "not completed", pawl.StopFailed, true},
		{"twice", twice, "completed twice", pawl.StopFailed, false},
		{"another call", edited(func(x *pawl.Execution) { x.Call.ID = "c9" }), `"c9"`, pawl.StopFailed, true},
		{"another key", edited(func(x *pawl.Execution) { x.Key = "run/7/0" }), "no task has its key", pawl.StopFailed, true},
		{"another place", edited(func(x *pawl.Execution) { x.Index = -1 }), "", pawl.StopAnswer, false},
		{"another outcome", edited(func(x *pawl.Execution) { x.Outcome = "fine" }), `"fine"`, pawl.StopFailed, true},
		{"no outcome", edited(func(x *pawl.Execution) { x.Outcome = "" }), `""`, pawl.StopFailed, true},
		{"unknown, no question", edited(func(x *pawl.Execution) { x.Outcome = pawl.OutcomeUnknown }), "", pawl.StopPending, true},
		{"pending, no question", edited(func(x *pawl.Execution) { x.Outcome = pawl.OutcomePending }), "", pawl.StopPending, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			agent := &pawl.Agent{Model: script.New(script.Together(script.Call("b", `{}`), script.Call("a", `{}`)), script.Say("done")),
				Tools: []pawl.Toolset{says("a", "1"), says("b", "2")},
				Executor: executorFunc(func(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
					return func(yield func(pawl.Event) bool) {
						for e := range (pawl.Parallel{}).Execute(ctx, tasks) {
							if e.Execution != nil && e.Execution.Call.Name == "b" {
								x := *e.Execution
								e.Execution = &x
								if !c.change(e, yield) {
									return
								}
							} else if !yield(e) {
								return
							}
						}
					}
				})}
			res, err := agent.Run(t.Context(), llm.User("go"))
			if res == nil || res.Stop != c.stop {
				t.Fatalf("got %+v, %v; want the stop reason %s", res, err, c.stop)
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

// edited returns a change of the execution of an event.
func edited(change func(*pawl.Execution)) func(pawl.Event, func(pawl.Event) bool) bool {
	return func(e pawl.Event, yield func(pawl.Event) bool) bool {
		change(e.Execution)
		return yield(e)
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
		Executor: executorFunc(func(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
			return func(yield func(pawl.Event) bool) {
				for e := range (pawl.Parallel{}).Execute(ctx, tasks) {
					if e.Execution != nil && e.Execution.Call.Name == "a" {
						continue
					}
					if !yield(e) {
						return
					}
				}
			}
		})}
	res, err := agent.Run(t.Context(), llm.User("go"))
	var fault *pawl.ExecutorError
	if !errors.As(err, &fault) || res.Stop != pawl.StopFailed {
		t.Errorf("got %+v, %v", res, err)
	}
}

// An execution that belongs to no task ends the run, and is the fault of no task: their executions
// and results stay as they are.
func TestExecutionOfNoTask(t *testing.T) {
	agent := &pawl.Agent{Model: script.New(script.Together(script.Call("b", `{}`), script.Call("a", `{}`)), script.Say("done")),
		Tools: []pawl.Toolset{says("a", "1"), says("b", "2")},
		Executor: executorFunc(func(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
			return func(yield func(pawl.Event) bool) {
				for e := range (pawl.Parallel{}).Execute(ctx, tasks) {
					if !yield(e) {
						return
					}
				}
				yield(tasks[0].Completed(pawl.Execution{Key: "run/7/0", Outcome: pawl.OutcomeOK}))
			}
		})}
	res, err := agent.Run(t.Context(), llm.User("go"))
	var fault *pawl.ExecutorError
	if !errors.As(err, &fault) || fault.Key != "run/7/0" || res.Stop != pawl.StopFailed {
		t.Fatalf("got %+v, %v; want a fault at run/7/0", res, err)
	}
	for _, x := range res.Steps[0].Executions {
		if x.Outcome != pawl.OutcomeOK || x.Ends != "" || x.Err() != nil {
			t.Errorf("the execution of %s is %+v", x.Call.Name, x)
		}
	}
	if results := say(res.Messages[2:3]); !strings.Contains(results, "= 1\n") || !strings.Contains(results, "= 2\n") {
		t.Errorf("the results are not in the conversation: %s", results)
	}
}

// The result of a call names its call, also if the Executor returned none.
func TestExecutionWithoutResult(t *testing.T) {
	agent := &pawl.Agent{Model: script.New(script.Call("a", `{}`), script.Say("done")), Tools: []pawl.Toolset{says("a", "1")},
		Executor: executorFunc(func(_ context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
			return func(yield func(pawl.Event) bool) {
				for _, t := range tasks {
					if !yield(t.Completed(pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeOK})) {
						return
					}
				}
			}
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
