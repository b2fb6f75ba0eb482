package pawl

// agent_tool.go: an agent as a tool of another agent.

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// Tool returns a tool that runs a as a subagent: it takes a task in words and returns the answer.
// Its name is the name of the agent. The limits of a apply to the nested run, Time included. The
// nested run also counts against the remaining budget of the run around it, and shares its slots.
// The keys of its events start with the key of the call.
func (a *Agent) Tool(description string) *Tool {
	if a == nil {
		return nil // Agent.Check reports it
	}
	name := cmp.Or(a.Name, "agent")
	type input struct {
		Task string `json:"task" jsonschema:"The whole task: the agent sees nothing else"`
	}
	t := Func(name, description, func(ctx context.Context, in input) (llm.ToolResult, error) {
		v := InvocationFrom(ctx)
		if v == nil {
			res, err := a.Run(ctx, llm.User(in.Task))
			return innerResult(name, res, err)
		}
		outer := v.work.task.scope
		if outer.remote {
			return llm.ErrorResult("Not run: an agent cannot run in a call that a process other than the run's executes."), nil
		}
		if outer.depth >= maxDepth {
			return llm.ErrorResult(fmt.Sprintf("Not run: agents and calls are nested more than %d deep.", maxDepth)), nil
		}
		o := runOptions{whole: outer.whole, inside: v, key: v.Key + "/" + llm.Key(name)}
		if outer.watched {
			o.emit = v.send
		}
		// The model of this run wrote the task.
		task := llm.User(in.Task).WithLabel(v.Label())
		var res *Result
		var err error
		if outer.engine.Branch != nil {
			res, err = v.branch(ctx, a, o.key, []llm.Message{task})
		} else {
			res, err = a.run(ctx, nil, []llm.Message{task}, o)
		}
		if res != nil && res.Stop == StopPending && v.CanWait() {
			return llm.ToolResult{}, v.addPending(res.Pending)
		}
		if ctx.Err() != nil && (res == nil || res.Stop.Class() != ClassAnswered) {
			return llm.ToolResult{}, context.Cause(ctx) // not an answer: the call was interrupted
		}
		return innerResult(name, res, err)
	})
	t.Effect, t.Inline, t.Timeout, t.Output, t.agent = EffectCompose, true, -1, a.Output, a
	return t
}

func innerResult(name string, res *Result, err error) (llm.ToolResult, error) {
	// The Result has the reason of a stop. Only a cause inside it is a failure.
	if stop, ok := err.(*StopError); ok {
		err = stop.Err
	}
	switch {
	case err != nil:
		return llm.ErrorResult(fmt.Sprintf("%s failed: %v", name, err)), nil
	case res.Stop.Class() == ClassAnswered:
		answer := llm.TextResult(res.Text())
		answer.Data = res.Output
		if len(res.Messages) > 0 { // the answer has the label of what its author had read
			answer.Label = labelOf(res.Messages)
		}
		return answer, nil
	}
	text := fmt.Sprintf("%s stopped without an answer (%s): %s", name, res.Stop, res.Cause)
	if t := res.Text(); t != "" {
		text += "\nIts last words: " + t
	}
	return llm.ErrorResult(text), nil
}
