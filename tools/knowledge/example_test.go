package knowledge_test

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
	"github.com/pawl-go/pawl/tools/knowledge"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	ctx, alice := context.Background(), store.Scope{User: "alice"}
	set := knowledge.New(db, &knowledge.Options{Threads: db})
	if _, err := set.Add(ctx, alice, knowledge.Source{Name: "handbook.md", Data: []byte("# Handbook\n\n## Leave\n\nEverybody has twelve days.\n")}); err != nil {
		fmt.Println(err)
		return
	}
	model := script.New(script.Call("knowledge_search", map[string]any{"query": "days of leave"}),
		script.Func(func(req *llm.Request) script.Turn { return script.Say(script.Results(req)[0].Text()) }))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{set}}
	res, err := agent.Run(store.WithScope(ctx, alice), llm.User("How many days of leave do I have?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text())
	// Output:
	// From documents:
	// [1] Handbook > Leave (handbook.md)
	// > Everybody has twelve days.
}
