package journal_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A run is read after its end, by a program that has neither its agent nor its tools.
func Example() {
	ctx := context.Background()
	db := new(store.MemoryJournal)
	pay := pawl.Func("pay", "Pays an invoice.", func(context.Context, struct {
		Invoice int `json:"invoice"`
	}) (string, error) {
		return "paid", nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Call("pay", `{"invoice":7}`), script.Say("Invoice 7 is paid.")),
		Tools: []pawl.Toolset{pay},
	}
	eng := &durable.Engine{Journal: db}
	if _, err := eng.Runner("invoice-7", agent).Run(ctx, llm.User("Pay invoice 7.")); err != nil {
		panic(err)
	}

	run, err := journal.Read(ctx, db, "invoice-7", time.Now())
	if err != nil {
		panic(err)
	}
	for _, entry := range run.Effects(false) {
		fmt.Printf("%s %s: %s, attempts: %d\n", entry.Tool, entry.Call.Args, entry.State, entry.Attempts)
	}
	export, err := run.Export()
	if err != nil {
		panic(err)
	}
	fmt.Println(export.End.Stop, "after", len(export.Replies), "replies:", export.End.Answer.Text)
	// Output:
	// pay {"invoice":7}: completed, attempts: 1
	// answer after 2 replies: Invoice 7 is paid.
}
