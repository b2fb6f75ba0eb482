// Command quickstart is the program of the README: a tool, an agent, a question. It needs a key in
// OPENAI_API_KEY.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

func main() {
	type City struct {
		Name string `json:"name" jsonschema:"the city, such as Oslo"`
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })

	agent := &pawl.Agent{
		Model: openai.New("gpt-6.1-terra", nil), // reads OPENAI_API_KEY
		Tools: []pawl.Toolset{weather},
	}
	res, err := agent.Run(context.Background(), llm.User("Do I need an umbrella in Oslo?"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())
}
