package history_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// The last two turns are sent. The transcript keeps all turns.
func Example() {
	model := script.New(script.Loop(script.Say("Noted.")))
	agent := &pawl.Agent{Model: model, Instructions: "Be brief.", Middleware: []pawl.Middleware{history.LastTurns(2)}}
	var transcript []llm.Message
	for _, text := range []string{"one", "two", "three"} {
		res, err := agent.Run(context.Background(), append(transcript, llm.User(text))...)
		if err != nil {
			fmt.Println(err)
			return
		}
		transcript = res.Messages
	}
	sent := model.Requests()[2].Messages
	for _, m := range sent {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	fmt.Println(len(transcript), "messages are kept")
	// Output:
	// system: Be brief.
	// user: two
	// assistant: Noted.
	// user: three
	// 6 messages are kept
}
