package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// A message is sent to a run in progress.
func ExampleSteering() {
	var steering pawl.Steering
	read := pawl.Func("read_page", "Reads a page of the report.", func(ctx context.Context, in struct{ Page int }) (string, error) {
		if in.Page == 1 { // the user types in another goroutine
			if err := steering.Steer(ctx, llm.User("The first page is enough.")); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("page %d of 300", in.Page), nil
	})
	agent := &pawl.Agent{Tools: []pawl.Toolset{read}, Model: script.New(
		script.Call("read_page", `{"Page":1}`),
		script.Func(func(req *llm.Request) script.Turn {
			return script.Say("I was told: " + req.Messages[len(req.Messages)-1].Text())
		}))}
	res, err := agent.Run(pawl.WithMessages(context.Background(), &steering), llm.User("Summarise the report."))
	fmt.Println(res.Text(), err)
	// Output: I was told: The first page is enough. <nil>
}
