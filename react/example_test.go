package react_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

func Example() {
	type place struct {
		City string `json:"city"`
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(_ context.Context, p place) (string, error) { return "rain in " + p.City, nil })

	// A model that only writes text. This one is written down.
	text := script.New(
		script.Say("```json\n{\"thought\":\"I look.\",\"type\":\"call_tool\",\"tool\":\"weather\",\"args\":{\"city\":\"Oslo\"}}\n```"),
		script.Say(`{"thought":"It rains.","type":"final_answer","answer":"Take an umbrella."}`),
	)
	agent := &pawl.Agent{Model: react.New(text, nil), Tools: []pawl.Toolset{weather}}
	res, err := agent.Run(context.Background(), llm.User("Do I need an umbrella in Oslo?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range text.Requests()[1].Messages[2:] {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	fmt.Println("calls:", len(res.Messages[1].Calls()))
	fmt.Println("answer:", res.Text())
	// Output:
	// assistant: Thought: I look.
	// Action: weather
	// Action Input: {"city":"Oslo"}
	// user: Observation: rain in Oslo
	// calls: 1
	// answer: Take an umbrella.
}

func ExampleRead() {
	d, err := react.Read("Thought: I look.\nAction: weather\nAction Input: {\"city\": \"Oslo\"}\nObservation: sunshine", react.Text)
	fmt.Println(d.Tool, string(d.Args), d.Notes, err)
	// Output: weather {"city": "Oslo"} [cut off an observation that the model wrote itself] <nil>
}
