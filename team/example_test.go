package team_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

// A lead plans, two workers execute the plan, and the lead sums up. The models are scripts; a real
// one is openai.New(…).
func Example() {
	plan := `{"phases":[
		{"name":"find","worker":"scout","goals":"Find the active users."},
		{"name":"count","worker":"clerk","goals":"Count them."}]}`
	lead := &pawl.Agent{Name: "desk", Instructions: "Be exact.", Model: script.New(
		script.First(script.Expect(script.Say("Three users are active."), script.Asked("What the workers gave")), script.Say(plan)))}
	scout := &pawl.Agent{Name: "scout", Instructions: "You search.", Model: script.New(script.Say("u1, u3 and u4"))}
	clerk := &pawl.Agent{Name: "clerk", Instructions: "You count.", Model: script.New(script.Say("3"))}

	desk, err := team.Strategic(lead, nil, team.Worker{Agent: scout, Description: "Finds records."},
		team.Worker{Agent: clerk, Description: "Does sums."})
	if err != nil {
		panic(err)
	}
	for e, err := range desk.Stream(context.Background(), llm.User("How many users are active?")) {
		switch {
		case err != nil:
			panic(err)
		case e.Kind == pawl.EventNotice && e.Code == team.NoticePlan:
			fmt.Println("plan:", e.Text)
		case e.Kind == pawl.EventCallCompleted && e.Execution.Call.Name != "make_plan" && e.Execution.Call.Name != "sum_up":
			fmt.Printf("%s %s: %s\n", e.Path, e.Execution.Call.Name, e.Execution.Result.Text())
		case e.Kind == pawl.EventRunEnded && e.Run == "run":
			fmt.Println(e.Result.Text())
		}
	}
	fmt.Println(clerk.Model.(*script.Model).Requests()[0].Messages[0].Text())
	// Output:
	// plan: a plan of 2 phases
	// run/2/0 scout: u1, u3 and u4
	// run/3/0 clerk: 3
	// Three users are active.
	// You count.
	//
	// STRATEGIC PLAN:
	// {
	//   "phases": [
	//     {
	//       "name": "find",
	//       "worker": "scout",
	//       "goals": "Find the active users."
	//     },
	//     {
	//       "name": "count",
	//       "worker": "clerk",
	//       "goals": "Count them."
	//     }
	//   ]
	// }
}
