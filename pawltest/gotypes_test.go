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
// arguments of a tool and an answer come back as the value that the model meant. A document that
// does not fit is sent back.
func TestGoTypesOnEveryWire(t *testing.T) {
	for _, w := range wires {
		t.Run(w.api, func(t *testing.T) {
			r := rand.New(rand.NewPCG(15, 16))
			for _, s := range gotypes.All() {
				right := s.Random(r)
				calls := script.New(script.Call(s.Echo.Name, `{"w":1}`), script.Call(s.Echo.Name, string(right)),
					script.Say("done"))
				m, _ := w.on(t, calls, pawltest.SimulatorOptions{})
				a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{s.Echo}}
				res, err := a.Run(t.Context(), llm.User("go"))
				if err != nil {
					t.Errorf("%s: %v\n%s", s.Name, err, s.Schema)
					continue
				}
				first, second := res.Steps[0].Executions[0], res.Steps[1].Executions[0]
				same := bytes.Equal(second.Result.Data, right)
				if first.Outcome != pawl.OutcomeInvalid || second.Outcome != pawl.OutcomeOK || !same {
					t.Errorf("%s: %s, %s with %s, want %s", s.Name, first.Outcome, second.Outcome, second.Result.Text(), right)
				}

				m, _ = w.on(t, script.New(script.Say(`{}`), script.Say(string(right))), pawltest.SimulatorOptions{})
				got, _, err := s.Into(t.Context(), &pawl.Agent{Model: m}, "go")
				if err != nil || !bytes.Equal(got, right) {
					t.Errorf("%s: got %s, %v, want %s", s.Name, got, err, right)
				}
			}
		})
	}
}
