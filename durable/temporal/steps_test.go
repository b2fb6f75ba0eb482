package temporal

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// stepped are agents whose runs have each form of step.
func stepped() map[string]*pawl.Agent {
	read := func() *pawl.Tool { return step(pawl.EffectRead, new(atomic.Int64)) }
	ends := pawl.Func("ends", "ends the run", func(context.Context, struct{}) (string, error) {
		return "", pawl.FinishError(llm.TextResult("over"))
	})
	two := script.Together(script.Call("step", map[string]any{"n": 1}), script.Call("step", map[string]any{"n": 2}))
	return map[string]*pawl.Agent{
		"an answer":     {Model: script.New(script.Say("done"))},
		"two calls":     {Model: script.New(two, script.Say("done")), Tools: []pawl.Toolset{read()}},
		"refused calls": {Model: script.New(script.Call("step", `{"n":"x"}`), script.Call("none", nil), script.Say("done")), Tools: []pawl.Toolset{read()}},
		"a correction": {Model: script.New(script.Say("no JSON"), script.Say(`{"n":1}`)),
			Output: pawl.SchemaFor[struct{ N int }](), Limits: pawl.Limits{Corrections: 1}},
		"calls that are returned": {Model: script.New(two), Tools: []pawl.Toolset{read()}, Limits: pawl.Limits{Rounds: pawl.NoRounds}},
		"a tool that ends it":     {Model: script.New(script.Call("ends", nil)), Tools: []pawl.Toolset{ends}},
		"a failed request":        {Model: script.New(script.Call("step", map[string]any{"n": 1})), Tools: []pawl.Toolset{read()}},
		"nested runs":             nested(pawl.Limits{}, steps(3), read()),
		"several histories":       {Model: script.New(steps(30)...), Tools: []pawl.Toolset{read()}, Limits: pawl.Limits{Rounds: 40}},
	}
}

// shape returns what a step has on every engine.
func shape(s *pawl.Step) string {
	text := fmt.Sprintf("failed %t; ", s.Error != "")
	if s.Response != nil {
		text += fmt.Sprintf("%q, %d calls, %d tokens; ", s.Response.Message.Text(), len(s.Response.Message.Calls()), s.Response.Usage.Total())
	}
	for i := range s.Executions {
		x := &s.Executions[i]
		text += fmt.Sprintf("%s %s %q; ", x.Key, x.Outcome, x.Result.Text())
	}
	return text
}

// observed returns the steps of a run: in its events, and in its Result.
func observed(ctx context.Context, r pawl.Runner) (events, steps []string, err error) {
	res, err := runtest.Ended(pawl.Collect(r.Stream(ctx, ask...), func(e pawl.Event) {
		if e.Kind == pawl.EventStep {
			events = append(events, fmt.Sprint(e.Run, " ", e.Step, " ", e.Outcomes, " ", shape(e.Completed)))
		}
	}))
	if res != nil {
		for i := range res.Steps {
			steps = append(steps, shape(&res.Steps[i]))
		}
	}
	return events, steps, err
}

// The steps of a run on a cluster equal the steps in memory, as events and in the Result. The
// history has no steps.
func TestSteps(t *testing.T) {
	t.Parallel()
	eng, err := dial(cluster(t), "steps-"+filepath.Base(t.TempDir()), new(memory))
	if err != nil {
		t.Fatal(err)
	}
	eng.Events = 60
	w := inProcess(t, eng, nil, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	inMemory := stepped()
	for name, a := range stepped() {
		if err := w.Add(t.Context(), name, a); err != nil {
			t.Fatal(err)
		}
	}

	for name, a := range inMemory {
		t.Run(name, func(t *testing.T) {
			wantEvents, wantSteps, memErr := observed(ctx, a)
			id := filepath.Base(t.TempDir()) + name
			gotEvents, gotSteps, err := observed(ctx, eng.Runner(id, name))
			if (err == nil) != (memErr == nil) {
				t.Errorf("%v, in memory %v", err, memErr)
			}
			if diff := cmp.Diff(wantEvents, gotEvents); diff != "" {
				t.Errorf("the events (-memory +cluster):\n%s", diff)
			}
			if diff := cmp.Diff(wantSteps, gotSteps); diff != "" {
				t.Errorf("the steps (-memory +cluster):\n%s", diff)
			}

			res, _ := eng.Runner(id, name).Run(ctx)
			if len(res.Steps) != len(wantSteps) {
				t.Errorf("Run has %d steps, want %d", len(res.Steps), len(wantSteps))
			}
			s, err := eng.State(ctx, id)
			if err != nil || s.Result.Steps != nil {
				t.Errorf("the history has %d steps, %v", len(s.Result.Steps), err)
			}
		})
	}
}
