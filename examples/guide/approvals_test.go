package guide

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

type Refund struct {
	Order string `json:"order"`
	Euros int    `json:"euros"`
}

func Example_approvals() {
	ctx := context.Background()
	refund := pawl.Func("refund", "Refunds an order.", func(_ context.Context, r Refund) (string, error) {
		return fmt.Sprintf("refunded %d euros for %s", r.Euros, r.Order), nil
	}) // its Effect is write, so the policy below asks
	agent := &pawl.Agent{
		Model:      script.New(script.Call("refund", Refund{"A-17", 40}), script.Say("Done.")),
		Tools:      []pawl.Toolset{refund},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}

	_, err := agent.Run(ctx, llm.User("I want my money back for A-17."))
	var stop *pawl.StopError
	if !errors.As(err, &stop) || stop.Reason != pawl.StopPending {
		panic(err)
	}
	pending := stop.Result.Pending[0]
	fmt.Println("may it run?", pending.Call.Name, string(pending.Call.Args))

	// A person answers: Approve, Deny with a reason, or Edit with other arguments.
	res, err := agent.Resume(ctx, stop.Result, llm.DecisionMessage(pending.Approve("tom")))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Steps[0].Executions[0].Result.Text())
	fmt.Println(res.Text())

	// Output:
	// may it run? refund {"order":"A-17","euros":40}
	// refunded 40 euros for A-17
	// Done.
}
