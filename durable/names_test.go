package durable_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A subagent may have the name of a kind of records. Its name is a part of the keys of its records,
// so that "/reply/" then stands in keys that do not end with a kind and a number.
func TestNamesOfRecords(t *testing.T) {
	for _, name := range []string{
		"begin", "tools", "reply", "background", "intent", "outcome", "question", "decision", "steer", "message", "cancel",
		"accept", "trace", "restored", "end", "model", "run", "clerk",
	} {
		t.Run(name, func(t *testing.T) { playNamed(t, name) })
	}
}

// playNamed lets a subagent of that name make a call that needs an approval. Each process has
// models of its own.
func playNamed(t *testing.T, name string) {
	paid := 0
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid++
		return "paid", nil
	})
	pay.Effect = pawl.EffectWrite

	ctx := t.Context()
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	run := func(msgs ...llm.Message) (res *pawl.Result, asked int, err error) {
		outer := script.New(script.Call(name, `{"task":"Pay."}`), script.Say("Done."))
		inner := script.New(script.Call("pay", `{}`), script.Say("It is paid."))
		clerk := &pawl.Agent{
			Name:       name,
			Model:      inner,
			Tools:      []pawl.Toolset{pay},
			Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
		}
		boss := &pawl.Agent{Name: "boss", Model: outer, Tools: []pawl.Toolset{clerk.Tool("Pays invoices.")}}
		res, err = eng.Runner("r", boss).Run(ctx, msgs...)
		return res, len(outer.Requests()) + len(inner.Requests()), err
	}

	res, _, err := run(llm.User("Pay."))
	if res == nil || res.Stop != pawl.StopPending {
		t.Fatalf("the run stopped with %+v, %v; want a question", res, err)
	}
	inside := "run/1/0/" + llm.Key(name)
	open, err := eng.Pending(ctx, "r")
	if err != nil || len(open) != 1 || open[0].Key != inside+"/1/0" {
		t.Fatalf("pending: %+v, %v; want the call of the subagent", open, err)
	}
	if err := eng.Decide(ctx, "r", open[0].Approve("ann")); err != nil {
		t.Fatal(err)
	}

	// Another process continues. It asks for the two replies that are missing.
	res, asked, err := run()
	if err != nil || res.Text() != "Done." {
		t.Fatalf("the resumed run ends with %+v, %v; want the answer", res, err)
	}
	if asked != 2 || paid != 1 {
		t.Errorf("after the approval: %d requests and %d payments, want 2 and 1", asked, paid)
	}

	// What the journal has of the run is complete.
	x, err := eng.Export(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	var got []llm.Key
	for _, r := range x.Replies {
		got = append(got, r.Key)
	}
	for _, c := range x.Calls {
		got = append(got, c.Key)
	}
	want := []llm.Key{
		"run/0/model", inside + "/0/model", inside + "/1/model", "run/1/model",
		"run/1/0", inside + "/1/0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the keys of the export (-want +got):\n%s", diff)
	}

	// A replay of the run asks for nothing.
	res, asked, err = run()
	if err != nil || res.Text() != "Done." || asked != 0 || paid != 1 {
		t.Errorf("the replay ends with %+v, %v after %d requests and %d payments in all", res, err, asked, paid)
	}
}
