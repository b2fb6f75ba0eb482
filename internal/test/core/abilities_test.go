package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/panics"
	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/telemetry"
	"github.com/pawl-go/pawl/tools/remember"
	"github.com/pawl-go/pawl/tools/todo"
)

// able is a model with all optional abilities of llm: it holds outputs to their schema, costs a
// dollar a request, and has a name, options, a window and a way to shorten conversations. It embeds
// and can be closed.
type able struct {
	*script.Model
	wrong error // what Check finds; nil means nothing
}

func (*able) HoldsOutput(*llm.Request) bool                                   { return true }
func (*able) MaxCost(*llm.Request) (float64, bool)                            { return 1, true }
func (*able) Name() string                                                    { return "able" }
func (a *able) Check() error                                                  { return a.wrong }
func (*able) Window(*llm.Request) (window, output int)                        { return 1_000_000, 1_000 }
func (*able) Compact(r *llm.Request, _ int) (*llm.Request, bool)              { return r, true }
func (*able) Compacted(llm.Part) bool                                         { return true }
func (*able) Embed(context.Context, store.Use, []string) ([][]float32, error) { return nil, nil }
func (*able) Close() error                                                    { return nil }

func ableModel(turns ...script.Turn) *able               { return &able{Model: script.New(turns...)} }
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
		"catalog.Price":             catalog.Price{Input: 1, Output: 1}.Of,
		"history.Window":            middle(history.Window(nil)),
		"history.Window with notes": middle(history.Window(&history.WindowOptions{Notes: ableModel()})),
		"history.LastTurns":         middle(history.LastTurns(2)),
		"leak.Calls":                middle(leak.Calls()),
		"policy.Guard": middle(policy.Guard{Check: func(context.Context, policy.Guarded) (policy.Ruling, error) {
			return policy.Ruling{Action: policy.GuardAllow}, nil
		}}.Middleware()),
		"panics.Model":    panics.Model,
		"policy.Fallback": middle(policy.Fallback{Models: []llm.Model{ableModel()}}.Middleware()),
		"react.New":       func(m llm.Model) llm.Model { return react.New(m, nil) },
		"remember":        middle(remember.New(nil, &remember.Options{Write: "end", NoRecall: true}).Middleware()),
		"script.Record":   func(m llm.Model) llm.Model { return script.Record(m) },
		"team.Network":    middle(lead.Middleware[0]),
		"telemetry":       middle(tel.Middleware()),
		"todo":            middle(todo.Middleware()),
	}
}

// TestAbilitiesPassWrappers asks all abilities through each order of up to four wrappers, and runs
// an agent with them as middleware: a run with Limits.Cost starts, and the schema is sent in
// addition to the tools.
func TestAbilitiesPassWrappers(t *testing.T) {
	all := modelWrappers(t)
	names := slices.Sorted(maps.Keys(all))
	look := pawl.Func("look", "looks", func(context.Context, struct{}) (string, error) { return "seen", nil })
	n := 0
	for order := range orders(names, 4) {
		n++
		wrap := func(m llm.Model) llm.Model {
			for _, name := range slices.Backward(order) {
				m = all[name](m)
			}
			return m
		}
		bare := ableModel(script.Say("{}"))
		m := wrap(bare)
		bare.wrong = errors.New("an option is wrong")
		if h, ok := llm.As[llm.OutputHolder](m); !ok || !h.HoldsOutput(new(llm.Request)) {
			t.Errorf("%v: the output is not held", order)
		}
		if p, ok := llm.As[llm.Pricer](m); !ok || !priced(p) {
			t.Errorf("%v: the price is unknown", order)
		}
		if n, ok := llm.As[llm.Namer](m); !ok || n.Name() != "able" {
			t.Errorf("%v: the name is lost", order)
		}
		if c, ok := llm.As[llm.Checker](m); !ok || !errors.Is(c.Check(), bare.wrong) && !slices.Contains(order, "policy.Fallback") {
			t.Errorf("%v: the options are not checked", order)
		}
		if w, ok := llm.As[llm.Windower](m); !ok || window(w) != 1_000_000 {
			t.Errorf("%v: the window is unknown", order)
		}
		// A conversation in text cannot hold a provider's summary.
		reacts := slices.Contains(order, "react.New")
		if c, ok := llm.As[llm.Compactor](m); !ok || c.Compacted(llm.Text{}) == reacts {
			t.Errorf("%v: the provider can shorten %t", order, reacts)
		}
		if e, ok := llm.As[store.Embedder](m); !ok || e != bare {
			t.Errorf("%v: the model does not embed", order)
		}
		if c, ok := llm.As[io.Closer](m); !ok || c != bare {
			t.Errorf("%v: the model cannot be closed", order)
		}

		bare.wrong = nil
		m = wrap(modelFunc(nil)) // has no ability
		if h, ok := llm.As[llm.OutputHolder](m); ok && h.HoldsOutput(new(llm.Request)) && !reacts {
			t.Errorf("%v: an output is held that nothing holds", order)
		}
		if p, ok := llm.As[llm.Pricer](m); ok && priced(p) && !slices.Contains(order, "catalog.Price") {
			t.Errorf("%v: a price is known that nothing states", order)
		}
		if _, ok := llm.As[store.Embedder](m); ok {
			t.Errorf("%v: a model embeds that cannot", order)
		}

		if reacts {
			continue // the script would have to answer in its form
		}
		a := &pawl.Agent{Model: bare, Limits: pawl.Limits{Cost: 10}, Tools: []pawl.Toolset{look},
			Output: json.RawMessage(`{"type":"object"}`)}
		for _, name := range order {
			a.Middleware = append(a.Middleware, pawl.Middleware{Model: all[name]})
		}
		if res, err := a.Run(t.Context(), llm.User("go")); err != nil || string(res.Output) != "{}" {
			t.Errorf("%v: %v", order, err)
			continue
		}
		req := bare.Requests()[0]
		if req.Output == nil || len(req.Tools) != 1 {
			t.Errorf("%v: the schema is not sent beside the tools", order)
		}
	}
	if n < 5860 {
		t.Errorf("%d orders of %d wrappers: some are missing", n, len(names))
	}
}

func window(w llm.Windower) int {
	n, _ := w.Window(new(llm.Request))
	return n
}

// The models of the providers have the optional abilities that errors, checks and windows need, and
// a model from scratch has none.
func TestAbilitiesOfProviders(t *testing.T) {
	for name, m := range map[string]llm.Model{
		"anthropic":   anthropic.New("m", nil),
		"gemini":      gemini.New("m", nil),
		"openai":      openai.New("m", nil),
		"openai-chat": openai.NewChat("m", nil),
	} {
		if n, ok := m.(llm.Namer); !ok || !strings.HasSuffix(n.Name(), ":m") {
			t.Errorf("%s: the model has no name", name)
		}
		if _, ok := m.(llm.Checker); !ok {
			t.Errorf("%s: the options cannot be checked", name)
		}
		if _, ok := m.(llm.Windower); !ok {
			t.Errorf("%s: the window is unknown", name)
		}
		if _, ok := m.(llm.Compactor); ok != (name != "gemini") {
			t.Errorf("%s: a Compactor: %v", name, ok)
		}
	}

	if _, ok := llm.As[llm.Namer](modelFunc(nil)); ok {
		t.Error("a model without a name has one")
	}
	if inner, ok := llm.Unwrap(modelFunc(nil)); ok || inner != nil {
		t.Error("a model that wraps none is unwrapped")
	}
	wrapped := catalog.Price{}.Of(modelFunc(nil))
	if _, ok := llm.Unwrap(wrapped); !ok {
		t.Error("a wrapper is not unwrapped")
	}
}

// orders yields each order of one to most different names.
func orders(names []string, most int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		var extend func(order []string) bool
		extend = func(order []string) bool {
			if len(order) > 0 && !yield(slices.Clone(order)) {
				return false
			}
			for _, name := range names {
				if len(order) < most && !slices.Contains(order, name) && !extend(append(order, name)) {
					return false
				}
			}
			return true
		}
		extend(nil)
	}
}

// TestWrappersAreComposed compares the wrappers that the tests above compose with the list of all
// Models of the module that hold a Model, which package internal/test/archtest finds.
func TestWrappersAreComposed(t *testing.T) {
	list, err := os.ReadFile("../archtest/testdata/wrappers.txt")
	if err != nil {
		t.Fatal(err)
	}
	composed := map[string]bool{}
	for _, wrap := range modelWrappers(t) {
		typ := reflect.TypeOf(wrap(ableModel()))
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		composed[strings.TrimPrefix(typ.PkgPath(), "github.com/pawl-go/pawl/")+"."+typ.Name()] = true
	}
	// Their packages compose these.
	elsewhere := []string{"cmd/pawl/internal/demo.paced", "internal/agentfile.overheard", "internal/agentfile.announcing",
		"durable.model", "durable/durabletest.seen", "durable/whatif.model",
		"server/internal/runs.guardedModel", "server/internal/runs.skippingModel",
		"internal/test/obey.model", "internal/test/wiretest.credulous", "pawltest/internal/suite/model.meeting",
		"pawltest/internal/suite/model.watched",
		"pawltest/mutant.model"}
	for line := range strings.Lines(string(list)) {
		if name := strings.TrimSpace(line); !composed[name] && !slices.Contains(elsewhere, name) {
			t.Errorf("%s wraps a Model, and modelWrappers does not compose it", name)
		}
	}
}

// TestOutputPassesRunners asks Into through each order of up to four wrappers of a Runner.
func TestOutputPassesRunners(t *testing.T) {
	tel, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	secrets := new(redact.Redactor)
	all := map[string]func(pawl.Runner) pawl.Runner{
		"observe.Sync":  func(r pawl.Runner) pawl.Runner { return observe.Sync(r, func(pawl.Event) {}) },
		"observe.Async": func(r pawl.Runner) pawl.Runner { return observe.Async(r, nil, func(pawl.Event) {}) },
		"redact.Runner": func(r pawl.Runner) pawl.Runner { return redact.Runner(r, secrets) },
		"telemetry":     tel.Runner,
		"telemetry.Log": func(r pawl.Runner) pawl.Runner { return tel.Log(r, slog.New(slog.DiscardHandler)) },
	}
	for order := range orders(slices.Sorted(maps.Keys(all)), 4) {
		var r pawl.Runner = &pawl.Agent{Model: script.New(script.Say(`{"n":1}`))}
		for _, name := range slices.Backward(order) {
			r = all[name](r)
		}
		got, _, err := pawl.Into[struct{ N int }](t.Context(), r.(pawl.OutputRunner), llm.User("go"))
		if err != nil || got.N != 1 {
			t.Errorf("%v: got %v, %v", order, got, err)
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
			if (outer == "policy.Fallback" || outer == "history.Window with notes") && inner == "opaque" {
				continue // they compute with prices, and no price passes opaque
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
