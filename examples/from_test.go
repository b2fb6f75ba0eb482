package examples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
)

// The snippets of docs/from.

type place struct{ City string }

func forecast(_ context.Context, p place) (string, error) { return "rain in " + p.City, nil }

func Example_fromInstructor() {
	ctx := context.Background()
	model, stop := obedient(
		script.Say(`{"thought":"look","type":"call_tool","tool":"weather","args":{"City":"Oslo"}}`),
		script.Say(`{"thought":"done","type":"final_answer","answer":"It rains."}`))
	defer stop()
	// begin instructor
	weather := pawl.Func("weather", "Current weather.", forecast)
	loop := &pawl.Agent{
		Model: react.New(model, nil), // ReActDriver; the model itself is ToolCallingDriver
		Tools: []pawl.Toolset{weather},
		Middleware: []pawl.Middleware{pawl.Before( // beforeToolUse
			func(_ context.Context, call llm.ToolCall) (llm.ToolCall, error) {
				fmt.Println("before", call.Name)
				return call, nil // or pawl.BlockError("reason")
			})},
	}
	res, err := loop.Run(ctx, llm.User("How is the weather?")) // execute()
	// end instructor
	fmt.Println(res.Text(), err)
	// Output:
	// before weather
	// It rains. <nil>
}

func Example_fromOasis() {
	ctx := context.Background()
	// begin oasis
	registry := new(pawl.Registry)
	if err := registry.Add(pawl.Func("weather", "Current weather.", forecast)); err != nil {
		panic(err)
	}
	x := registry.Execute(ctx, "weather", json.RawMessage(`{"City":"Oslo"}`))
	fmt.Println(x.Outcome, x.Result.Text())
	// end oasis
	// Output: ok rain in Oslo
}

func Example_fromUnified() {
	ctx := context.Background()
	model, stop := obedient(forecasts()[:1]...)
	defer stop()
	weather := pawl.Func("weather", "Current weather.", forecast)
	// begin unified
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{weather},
		Limits: pawl.Limits{Rounds: pawl.NoRounds}} // max_tool_rounds=0
	res, err := agent.Run(ctx, llm.User("How is the weather?"))
	var limit *pawl.StopError
	if errors.As(err, &limit) {
		fmt.Println(limit.Reason, res.Calls()[0].Name)
	}
	// end unified
	// Output: limit weather
}

func Example_fromLangGraph() {
	ctx := context.Background()
	model, stop := obedient(forecasts()...)
	defer stop()
	weather := pawl.Func("weather", "Current weather.", forecast)
	// begin langgraph
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{weather},
		Middleware: []pawl.Middleware{policy.Rules{Ask: []string{"weather"}}.Middleware()}} // interrupt()
	engine := &durable.Engine{Journal: new(store.MemoryJournal)} // the checkpointer
	res, err := engine.Runner("thread-1", agent).Run(ctx, llm.User("How is the weather?"))
	fmt.Println(err)
	yes := res.Pending[0].Approve("anna") // Command(resume=…)
	res, err = engine.Runner("thread-1", agent).Run(ctx, llm.DecisionMessage(yes))
	// end langgraph
	fmt.Println(res.Text(), err)
	// Output:
	// pending: calls wait for an answer: weather; Resume with a Decision for each
	// It rains. <nil>
}

func Example_fromOpenAIAgents() {
	ctx := context.Background()
	clerk, stopClerk := obedient(script.Say("Yes, it is paid."))
	defer stopClerk()
	billing := &pawl.Agent{Name: "billing", Model: clerk}
	model, stop := obedient(script.Call("transfer_to_billing", `{}`))
	defer stop()
	// begin openai-agents
	triage, err := team.Handoff(&pawl.Agent{Name: "triage", Model: model}, nil, // handoffs=[billing]
		team.Worker{Agent: billing, Description: "Questions about invoices."})
	if err != nil {
		panic(err)
	}
	res, err := triage.Run(ctx, llm.User("Is invoice 17 paid?")) // Runner.run
	// end openai-agents
	fmt.Println(res.Text(), err)
	// Output: Yes, it is paid. <nil>
}

func Example_fromPydantic() {
	ctx := context.Background()
	model, stop := obedient(script.Say(`{"City":"Oslo"}`))
	defer stop()
	// begin pydantic
	agent := &pawl.Agent{Model: model, Instructions: "Extract the city.",
		Limits: pawl.Limits{Tokens: 10_000}} // UsageLimits
	city, _, err := pawl.Into[place](ctx, agent, llm.User("It rained in Oslo.")) // output_type=place
	// end pydantic
	fmt.Println(city.City, err)
	// Output: Oslo <nil>
}

func Example_fromVercel() {
	ctx := context.Background()
	model, stop := obedient(forecasts()...)
	defer stop()
	weather := pawl.Func("weather", "Current weather.", forecast)
	// begin vercel
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{weather},
		Limits: pawl.Limits{Rounds: 5}} // stopWhen: stepCountIs(5)
	text, end := observe.Text(agent.Stream(ctx, llm.User("How is the weather?"))) // streamText
	for chunk := range text {
		fmt.Print(chunk)
	}
	res, err := end()
	// end vercel
	fmt.Println("", len(res.Steps), "steps", err)
	// Output: It rains. 2 steps <nil>
}

func Example_fromADK() {
	ctx := context.Background()
	drafts, stopDrafts := obedient(script.Say("A draft."))
	defer stopDrafts()
	judge, stopJudge := obedient(script.Say("Fine."))
	defer stopJudge()
	writer := &pawl.Agent{Name: "writer", Model: drafts}
	critic := &pawl.Agent{Name: "critic", Model: judge}
	// begin adk
	// SequentialAgent: the second agent continues the conversation of the first.
	res, err := writer.Run(ctx, llm.User("Write a line."))
	if err != nil {
		panic(err)
	}
	res, err = critic.Resume(ctx, res, llm.User("Judge it."))
	// end adk
	fmt.Println(res.Text(), err)
	// Output: Fine. <nil>
}

func Example_fromEino() {
	ctx := context.Background()
	model, stop := obedient(forecasts()...)
	defer stop()
	// begin eino
	weather := pawl.Func("weather", "Current weather.", forecast) // utils.InferTool
	agent := &pawl.Agent{Name: "desk", Model: model, Tools: []pawl.Toolset{weather}}
	for e, err := range agent.Stream(ctx, llm.User("How is the weather?")) { // runner.Run
		if err != nil {
			panic(err)
		}
		if e.Kind == pawl.EventCallCompleted || e.Kind == pawl.EventRunEnded {
			fmt.Println(e.Kind)
		}
	}
	// end eino
	// Output:
	// call_completed
	// run_ended
}

func Example_fromGenkit() {
	ctx := context.Background()
	model, stop := obedient(script.Call("ask_user", `{"question":"Which city?"}`), script.Say("Oslo it is."))
	defer stop()
	// begin genkit
	ask := &pawl.Tool{Name: "ask_user", Description: "Asks the user.", Passive: true,
		Input: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"}}}`)}
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{ask}}
	res, err := agent.Run(ctx, llm.User("Plan a trip."))
	fmt.Println(err)
	answer := res.Pending[0].Answer("anna", llm.TextResult("Oslo"))
	res, err = agent.Resume(ctx, res, llm.DecisionMessage(answer))
	// end genkit
	fmt.Println(res.Text(), err)
	// Output:
	// pending: calls wait for an answer: ask_user; Resume with a Decision for each
	// Oslo it is. <nil>
}
