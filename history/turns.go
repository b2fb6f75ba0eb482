package history

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// CurrentTrace returns the middleware that sends the whole conversation, but how things were found out for the turn at hand only: the calls of earlier turns,
// their results, and the reasoning beside them are left out. It is what Instructor does by default. It saves most where results are
// long; the price is that a follow-up question about a result calls the tool again.
func CurrentTrace() pawl.Middleware {
	return compiler(func(_ context.Context, _ llm.Model, req *llm.Request) (view, error) {
		c := parse(req)
		now := c.starts[c.current]
		v := view{messages: make([]llm.Message, 0, len(c.messages))}
		for i, m := range c.messages {
			if i < now && m.Role == llm.RoleTool {
				continue
			}
			if i < now && m.HasCalls() {
				if m = words(m); len(m.Parts) == 0 {
					continue
				}
			}
			if i <= req.Turn {
				v.turn = len(v.messages)
			}
			v.messages = append(v.messages, m)
		}
		return v, nil
	}).middleware()
}

// words returns m without its calls, and without the reasoning, which providers take back with the calls that it led to and not alone.
func words(m llm.Message) llm.Message {
	parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool {
		switch p := p.(type) {
		case llm.ToolCall, llm.Reasoning:
			return true
		case llm.Text:
			return p.Text == ""
		}
		return false
	})
	return llm.Message{Role: m.Role, Parts: parts}
}

// LastTurns returns the middleware that sends the last n turns, the one at hand included; n below 1 is 1. So that the cut does not move with each turn, up to half of n more are
// sent: of 10, between 10 and 14.
func LastTurns(n int) pawl.Middleware {
	n = max(1, n)
	return compiler(func(_ context.Context, _ llm.Model, req *llm.Request) (view, error) {
		c := parse(req)
		return c.from(c.last(n), req.Turn), nil
	}).middleware()
}

func (c *conversation) last(n int) cut {
	step := max(1, n/2)
	var k cut
	if over := len(c.starts) - n; over > 0 {
		if k.turn = min(over/step*step, c.current); k.turn > 0 {
			k.at = c.starts[k.turn+n-1] // the turn that moved it here
		}
	}
	return k
}
