package durable_test

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

type none struct{}

// A run goes on where it was, in what is another process as far as it knows.
func TestResume(t *testing.T) {
	j := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: j}
	looked, paid := 0, 0
	look := pawl.Func("look", "looks", func(context.Context, none) (string, error) { looked++; return "5 euros", nil })
	look.Effect = pawl.Read
	pay := pawl.Func("pay", "pays", func(context.Context, none) (string, error) { paid++; return "paid", nil })
	m := script.New(script.Call("look", `{}`), script.Call("pay", `{}`), script.Say("done"))
	agent := &pawl.Agent{Model: m, Tools: []pawl.Toolset{look, pay}, Middleware: []pawl.Middleware{pawl.Approve(pawl.AskBeforeWrites)}}
	res, err := eng.Runner("r", agent).Run(t.Context(), pawl.User("pay"))
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
	again, err := eng.Runner("r", agent).Run(t.Context(), pawl.User("pay"))
	if err != nil || again.Text() != "done" || looked != 1 || paid != 1 || len(m.Requests()) != 3 {
		t.Fatalf("%+v, %v; looked %d, paid %d, asked %d", again, err, looked, paid, len(m.Requests()))
	}
	records, _ := j.JournalRecords(t.Context(), store.Scope{}, "r", 0)
	for _, r := range records {
		t.Log(r.Seq, r.Kind, r.Key, r.Fence)
	}
}
