package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

type none struct{}

// A run resumes at its place, in what is another process from its view.
func TestResume(t *testing.T) {
	j := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: j}
	looked, paid := 0, 0
	look := pawl.Func("look", "looks", func(context.Context, none) (string, error) { looked++; return "5 euros", nil })
	look.Effect = pawl.EffectRead
	pay := pawl.Func("pay", "pays", func(context.Context, none) (string, error) { paid++; return "paid", nil })
	m := script.New(script.Call("look", `{}`), script.Call("pay", `{}`), script.Say("done"))
	agent := &pawl.Agent{Model: m, Tools: []pawl.Toolset{look, pay},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	res, err := runtest.Ended(eng.Runner("r", agent).Run(t.Context(), llm.User("pay")))
	if err != nil || res.Stop != pawl.StopPending {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := eng.Decide(t.Context(), "r", res.Pending[0].Approve("me")); err != nil {
		t.Fatal(err)
	}
	res, err = eng.Runner("r", agent).Run(t.Context())
	if err != nil || res.Text() != "done" || looked != 1 || paid != 1 || len(m.Requests()) != 3 {
		t.Fatalf("%+v, %v; looked %d, paid %d, asked %d", res, err, looked, paid, len(m.Requests()))
	}
	again, err := eng.Runner("r", agent).Run(t.Context(), llm.User("pay"))
	if err != nil || again.Text() != "done" || looked != 1 || paid != 1 || len(m.Requests()) != 3 {
		t.Fatalf("%+v, %v; looked %d, paid %d, asked %d", again, err, looked, paid, len(m.Requests()))
	}
	records, _ := j.JournalRecords(t.Context(), store.Scope{}, "r", 0)
	for _, r := range records {
		t.Log(r.Seq, r.Kind, r.Key, r.Fence)
	}
}

// A call that another process executes again keeps its first start time, and so do its nested
// calls.
func TestSince(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var seen []time.Time
	ctx, shutdown := context.WithCancel(t.Context())
	look := pawl.Func("look", "looks", func(ctx context.Context, _ none) (string, error) {
		seen = append(seen, pawl.InvocationFrom(ctx).Since())
		shutdown()
		return "", ctx.Err()
	})
	look.Effect = pawl.EffectRead
	around := pawl.Func("around", "looks around", func(ctx context.Context, _ none) (string, error) {
		v := pawl.InvocationFrom(ctx)
		seen = append(seen, v.Since())
		_, err := v.Do(ctx, llm.ToolCall{Name: "look", Args: []byte(`{}`)})
		return "", err
	})
	around.Effect = pawl.EffectCompose
	agent := &pawl.Agent{Model: script.New(script.Call("around", `{}`), script.Say("done")), Tools: []pawl.Toolset{look, around}}
	before := time.Now()
	if res, err := runtest.Ended(eng.Runner("r", agent).Run(ctx, llm.User("look"))); err == nil {
		t.Fatalf("the run ended: %+v", res)
	}
	between := time.Now()
	if res, err := eng.Runner("r", agent).Run(t.Context()); err != nil || res.Text() != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(seen) != 4 || !seen[0].Equal(seen[2]) || !seen[1].Equal(seen[0]) || !seen[3].Equal(seen[0]) ||
		seen[0].Before(before) || seen[0].After(between) {
		t.Errorf("got %v, begun between %v and %v", seen, before, between)
	}
}
