package history

import (
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// DropPastToolCalls returns the middleware that sends the whole conversation without the calls,
// results and reasoning of earlier turns. Instructor does so by default. It saves most if results
// are long. The price is that a follow-up question about a result calls the tool again.
func DropPastToolCalls() pawl.Middleware {
	return cutter(func(req *llm.Request) fold.View {
		c := parse(req)
		now := c.starts[c.current]
		v := fold.View{Messages: make([]llm.Message, 0, len(c.messages))}
		edited := req.Edited
		for t := range c.current { // the calls of a turn are dropped when the next begins
			if slices.ContainsFunc(c.messages[c.starts[t]:c.starts[t+1]], llm.Message.HasCalls) {
				edited = max(edited, c.starts[t+1])
			}
		}
		for i, m := range c.messages {
			if i < now && m.Role == llm.RoleTool {
				continue
			}
			if i < now && m.HasCalls() {
				m = words(m)
				if len(m.Parts) == 0 {
					continue
				}
			}
			if i <= req.Turn {
				v.Turn = len(v.Messages)
			}
			v.Messages = append(v.Messages, m)
			if i < edited {
				v.Edited = len(v.Messages)
			}
		}
		return v
	}).middleware()
}

// words returns m without its calls and reasoning. Providers accept reasoning only with its calls.
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

// LastTurns returns the middleware that sends the last n turns, the current one included; n below 1
// means 1. To move the cut less often than each turn, it sends up to half of n more: for 10,
// between 10 and 14.
func LastTurns(n int) pawl.Middleware {
	n = max(1, n)
	return cutter(func(req *llm.Request) fold.View {
		c := parse(req)
		return c.from(c.last(n), req)
	}).middleware()
}

func (c *conversation) last(n int) cut {
	step := max(1, n/2)
	var k cut
	if over := len(c.starts) - n; over > 0 {
		k.turn = min(over/step*step, c.current)
		if k.turn > 0 {
			k.at = c.starts[k.turn+n-1] // the turn that moved it here
		}
	}
	return k
}
