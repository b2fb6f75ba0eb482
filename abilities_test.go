package pawl_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/telemetry"
)

// able is a model that holds outputs to their schema and costs a dollar a request.
type able struct{ *script.Model }

func (able) HoldsOutput(*llm.Request) bool               { return true }
func (able) MaxCost(*llm.Request) (float64, bool)        { return 1, true }
func ableModel(turns ...script.Turn) llm.Model           { return able{script.New(turns...)} }
func middle(m pawl.Middleware) func(llm.Model) llm.Model { return m.Model }

// modelWrappers are all public ways to put a model around another.
func modelWrappers(t *testing.T) map[string]func(llm.Model) llm.Model {
	tel, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	lead, err := team.Network(&pawl.Agent{Name: "lead", Model: ableModel()},
		team.Worker{Agent: &pawl.Agent{Name: "worker", Model: ableModel()}, Description: "works"})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(llm.Model) llm.Model{
		"catalog.Price":     catalog.Price{Input: 1, Output: 1}.Of,
		"history.Budget":    middle(history.Budget(1000, nil)),
		"history.Summary":   middle(history.Summary(ableModel(), 1000, nil)),
		"history.LastTurns": middle(history.LastTurns(2)),
		"leak.Calls":        middle(leak.Calls()),
		"policy.Fallback":   middle(policy.Fallback{Models: []llm.Model{ableModel()}}.Middleware()),
		"react.New":         func(m llm.Model) llm.Model { return react.New(m, nil) },
		"script.Record":     func(m llm.Model) llm.Model { return script.Record(m) },
		"team.Network":      middle(lead.Middleware[0]),
		"telemetry":         middle(tel.Middleware()),
	}
}

// TestAbilitiesPassWrappers asks both optional abilities through each order of three wrappers.
func TestAbilitiesPassWrappers(t *testing.T) {
	all := modelWrappers(t)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, outer := range names {
		for _, middle := range names {
			for _, inner := range names {
				order := outer + "(" + middle + "(" + inner + "))"
				wrap := func(m llm.Model) llm.Model { return all[outer](all[middle](all[inner](m))) }

				m := wrap(ableModel())
				if h, ok := llm.As[llm.OutputHolder](m); !ok || !h.HoldsOutput(new(llm.Request)) {
					t.Errorf("%s: the output is not held", order)
				}
				if p, ok := llm.As[llm.Pricer](m); !ok || !priced(p) {
					t.Errorf("%s: the price is unknown", order)
				}

				m = wrap(modelFunc(nil)) // has neither ability
				own := slices.Contains([]string{outer, middle, inner}, "react.New")
				if h, ok := llm.As[llm.OutputHolder](m); ok && h.HoldsOutput(new(llm.Request)) && !own {
					t.Errorf("%s: an output is held that nothing holds", order)
				}
				own = slices.Contains([]string{outer, middle, inner}, "catalog.Price")
				if p, ok := llm.As[llm.Pricer](m); ok && priced(p) && !own {
					t.Errorf("%s: a price is known that nothing states", order)
				}
			}
		}
	}
}

func priced(p llm.Pricer) bool {
	_, known := p.MaxCost(new(llm.Request))
	return known
}

// opaque is a wrapper without Unwrap, as the middleware of a program may be.
type opaque struct{ inner llm.Model }

func (o opaque) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return o.inner.Stream(ctx, req)
}

// TestCostLimitWithMiddleware runs agents with a limit on cost and each pair of middlewares, in
// this process and with a journal. No run fails because a wrapper hides the price.
func TestCostLimitWithMiddleware(t *testing.T) {
	all := modelWrappers(t)
	delete(all, "react.New") // a driver: it changes the requests that the script expects
	all["opaque"] = func(m llm.Model) llm.Model { return opaque{m} }
	n := 0
	for outer, wrapOuter := range all {
		for inner, wrapInner := range all {
			if outer == "policy.Fallback" && inner == "opaque" {
				continue // Fallback compares prices, and no price passes opaque
			}
			a := &pawl.Agent{Model: ableModel(script.Say("done")), Limits: pawl.Limits{Cost: 10},
				Middleware: []pawl.Middleware{{Model: wrapOuter}, {Model: wrapInner}}}
			res, err := a.Run(t.Context(), llm.User("go"))
			if err != nil || res.Text() != "done" {
				t.Errorf("%s(%s): %v", outer, inner, err)
			}
			n++
			a.Model = ableModel(script.Say("done"))
			res, err = (&durable.Engine{Journal: new(store.MemoryJournal)}).Runner(fmt.Sprint(n),
				a).Run(t.Context(), llm.User("go"))
			if err != nil || res.Text() != "done" {
				t.Errorf("durable, %s(%s): %v", outer, inner, err)
			}
		}
	}
}
