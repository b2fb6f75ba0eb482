package guide

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

func Example_teams() {
	billing := &pawl.Agent{Name: "billing", Instructions: "You know invoices.",
		Model: script.New(script.Say("Invoice 17 was paid in March."))}
	orders := &pawl.Agent{Name: "orders", Instructions: "You know orders.",
		Model: script.New(script.Say("Order A-17 was shipped."))}

	// Routing: one worker gets the task and answers.
	desk, err := team.Router(&pawl.Agent{Name: "desk", Model: script.New()}, &team.RouterOptions{
		Default: "orders",
		Rules:   []team.Rule{{Worker: "billing", Include: []string{"invoice"}}},
	}, team.Worker{Agent: billing, Description: "Invoices."}, team.Worker{Agent: orders, Description: "Orders."})
	if err != nil {
		panic(err)
	}
	res, err := desk.Run(context.Background(), llm.User("Is invoice 17 paid?"))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text())

	// Subagents: the lead's model hands a task off by a tool call, as often as it needs.
	lead, err := team.Network(&pawl.Agent{Name: "lead", Model: script.New(
		script.Call("orders", `{"task":"Where is A-17?"}`), script.Say("It is on its way."))},
		team.Worker{Agent: orders, Description: "Orders."})
	if err != nil {
		panic(err)
	}
	if res, err = lead.Run(context.Background(), llm.User("Where is my parcel?")); err != nil {
		panic(err)
	}
	fmt.Println(res.Steps[0].Executions[0].Result.Text())
	fmt.Println(res.Text())

	// Output:
	// Invoice 17 was paid in March.
	// Order A-17 was shipped.
	// It is on its way.
}
