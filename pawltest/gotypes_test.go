package pawltest_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/gotypes"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// The schema of each Go type reaches each provider in a form that it accepts, and both the
// arguments of a tool and an answer come back as the value that the model meant. Three documents
// that do not fit are sent back before.
func TestGoTypesOnEveryWire(t *testing.T) {
	for _, w := range wires {
		t.Run(w.api, func(t *testing.T) {
			r := rand.New(rand.NewPCG(15, 16))
			for _, s := range gotypes.All() {
				right := s.Random(r)
				var calls, answers []script.Turn
				for _, doc := range append(s.Refused(), string(right)) {
					calls = append(calls, script.Call(s.Echo.Name, doc))
					answers = append(answers, script.Say(doc))
				}
				calls = append(calls, script.Say("done"))

				m, _ := w.on(t, script.New(calls...), pawltest.SimulatorOptions{})
				a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{s.Echo}, Limits: pawl.Limits{LoopThreshold: -1}}
				res, err := a.Run(t.Context(), llm.User("go"))
				if err != nil {
					t.Errorf("%s: %v\n%s", s.Name, err, s.Schema)
					continue
				}
				for i, step := range res.Steps[:4] {
					if len(step.Executions) == 0 {
						t.Errorf("%s, call %d: not executed", s.Name, i)
						continue
					}
					x := step.Executions[0]
					want := pawl.OutcomeInvalid
					if i == 3 {
						want = pawl.OutcomeOK
					}
					if x.Outcome != want || i == 3 && !bytes.Equal(x.Result.Data, right) {
						t.Errorf("%s, call %d: %s with %s, want %s", s.Name, i, x.Outcome, x.Result.Text(), right)
					}
				}

				m, _ = w.on(t, script.New(answers...), pawltest.SimulatorOptions{})
				a = &pawl.Agent{Model: m, Limits: pawl.Limits{Corrections: 3}}
				got, res, err := s.Into(t.Context(), a, "go")
				if err != nil || !bytes.Equal(got, right) || res.Spent.Corrections != 3 {
					t.Errorf("%s: got %s, %v, want %s", s.Name, got, err, right)
				}
			}
		})
	}
}
