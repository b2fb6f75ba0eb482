package guide

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func Example_sessions() {
	ctx := context.Background()
	model := script.New(script.Say("Pleased to meet you, Anna."), script.Say("Your name is Anna."))
	agent := &pawl.Agent{Model: model, Instructions: "Be brief."}

	res, err := agent.Run(ctx, llm.User("My name is Anna."))
	if err != nil {
		panic(err)
	}
	session, err := json.Marshal(res) // to a file, a row of a database, a cookie store
	if err != nil {
		panic(err)
	}

	// The next request, perhaps in another process.
	var stored pawl.Result
	if err := json.Unmarshal(session, &stored); err != nil {
		panic(err)
	}
	res, err = agent.Resume(ctx, &stored, llm.User("What is my name?"))
	if err != nil {
		panic(err)
	}
	for _, m := range res.Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	fmt.Println(res.Spent.Requests, "requests in the session")

	// Output:
	// user: My name is Anna.
	// assistant: Pleased to meet you, Anna.
	// user: What is my name?
	// assistant: Your name is Anna.
	// 2 requests in the session
}
