package whatif_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/whatif"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// Would a new rule have changed what a run did? No refund is paid to find out.
func Example() {
	ctx := context.Background()
	refund := pawl.Func("refund", "Refunds an order.", func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (string, error) {
		fmt.Println("refunding", in.Amount)
		return "refunded", nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Call("refund", `{"amount":700}`), script.Say("It is refunded.")),
		Tools: []pawl.Toolset{refund},
	}
	db := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: db}
	if _, err := eng.Runner("order-7", agent).Run(ctx, llm.User("Refund order 7.")); err != nil {
		panic(err)
	}

	rules := policy.Rules{Deny: []string{"refund(amount > 500)"}, Default: pawl.VerdictAllow}
	agent.Middleware = []pawl.Middleware{rules.Middleware()}
	// begin trial
	trial := &whatif.Trial{Journal: db, Change: whatif.Change{Rules: true}, Offline: true}
	var sum whatif.Summary
	for _, id := range []string{"order-7"} {
		run, err := trial.Replay(ctx, id, agent)
		if err != nil {
			panic(err)
		}
		sum.Add(run)
		fmt.Println(run.Verdict+":", run.Cause)
		for _, change := range run.Changes {
			fmt.Println(change)
		}
	}
	fmt.Println(sum.Same, "same,", sum.Differ, "differ,", sum.Unknown, "unknown")
	// end trial
	// Output:
	// refunding 700
	// differ: call: refund was ok, is denied
	// write refund: gone: {"amount":700}
	// 0 same, 1 differ, 0 unknown
}
