package policy_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// A guard stops a question before its answer is used. policy.ModelCheck and policy.FlagCheck are
// checks by a model and by a moderation endpoint.
func ExampleGuard() {
	guard := policy.Guard{Name: "salaries", Check: func(_ context.Context, g policy.Guarded) (policy.Ruling, error) {
		if strings.Contains(g.Text, "salary") {
			return policy.Ruling{Action: policy.GuardStop, Text: "salaries are private"}, nil
		}
		return policy.Ruling{Action: policy.GuardAllow}, nil
	}}
	agent := &pawl.Agent{
		Model:      script.New(script.Say("She earns 70,000.")),
		Middleware: []pawl.Middleware{guard.Middleware()},
	}
	_, err := agent.Run(context.Background(), llm.User("What is Anna's salary?"))
	fmt.Println(err)
	// Output: content_filter: guard salaries stopped the input: salaries are private
}
