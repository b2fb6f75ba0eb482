package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Worker is an agent that is given work. Its name is that of the tool by which it gets it, so no two workers of a team have the same.
type Worker struct {
	Agent       *pawl.Agent
	Description string   // what it is good for, for whoever chooses; "": the beginning of its instructions
	Tools       []string // those that direct steps of a script may name; nil: all of its tools
}

// about is what whoever chooses is told of w.
func (w Worker) about() string {
	if w.Description != "" {
		return w.Description
	}
	text := strings.Join(strings.Fields(w.Agent.Instructions), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return cmp.Or(text, "Works on a task.")
}

// checked reports what is wrong with a team: nobody to lead or to work, names that are missing, taken twice, or another tool's.
func checked(lead *pawl.Agent, workers []Worker, taken ...string) error {
	if lead == nil {
		return errors.New("team: there is no lead")
	}
	if lead.Model == nil {
		return errors.New("team: the lead has no model")
	}
	if len(taken) > 0 && len(lead.Tools) > 0 {
		return fmt.Errorf("team %s: the lead of such a team calls no tools of its own; give them to a worker, or make it a Network", nameOf(lead))
	}
	if len(workers) == 0 {
		return fmt.Errorf("team %s: there is no worker", nameOf(lead))
	}
	seen := map[string]bool{}
	for _, n := range taken {
		seen[n] = true
	}
	for i, w := range workers {
		switch {
		case w.Agent == nil:
			return fmt.Errorf("team %s: worker %d is no agent", nameOf(lead), i+1)
		case w.Agent.Name == "":
			return fmt.Errorf("team %s: worker %d has no name", nameOf(lead), i+1)
		case w.Agent.Model == nil:
			return fmt.Errorf("team %s: worker %s has no model", nameOf(lead), w.Agent.Name)
		case w.Agent == lead:
			return fmt.Errorf("team %s: the lead is among its own workers", nameOf(lead))
		case seen[w.Agent.Name]:
			return fmt.Errorf("team %s: the name %s is taken; rename the worker", nameOf(lead), w.Agent.Name)
		}
		seen[w.Agent.Name] = true
	}
	return nil
}

func nameOf(a *pawl.Agent) string { return cmp.Or(a.Name, "team") }

// namesOf are the names of workers, in their order.
func namesOf(workers []Worker) []string {
	names := make([]string, len(workers))
	for i, w := range workers {
		names[i] = w.Agent.Name
	}
	return names
}

// catalogue tells of workers, a line each.
func catalogue(workers []Worker) string {
	var b strings.Builder
	for _, w := range workers {
		fmt.Fprintf(&b, "- %s: %s\n", w.Agent.Name, w.about())
	}
	return b.String()
}

// tool is w as a tool. What is given to it twice is done once.
func (w Worker) tool() *pawl.Tool {
	t := w.Agent.Tool(w.about()).Clone()
	t.Run = once(t.Run)
	return t
}

// once is work, but for a call that was made before in this turn of the conversation, which has what that one came to. It looks at the transcript and at nothing else,
// so it finds the same when the run is resumed or played again. A failure is no answer: then the work is done.
func once(work pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		if v == nil {
			return work(ctx, call)
		}
		msgs := v.Messages()
		last := len(msgs) - 1
		results := map[string]llm.ToolResult{}
		for i := last; i >= 0 && msgs[i].Role != llm.RoleUser; i-- {
			for _, p := range msgs[i].Parts {
				if r, ok := p.(llm.ToolResult); ok {
					results[r.CallID] = r
				}
			}
			calls := msgs[i].Calls()
			for k, c := range calls {
				if c.Name != call.Name || !same(c.Args, call.Args) {
					continue
				}
				if r, ok := results[c.ID]; ok && !r.IsError {
					v.FromCache()
					return llm.ToolResult{Parts: r.Parts, Data: r.Data}, nil
				}
				if i == last && slices.ContainsFunc(calls[k+1:], func(d llm.ToolCall) bool { return d.ID == v.Call.ID }) {
					v.FromCache()
					return llm.TextResult(fmt.Sprintf("The same task stands beside it, in call %s, and is done once: its result is there.", c.ID)), nil
				}
			}
		}
		return work(ctx, call)
	}
}

// same reports whether a and b are the same JSON value.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
