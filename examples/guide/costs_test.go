package guide

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
)

func Example_costs() {
	search := pawl.Func("search", "Searches.", func(_ context.Context, in struct{ Words string }) (string, error) {
		return "nothing about " + in.Words, nil
	})
	search.Effect = pawl.EffectRead
	n := 0
	model := script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
		n++
		turn := script.Call("search", fmt.Sprintf(`{"Words":"try %d"}`, n))
		turn.Usage = &llm.Usage{Input: 20_000, Output: 500}
		return turn
	})))
	price := catalog.Price{Input: 1.25, Output: 10} // US dollars per million tokens
	agent := &pawl.Agent{
		Model:    price.Of(model), // models of provider.Open have their price already
		Tools:    []pawl.Toolset{search},
		Settings: llm.Settings{MaxTokens: 1000},
		Limits:   pawl.Limits{Cost: 0.10, AtLimit: pawl.AtLimitReturn, Time: time.Minute},
		Middleware: []pawl.Middleware{
			policy.Rate{Tools: []string{"search"}, Every: time.Second, Burst: 10}.Middleware(),
		},
	}
	res, err := agent.Run(context.Background(), llm.User("Find it."))
	fmt.Println(err)
	fmt.Printf("%d requests, %d tokens in, $%.3f\n", res.Spent.Requests, res.Spent.Usage.Input, res.Spent.Usage.Cost)

	// Output:
	// limit: $0.1200 of $0.1000 are spent; raise Limits.Cost and Resume
	// 4 requests, 80000 tokens in, $0.120
}
