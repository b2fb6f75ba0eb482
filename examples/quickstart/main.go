// Command quickstart is the program of the README: a tool, an agent, a question. It needs
// OPENAI_API_KEY.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// City is what the tool wants to know.
type City struct {
	Name string `json:"name" jsonschema:"the city's English name"`
}

func main() {
	ctx := context.Background()
	// begin quickstart
	weather := pawl.Func("weather", "Current weather in a city.",
		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })
	agent := &pawl.Agent{Model: openai.New("gpt-6.1-terra", nil), Tools: []pawl.Toolset{weather}}
	res, err := agent.Run(ctx, llm.User("Do I need an umbrella in Oslo?"))
	// end quickstart
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
	fmt.Println(res.Text())
}
