package durable_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A payment waits for a person. The process may end meanwhile: another one, with the same journal and the same agent, goes on, and nothing is done twice.
func Example() {
	ctx := context.Background()
	pay := pawl.Func("pay", "Pays an invoice.", func(ctx context.Context, in struct {
		Invoice int `json:"invoice"`
	}) (string, error) {
		fmt.Printf("paying invoice %d\n", in.Invoice)
		return "paid", nil
	})
	agent := &pawl.Agent{
		Model:      script.New(script.Call("pay", `{"invoice":7}`), script.Say("Invoice 7 is paid.")),
		Tools:      []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(pawl.AskBeforeWrites)},
	}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)} // or sqlite.Open("pawl.db", nil)

	res, err := eng.Runner("invoice-7", agent).Run(ctx, pawl.User("Pay invoice 7."))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Stop, "for", res.Pending[0].Call.Name)

	// A week later, in another process.
	res, err = eng.Runner("invoice-7", agent).Run(ctx, pawl.Message{Role: pawl.RoleUser, Parts: []pawl.Part{res.Pending[0].Approve("alice")}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text())

	// Once more: it is played back, and nothing runs.
	res, err = eng.Runner("invoice-7", agent).Run(ctx)
	fmt.Println(res.Text(), err)
	// Output:
	// pending for pay
	// paying invoice 7
	// Invoice 7 is paid.
	// Invoice 7 is paid. <nil>
}
