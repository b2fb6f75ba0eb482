package durable_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A person who decides for a tenant sees the questions of all its users, and no others. An answered
// question is gone.
func TestPendingOfATenant(t *testing.T) {
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
	asks := func() *pawl.Agent {
		return &pawl.Agent{
			Name:       "desk",
			Model:      script.New(script.Call("pay", nil), script.Say("Done.")),
			Tools:      []pawl.Toolset{pay},
			Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
		}
	}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	anna, bo := store.Scope{Tenant: "acme", User: "anna"}, store.Scope{Tenant: "acme", User: "bo"}
	for _, s := range []store.Scope{anna, bo, {Tenant: "other", User: "anna"}} {
		_, _ = eng.Runner("r", asks()).Run(store.WithScope(t.Context(), s), llm.User("Pay."))
	}
	answers := &pawl.Agent{Model: script.New(script.Say("Hello."))}
	if _, err := eng.Runner("over", answers).Run(store.WithScope(t.Context(), anna), llm.User("Hello?")); err != nil {
		t.Fatal(err)
	}

	users := func() (users []string, runs []durable.PendingRun) {
		for run, err := range eng.PendingOf(t.Context(), "acme") {
			if err != nil || run.ID != "r" || run.Agent != "desk" || run.Task != "Pay." || len(run.Calls) != 1 {
				t.Errorf("got %+v, %v", run, err)
			}
			users = append(users, run.Scope.User)
			runs = append(runs, run)
		}
		slices.Sort(users)
		return users, runs
	}
	got, runs := users()
	if !slices.Equal(got, []string{"anna", "bo"}) {
		t.Fatalf("the questions are of %v, want anna and bo", got)
	}

	first := runs[0]
	ctx := store.WithScope(t.Context(), first.Scope)
	if err := eng.Decide(ctx, first.ID, first.Calls[0].Approve("eve")); err != nil {
		t.Fatal(err)
	}
	if got, _ := users(); len(got) != 1 || got[0] == first.Scope.User {
		t.Errorf("after an answer the questions are of %v", got)
	}
}
