package misuse_test

// run_test.go: mistakes with runs, their events and their results.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// asked runs an agent whose tool pay waits for an approval. paid counts its executions.
func asked(t *testing.T, paid *int) (*pawl.Agent, *pawl.Result) {
	pay := pawl.Func("pay", "Pays.", func(context.Context, none) (string, error) { *paid++; return "paid", nil })
	a := &pawl.Agent{
		Model:      calls("pay"),
		Tools:      []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}
	res, err := a.Run(t.Context(), ask)
	if res == nil || len(res.Pending) != 1 {
		t.Fatal(err)
	}
	return a, res
}

var results = []row{
	{"Resume of no Result", func(t *testing.T) error {
		return answered((&pawl.Agent{Model: says("x")}).Resume(t.Context(), nil, ask))
	}, ""}, // it is Run
	{"context that was cancelled", func(t *testing.T) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := (&pawl.Agent{Model: says("x")}).Run(ctx, ask)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return err
	}, "cancelled: interrupted: context canceled"},
	{"error that is ignored", func(t *testing.T) error {
		m := script.New(script.Fail(&llm.ProviderError{Code: llm.CodeInvalidRequest}))
		res, err := (&pawl.Agent{Model: m}).Run(t.Context(), ask)
		if res.Text() != "" {
			t.Errorf("the text is %q", res.Text())
		}
		return err
	}, "run/0/model:"},
	{"stream that is not read", func(t *testing.T) error {
		m := says("x")
		_ = (&pawl.Agent{Model: m}).Stream(t.Context(), ask)
		if n := len(m.Requests()); n > 0 {
			return fmt.Errorf("%d requests were sent", n)
		}
		return nil
	}, ""}, // a sequence starts when it is read
	{"stream that is read twice", func(t *testing.T) error {
		m := says("one", "two")
		stream := (&pawl.Agent{Model: m}).Stream(t.Context(), ask)
		_, _ = pawl.Collect(stream, nil)
		_, err := pawl.Collect(stream, nil)
		if n := len(m.Requests()); n != 1 {
			t.Errorf("%d requests were sent", n)
		}
		return err
	}, "the events of this run were read before; call Stream or ResumeStream for another run"},
	{"break out of a stream", func(t *testing.T) error {
		ended := make(chan struct{})
		tool := pawl.Func("a", "Waits.", func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			close(ended)
			return "", ctx.Err()
		})
		for e := range (&pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{tool}}).Stream(t.Context(), ask) {
			if e.Kind == pawl.EventCallStarted {
				break
			}
		}
		<-ended
		return nil
	}, ""}, // the run ends
	{"panic in an observer", func(t *testing.T) error {
		r := observe.Sync(&pawl.Agent{Model: says("x")}, func(pawl.Event) { panic("observer") })
		return answered(pawl.Collect(r.Stream(t.Context(), ask), nil))
	}, ""}, // an observer does not change its run
	{"Result that is resumed twice", func(t *testing.T) error {
		paid := 0
		a, res := asked(t, &paid)
		yes := llm.DecisionMessage(res.Pending[0].Approve("tom"))
		if _, err := a.Resume(t.Context(), res, yes); err != nil {
			t.Error(err)
		}
		_, err := a.Resume(t.Context(), res, yes)
		if paid != 1 {
			t.Errorf("it paid %d times", paid)
		}
		return err
	}, "belong to an earlier Resume; continue with the Result that it returned"},
	{"Resume without the decision", func(t *testing.T) error {
		paid := 0
		a, res := asked(t, &paid)
		return failed(a.Resume(t.Context(), res, ask))
	}, "(pay) still waits; answer or deny it before a new message"},
	{"decision about another question", func(t *testing.T) error {
		paid := 0
		a, res := asked(t, &paid)
		guessed := llm.Decision{Key: res.Pending[0].Key, Approve: true, By: "tom"}
		return failed(a.Resume(t.Context(), res, llm.DecisionMessage(guessed)))
	}, "the decision by tom answers another question"},
	{"agent that is changed during a run", func(t *testing.T) error {
		a := &pawl.Agent{Instructions: "Be brief.", Tools: []pawl.Toolset{does("a")}}
		m := script.New(script.Func(func(*llm.Request) script.Turn {
			a.Instructions = "Be long."
			a.Tools = nil
			return script.Call("a", `{}`)
		}), script.Say("Done."))
		a.Model = m
		err := executed(t, a, pawl.OutcomeOK)
		if text := m.Requests()[1].Messages[0].Text(); text != "Be brief." {
			return fmt.Errorf("the run goes on with %q", text)
		}
		return err
	}, ""}, // a run has the agent as it was at its start
	{"message to a run that has ended", func(t *testing.T) error {
		steering := new(pawl.Steering)
		ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: steering})
		if _, err := (&pawl.Agent{Model: says("x")}).Run(ctx, ask); err != nil {
			t.Error(err)
		}
		return steering.Steer(t.Context(), llm.User("late"))
	}, "the run has ended"},
	{"time limit and a tool that ignores it", func(t *testing.T) error {
		tool := does("a")
		tool.Timeout = -1
		tool.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			time.Sleep(time.Second)
			return llm.TextResult("late"), nil
		}
		a := &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{tool}, Limits: pawl.Limits{Time: 100 * time.Millisecond}}
		return failed(a.Run(t.Context(), ask))
	}, "the time of 100ms is used up; raise Limits.Time"},
}

// lying is an Executor that returns what it makes of a task.
type lying func(pawl.Task) (pawl.Execution, error)

func (l lying) Do(_ context.Context, t pawl.Task, _ func(pawl.Event)) (pawl.Execution, error) {
	return l(t)
}

// executes runs a write by an Executor, and returns the error of the run. Its calls must have
// results, or wait.
func executes(do lying) func(*testing.T) error {
	return func(t *testing.T) error {
		pay := does("pay")
		pay.Effect = pawl.EffectWrite
		a := &pawl.Agent{Model: calls("pay"), Tools: []pawl.Toolset{pay}, Executor: do}
		res, err := a.Run(t.Context(), ask)
		if res != nil && len(res.Calls()) != len(res.Pending) {
			b, _ := json.Marshal(res.Messages) // for the text
			t.Errorf("a call has no result and no question: %s", b)
		}
		return err
	}
}

var executors = []row{
	{"Executor that says unknown", executes(func(t pawl.Task) (pawl.Execution, error) {
		return pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeUnknown}, nil
	}), "calls wait for an answer: pay"},
	{"Executor that says pending without a question", executes(func(t pawl.Task) (pawl.Execution, error) {
		return pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomePending}, nil
	}), "calls wait for an answer: pay"},
	{"Executor that returns a zero Execution", executes(func(pawl.Task) (pawl.Execution, error) {
		return pawl.Execution{}, nil
	}), "executor: call"},
	{"Executor that returns the execution of another call", executes(func(t pawl.Task) (pawl.Execution, error) {
		return pawl.Execution{Key: "run/9/9", Call: t.Call, Outcome: pawl.OutcomeOK}, nil
	}), "executor: call"},
}
