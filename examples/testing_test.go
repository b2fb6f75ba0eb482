package examples

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// docs/testing.md shows these.
func Example_testing() {
	ctx := context.Background()
	// begin scripted
	paid := 0
	pay := pawl.Func("pay", "Pays a bill.", func(ctx context.Context, in struct{ Euros int }) (string, error) {
		if in.Euros > 100 {
			return "", errors.New("over the limit of 100; ask for less")
		}
		paid += in.Euros
		return "paid", nil
	})
	agent := &pawl.Agent{Tools: []pawl.Toolset{pay}, Model: script.New(
		script.Call("pay", map[string]any{"Euros": 700}),
		script.Call("pay", map[string]any{"Euros": 70}), // what a good model does after an error
		script.Say("Done."),
	)}
	res, err := agent.Run(ctx, llm.User("Pay the bill."))
	if err != nil {
		panic(err)
	}
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			fmt.Println(x.Call.Name, x.Outcome, x.Result.Text())
		}
	}
	fmt.Println(paid, res.Stop)
	// end scripted

	// Output:
	// pay error over the limit of 100; ask for less
	// pay ok paid
	// 70 answer
}

func Example_simulator() {
	ctx := context.Background()
	// begin simulator
	provider, err := pawltest.NewSimulator(script.New(script.Say("Rain, all day.")), nil)
	if err != nil {
		panic(err)
	}
	defer provider.Close()
	agent := &pawl.Agent{Model: openai.New("any", &openai.Options{BaseURL: provider.URL, Key: "none"})}
	res, err := agent.Run(ctx, llm.User("How is the weather in Oslo?"))
	// end simulator
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text(), len(provider.Received()))

	// Output:
	// Rain, all day. 1
}
