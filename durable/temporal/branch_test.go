package temporal

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// nested is an agent that contains an agent that contains an agent. The innermost has tools.
func nested(l pawl.Limits, turns []script.Turn, tools ...pawl.Toolset) *pawl.Agent {
	in := &pawl.Agent{Name: "inner", Model: script.New(turns...), Tools: tools, Limits: pawl.Limits{Rounds: 300},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	mid := &pawl.Agent{Name: "middle", Model: script.New(script.Call("inner", map[string]any{"task": "go"}), script.Say("middle is done")),
		Tools: []pawl.Toolset{in.Tool("the innermost")}}
	return &pawl.Agent{Name: "outer", Model: script.New(script.Call("middle", map[string]any{"task": "go"}), script.Say("done")),
		Tools: []pawl.Toolset{mid.Tool("the one between")}, Limits: l}
}

// children returns the IDs of the child workflows of e in the order of their start.
func children(e *env) *[]string {
	var ids []string
	e.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
		ids = append(ids, info.WorkflowExecution.ID)
	})
	return &ids
}

// Runs within calls are child workflows at any depth. Their questions reach the outermost run, and
// the answers are passed down. The result equals the result in memory.
func TestBranches(t *testing.T) {
	var did atomic.Int64
	form := &pawl.Tool{Name: "form", Passive: true}
	turns := []script.Turn{script.Together(script.Call("step", map[string]any{"n": 1}), script.Call("form", nil)),
		script.Call("step", map[string]any{"n": 2}), script.Say("inner is done")}
	e := start(t, nested(pawl.Limits{}, turns, step(pawl.EffectWrite, &did), form))
	ids, asked := children(e), []llm.Key{}
	e.tick = func() error {
		s, err := e.state()
		if err != nil || !s.Waits {
			return err
		}
		w := s.Pending[0]
		asked = append(asked, w.Key)
		if w.Passive {
			res := llm.TextResult("filled in")
			e.SignalWorkflow(signalResult, llm.Decision{Key: w.Key, By: "me", Result: &res})
			return nil
		}
		wrong := w.Approve("me")
		wrong.Digest = "another"
		e.updateThen(updateDecide, string(w.Key)+" wrong", []llm.Decision{wrong}, func(err error) {
			if err == nil || !refusedAnswer(err) {
				t.Errorf("an answer to another question gave %v", err)
			}
		})
		return e.update(updateDecide, string(w.Key), []llm.Decision{w.Approve("me")})
	}
	out, err := e.run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"run-1/run/1/0/middle", "run-1/run/1/0/middle/1/0/inner"}, *ids); diff != "" {
		t.Errorf("child workflows (-want +got):\n%s", diff)
	}
	at := llm.Key("run/1/0/middle/1/0/inner/")
	if diff := cmp.Diff([]llm.Key{at + "1/0", at + "1/1", at + "2/0"}, asked); diff != "" {
		t.Errorf("asked at the outermost (-want +got):\n%s", diff)
	}
	if s := out.Result.Spent; out.Result.Text() != "done" || did.Load() != 2 || s.Requests != 7 || s.Calls != 4 {
		t.Errorf("it says %q; %d steps were taken, %+v spent", out.Result.Text(), did.Load(), s)
	}
}

// The limits of a run include the runs within its calls, as in memory. After a limit is reached
// within a call, further requests reach it again in the outermost run.
func TestBranchLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		pawl.Limits
	}{{"none", pawl.Limits{}}, {"calls", pawl.Limits{Calls: 4}}, {"tokens", pawl.Limits{Tokens: 400}}, {"few tokens", pawl.Limits{Tokens: 40}}} {
		t.Run(c.name, func(t *testing.T) {
			var did, want atomic.Int64
			a := nested(c.Limits, steps(6), step(pawl.EffectRead, &want))
			memory, err := runtest.Ended(a.Run(t.Context(), ask...))
			if err != nil {
				t.Fatal(err)
			}
			out, err := start(t, nested(c.Limits, steps(6), step(pawl.EffectRead, &did))).run(input{Messages: ask})
			if err != nil {
				t.Fatal(err)
			}
			memory.Steps = nil
			if diff := cmp.Diff(text(t, memory), text(t, out.Result)); diff != "" {
				t.Errorf("the results differ (-memory +here):\n%s", diff)
			}
			if did.Load() != want.Load() {
				t.Errorf("%d steps were taken, %d in memory", did.Load(), want.Load())
			}
		})
	}
}

// A run within a call ends with the enclosing run, for the same cause, and its calls are answered
// accordingly.
func TestBranchEnds(t *testing.T) {
	for how, stop := range map[string]pawl.StopReason{"signal": pawl.StopCancelled, "cluster": pawl.StopCancelled, "time": pawl.StopLimit} {
		t.Run(how, func(t *testing.T) {
			var l pawl.Limits
			if how == "time" {
				l.Time = time.Hour
			}
			form := &pawl.Tool{Name: "form", Passive: true}
			e := start(t, nested(l, []script.Turn{script.Call("form", nil), script.Say("never")}, form))
			e.tick = func() error {
				s, err := e.state()
				if err != nil || !s.Waits {
					return err
				}
				switch how {
				case "signal":
					e.SignalWorkflow(signalCancel, nil)
				case "cluster":
					e.CancelWorkflow()
				}
				return nil
			}
			out, err := e.run(input{Messages: ask})
			if err != nil {
				t.Fatal(err)
			}
			v, err := e.QueryWorkflow(queryExport)
			if err != nil {
				t.Fatal(err)
			}
			var x exported
			if err := v.Get(&x); err != nil {
				t.Fatal(err)
			}
			if out.Result.Stop != stop || len(x.Replies) != 3 || len(x.Pending) > 0 {
				t.Errorf("stopped by %s (%s) with %d replies, %d calls open", out.Result.Stop, out.Result.Cause, len(x.Replies), len(x.Pending))
			}
			for _, c := range x.Calls {
				if strings.HasSuffix(string(c.Key), "inner/1/0") && stop == pawl.StopCancelled &&
					c.Execution.Outcome != pawl.OutcomeCancelled {
					t.Errorf("the innermost call ended as %s", c.Execution.Outcome)
				}
			}
		})
	}
}

// The history of a run has only the start and the end of the runs within its calls.
func TestBranchHistories(t *testing.T) {
	var did atomic.Int64
	e := start(t, nested(pawl.Limits{}, steps(60), step(pawl.EffectRead, &did)))
	activities := map[string]int{}
	e.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, _ error) {
		activities[info.WorkflowExecution.ID]++
	})
	if _, err := e.run(input{Messages: ask}); err != nil {
		t.Fatal(err)
	}
	// The activities of the outermost workflow include the description of the agents.
	want := map[string]int{"run-1": 3, "run-1/run/1/0/middle": 2, "run-1/run/1/0/middle/1/0/inner": 121}
	if diff := cmp.Diff(want, activities); diff != "" {
		t.Errorf("activities by workflow (-want +got):\n%s", diff)
	}
}
