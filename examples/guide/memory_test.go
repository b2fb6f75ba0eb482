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
	memory := remember.New(db, nil)
	agent := &pawl.Agent{Tools: []pawl.Toolset{memory}, Middleware: []pawl.Middleware{memory.Middleware()}}
	agent.Model = script.New(script.Call("remember", `{"content":"Anna is allergic to nuts."}`), script.Say("Noted."))
	if _, err = agent.Run(ctx, llm.User("I cannot eat nuts.")); err != nil {
		panic(err)
	}

	// Another conversation: the memory is recalled before the model is asked.
	agent.Model = &script.Model{Turns: []script.Turn{script.Say("No, it has nuts.")}, Skip: 1}
	res, err := agent.Run(ctx, llm.User("May I eat a cake with nuts?"))
	if err != nil {
		panic(err)
	}
	recalled := res.Steps[0].Executions[0]
	fmt.Printf("%s %s\n", recalled.Call.Name, recalled.Call.Args)
	fmt.Println(res.Text())
	stored, err := db.Memories(ctx, store.Scope{Tenant: "acme", User: "anna"}, store.Page{})
	if err != nil {
		panic(err)
	}
	fmt.Println(stored[0].ID, stored[0].Text)

	// Output:
	// memory_list {"ids":["m0000000001"]}
	// No, it has nuts.
	// m0000000001 Anna is allergic to nuts.
}
