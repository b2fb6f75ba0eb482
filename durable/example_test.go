package durable_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A payment is pending until a person approves it. The process may end in the meantime: another one
// with the same journal and the same agent resumes the run, and nothing is done twice.
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
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}
	// begin begin
	// Or sqlite.Open("pawl.db", nil), or postgres.Open(…).
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	res, err := eng.Runner("invoice-7", agent).Run(ctx, llm.User("Pay invoice 7."))
	var stop *pawl.StopError
	if errors.As(err, &stop) {
		fmt.Println(stop.Reason, "for", stop.Result.Pending[0].Call.Name)
	}
	// end begin

	// A week later, in another process.
	res, err = eng.Runner("invoice-7", agent).Run(ctx,
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{res.Pending[0].Approve("alice")}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text())

	// Once more: the run is replayed, and nothing is executed.
	res, err = eng.Runner("invoice-7", agent).Run(ctx)
	fmt.Println(res.Text(), err)
	// Output:
	// pending for pay
	// paying invoice 7
	// Invoice 7 is paid.
	// Invoice 7 is paid. <nil>
}

var errNoPayment = errors.New("no such payment")

// bank knows the payments.
func bank(_ context.Context, reference string) (string, error) { return "", errNoPayment }

// A tool itself determines the outcome of an interrupted call.
func ExampleEngine_reconcile() {
	pay := pawl.Func("pay", "Pays an invoice.", func(context.Context, struct{}) (string, error) { return "paid", nil })
	pay.Effect = pawl.EffectWrite
	// begin reconcile
	pay.Reconcile = func(ctx context.Context, call llm.ToolCall) (*llm.ToolResult, error) {
		payment, err := bank(ctx, pawl.InvocationFrom(ctx).IdempotencyKey())
		switch {
		case errors.Is(err, errNoPayment):
			return nil, nil // it did not happen, and may run after a new approval
		case err != nil:
			return nil, err // the outcome is unknown: ask a person
		}
		res := llm.TextResult("paid: " + payment)
		return &res, nil
	}
	// end reconcile
	fmt.Println(pay.Effect, "can be settled by its tool:", pay.Reconcile != nil)
	// Output: write can be settled by its tool: true
}
