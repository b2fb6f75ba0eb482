package history_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// A turn may have hundreds of steps: old results are put away, and the model reads them again with
// result_read.
func ExampleWindow() {
	model := script.New(script.Call("read", `{"page":1}`), script.Say("Read."))
	read := pawl.Func("read", "Reads a page.", func(context.Context, struct {
		Page int `json:"page"`
	}) (string, error) {
		return "a page", nil
	})
	tools := []pawl.Toolset{read}
	// begin window
	agent := &pawl.Agent{Model: model, Tools: tools, Artifacts: new(artifact.Memory),
		Middleware: []pawl.Middleware{history.Window(nil)}}
	// end window
	res, err := agent.Run(context.Background(), llm.User("Read all pages."))
	fmt.Println(res.Text(), err)
	// Output: Read. <nil>
}

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
