package guide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/remember"
)

func Example_memory() {
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), nil) // or postgres.Open
	if err != nil {
		panic(err)
	}
	defer db.Close()

	// Each run acts for one user and never sees the memories of another.
	ctx := store.WithScope(context.Background(), store.Scope{Tenant: "acme", User: "anna"})
	for _, model := range []*script.Model{ // two conversations
		script.New(script.Call("remember", `{"content":"Anna is allergic to nuts."}`), script.Say("Noted.")),
		script.New(script.Call("memory_list", `{"query":"allergic"}`), script.Say("No nuts, then.")),
	} {
		agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{remember.New(db, nil)}}
		res, err := agent.Run(ctx, llm.User("I am planning a dinner."))
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Steps[0].Executions[0].Call.Name, res.Steps[0].Executions[0].Outcome)
		fmt.Println(res.Text())
	}
	stored, err := db.Memories(ctx, store.Scope{Tenant: "acme", User: "anna"}, store.Page{})
	if err != nil {
		panic(err)
	}
	fmt.Println(stored[0].ID, stored[0].Text)

	// Output:
	// remember ok
	// Noted.
	// memory_list ok
	// No nuts, then.
	// m0000000001 Anna is allergic to nuts.
}
