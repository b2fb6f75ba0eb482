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

// Worker is an agent that gets work. Its name is also the name of its tool, so the workers of a
// team have different names.
type Worker struct {
	// Agent does the work. Its name is the name of the tool by which it is called.
	Agent *pawl.Agent

	// Description is the worker's purpose, for the lead. Empty means the beginning of its
	// instructions.
	Description string

	// Tools are the tools that direct steps of a script may name. Nil means all of its tools.
	Tools []string
}

// about returns the description of w for the lead.
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

// checked reports the faults of a team: no lead or no workers, and names that are missing,
// duplicate, or taken by another tool.
func checked(lead *pawl.Agent, workers []Worker, taken ...string) error {
	if lead == nil {
		return errors.New("team: there is no lead")
	}
	if lead.Model == nil {
		return errors.New("team: the lead has no model")
	}
	// In these teams the manager makes the calls, and the lead only writes texts.
	if len(taken) > 0 && len(lead.Tools) > 0 {
		return fmt.Errorf("team %s: the lead of such a team calls no tools of its own; give them to a worker, "+
			"or make it a Network", nameOf(lead))
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

// catalogue lists workers, one a line.
func catalogue(workers []Worker) string {
	var b strings.Builder
	for _, w := range workers {
		fmt.Fprintf(&b, "- %s: %s\n", w.Agent.Name, w.about())
	}
	return b.String()
}

// tool returns w as a tool. A task that it gets twice is done once.
func (w Worker) tool() *pawl.Tool {
	t := w.Agent.Tool(w.about()).Clone()
	t.Run = once(t.Run)
	return t
}

// once returns work, except that a call that was made before in this turn returns the result of the
// first. It looks at the transcript alone, so a resumed or replayed run finds the same. After a
// failure the work is done again.
func once(work pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		if v == nil {
			return work(ctx, call)
		}
		if r, ok := doneBefore(v.Messages(), v.Call.ID, call); ok {
			v.FromCache()
			return r, nil
		}
		return work(ctx, call)
	}
}

// doneBefore returns the result of an equal call of this turn that succeeded. Of equal calls in one
// reply, the first is executed, and the others refer to it. id is the ID of the call itself.
func doneBefore(msgs []llm.Message, id string, call llm.ToolCall) (r llm.ToolResult, ok bool) {
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
			if c.Name != call.Name || !equalJSON(c.Args, call.Args) {
				continue
			}
			if r, ok := results[c.ID]; ok && !r.IsError {
				return llm.ToolResult{Parts: r.Parts, Data: r.Data, Label: r.Label}, true
			}
			isLater := func(d llm.ToolCall) bool { return d.ID == id }
			if i == last && slices.ContainsFunc(calls[k+1:], isLater) {
				text := fmt.Sprintf("The same task is in call %s, and is done once: its result is there.", c.ID)
				return llm.TextResult(text), true
			}
		}
	}
	return r, false
}

// equalJSON reports whether a and b are the same JSON value.
func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
