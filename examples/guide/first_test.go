package guide

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func Example_first() {
	ctx := context.Background()
	type City struct {
		Name string `json:"name" jsonschema:"the city, such as Oslo"`
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })

	model := script.New(
		script.Call("weather", City{Name: "Oslo"}),
		script.Say("Yes, take one: it rains."))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{weather}}

	res, err := agent.Run(ctx, llm.User("Do I need an umbrella in Oslo?"))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Steps[0].Executions[0].Result.Text())
	fmt.Println(res.Text())
	fmt.Println(res.Stop, "after", res.Spent.Requests, "requests and", res.Spent.Calls, "call")

	// Output:
	// rain in Oslo
	// Yes, take one: it rains.
	// answer after 2 requests and 1 call
}
