package hostilemcp

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// Open opens a model of an API at a base URL, with any key.
type Open func(api, base string) llm.Model

// Agent is pawl as a Client. The model is played over the API by a simulator, which refuses what a
// provider would refuse.
func Agent(api string, open Open) Client {
	return func(ctx context.Context, s Server, calls int) Report {
		var turns []script.Turn
		for i := range calls {
			turns = append(turns, script.Func(func(*llm.Request) script.Turn {
				if i == 1 {
					time.Sleep(s.Pause)
				}
				return script.Call("note", fmt.Sprintf(`{"text":"%d"}`, i+1))
			}))
		}
		turns = append(turns, script.Say("Done."), script.Say("Goodbye."))
		sim, err := pawltest.NewSimulator(&script.Model{Turns: turns, Quiet: true}, nil)
		if err != nil {
			return Report{Err: err}
		}
		defer sim.Close()

		client, err := mcp.New(s.config(), &mcp.Options{Getenv: func(string) string { return s.Secret }})
		if err != nil {
			return Report{Err: err}
		}
		defer client.Close()
		agent := &pawl.Agent{Name: "kit", Model: open(api, sim.URL), Tools: []pawl.Toolset{client}}
		return twice(ctx, agent)
	}
}

// twice makes two runs of one conversation.
func twice(ctx context.Context, agent *pawl.Agent) Report {
	res, err := agent.Run(ctx, llm.User("Write the notes."))
	if res == nil {
		return Report{Err: err}
	}
	r := Report{Err: err, Results: texts(res.Messages)}
	if err != nil {
		return r
	}
	_, err = agent.Run(ctx, append(res.Messages, llm.User("Goodbye."))...)
	if err != nil {
		r.Invalid = err.Error()
	}
	return r
}

// texts returns the texts of the results in a conversation.
func texts(messages []llm.Message) (all []string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if result, ok := p.(llm.ToolResult); ok {
				all = append(all, result.Text())
			}
		}
	}
	return all
}
