package examples

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// README.md shows this one.
func Example_readme() {
	ctx := context.Background()
	// begin readme
	type City struct{ Name string }
	weather := pawl.Func("weather", "Current weather in a city.",
		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })
	model := script.New( // in place of openai.New("gpt-6.1-terra", nil)
		script.Call("weather", City{"Oslo"}),
		script.Say("Yes: it rains."))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{weather}}
	res, err := agent.Run(ctx, llm.User("Do I need an umbrella in Oslo?"))
	fmt.Println(res.Text(), err)
	fmt.Println(res.Stop, res.Spent.Requests, "requests", res.Spent.Calls, "call")
	// end readme

	// Output:
	// Yes: it rains. <nil>
	// answer 2 requests 1 call
}
