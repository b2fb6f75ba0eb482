package guide

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

type Order struct {
	ID string `json:"id" jsonschema:"the order number, such as A-17"`
}

func status(_ context.Context, o Order) (string, error) {
	if o.ID != "A-17" {
		return "", fmt.Errorf("there is no order %q; numbers look like A-17", o.ID)
	}
	return "shipped on Monday", nil
}

func Example_tools() {
	tool := pawl.Func("order_status", "Returns the status of an order.", status)
	tool.Effect = pawl.EffectRead // it may run in parallel, and again after a crash

	model := script.New( // or openai.New("gpt-6.1-terra", nil)
		script.Call("order_status", `{"order":"A-17"}`), // the field has another name
		script.Call("order_status", `{"id":"A17"}`),
		script.Call("order_status", `{"id":"A-17"}`),
		script.Say("It was shipped on Monday."))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{tool}}

	res, err := agent.Run(context.Background(), llm.User("Where is order A-17?"))
	if err != nil {
		panic(err)
	}
	for _, step := range res.Steps {
		for _, x := range step.Executions {
			fmt.Println(x.Outcome, "-", x.Result.Text())
		}
	}
	fmt.Println(res.Text())

	// Output:
	// invalid - The arguments of order_status do not fit its schema:
	// - missing required field "id"
	// - unknown field "order"; the only field here is "id"
	// Arguments of the right form, with your own values: {"id":"text"}
	// error - there is no order "A17"; numbers look like A-17
	// ok - shipped on Monday
	// It was shipped on Monday.
}
