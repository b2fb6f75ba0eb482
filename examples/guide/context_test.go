package guide

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func Example_context() {
	ctx := context.Background()
	model := script.New(script.Loop(script.Say("Noted.")))
	agent := &pawl.Agent{Model: model, Instructions: "Be brief.", Middleware: []pawl.Middleware{
		history.LastTurns(2), // or Window(nil), or DropPastToolCalls()
	}}
	res := &pawl.Result{}
	for _, text := range []string{"one", "two", "three", "four"} {
		var err error
		if res, err = agent.Resume(ctx, res, llm.User(text)); err != nil {
			panic(err)
		}
	}
	sent := model.Requests()[3].Messages
	fmt.Println(len(res.Messages), "messages are stored; the last request sent:")
	for _, m := range sent {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}

	// Output:
	// 8 messages are stored; the last request sent:
	// system: Be brief.
	// user: three
	// assistant: Noted.
	// user: four
}
