package history

// turns.go: DropPastToolCalls and LastTurns, which leave out parts of earlier turns.

import (
	"context"
	"iter"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// NoticeCut is the code of the notice that more of the conversation is left out than before.
const NoticeCut = "messages_cut"

// cutter returns the view of a request, and a notice if more is left out than before. It depends on
// the request alone, and has no state.
type cutter func(req *llm.Request) (fold.View, *llm.Notice)

func (c cutter) middleware() pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model { return &cutModel{m, c} }}
}

// cutModel is a model that receives the view of each request.
type cutModel struct {
	inner llm.Model
	cut   cutter
}

// Unwrap returns the inner model.
func (m *cutModel) Unwrap() llm.Model { return m.inner }

// Stream sends the view of req.
func (m *cutModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		v, notice := m.cut(req)
		if notice != nil && !yield(llm.Delta{Notice: notice}, nil) {
			return
		}

		r := *req
		r.Messages = v.Messages
		// Both are indexes into the messages, some of which are missing in the view.
		r.Turn = v.Turn
		r.Edited = v.Edited
		for d, err := range m.inner.Stream(ctx, &r) {
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// conversation is a list of messages by turns.
type conversation struct {
	messages []llm.Message
	head     int   // the number of messages at the beginning that are instructions
	starts   []int // the indexes of the messages that begin turns; never empty

	// The number of the current turn. A turn after it is a correction by its run, such as "The
	// answer does not fit.", which has the form of a message of the user.
	current int
}

// turnsOf finds the turns of req.
func turnsOf(req *llm.Request) conversation {
	c := conversation{messages: req.Messages}
	for c.head < len(c.messages) && fold.Instructs(c.messages[c.head].Role) {
		c.head++
	}

	// Several messages of the user in a row begin one turn.
	current := c.currentMessage(req)
	c.starts = append(c.starts, c.head)
	for i := c.head + 1; i < len(c.messages); i++ {
		if c.messages[i].Role == llm.RoleUser && c.messages[i-1].Role != llm.RoleUser {
			c.starts = append(c.starts, i)
			if i <= current {
				c.current++
			}
		}
	}
	return c
}

// currentMessage returns the index of the message that began the current turn. In a request outside
// a run, that is the user's last message.
func (c *conversation) currentMessage(req *llm.Request) int {
	if req.Key != "" || req.Turn != 0 {
		return req.Turn
	}
	i := len(c.messages) - 1
	for i > c.head && c.messages[i].Role != llm.RoleUser {
		i--
	}
	return i
}

// DropPastToolCalls returns the middleware that sends the whole conversation without the calls,
// results and reasoning of earlier turns. Instructor does so by default. It saves most if results
// are long. The price is that a follow-up question about a result calls the tool again.
func DropPastToolCalls() pawl.Middleware {
	return cutter(func(req *llm.Request) (fold.View, *llm.Notice) {
		c := turnsOf(req)
		return c.withoutPastCalls(req), nil
	}).middleware()
}

// withoutPastCalls returns the view without the calls of earlier turns.
func (c *conversation) withoutPastCalls(req *llm.Request) fold.View {
	// The calls of a turn are dropped when the next turn begins. Its replies were written before.
	dropped := *req
	for t := range c.current {
		end := c.starts[t+1]
		if slices.ContainsFunc(c.messages[c.starts[t]:end], llm.Message.HasCalls) {
			dropped.Edited = max(dropped.Edited, end)
		}
	}

	now := c.starts[c.current]
	v := fold.View{Messages: make([]llm.Message, 0, len(c.messages))}
	for i, m := range c.messages {
		if i < now && m.Role == llm.RoleTool {
			continue
		}
		if i < now && m.HasCalls() {
			m = withoutCalls(m)
			if len(m.Parts) == 0 {
				continue
			}
		}
		v.Add(&dropped, i, m)
	}
	return v
}

// withoutCalls returns a reply without its calls, and without its reasoning, which providers accept
// only with the calls that followed it.
func withoutCalls(reply llm.Message) llm.Message {
	parts := slices.DeleteFunc(slices.Clone(reply.Parts), func(p llm.Part) bool {
		switch p := p.(type) {
		case llm.ToolCall, llm.Reasoning:
			return true
		case llm.Text:
			return p.Text == ""
		}
		return false
	})
	return llm.Message{Role: reply.Role, Parts: parts}
}

// LastTurns returns the middleware that sends the last n turns, the current one included; n below 1
// means 1. To move the cut less often than each turn, it sends up to half of n more: for 10,
// between 10 and 14.
func LastTurns(n int) pawl.Middleware {
	n = max(1, n)
	return cutter(func(req *llm.Request) (fold.View, *llm.Notice) {
		c := turnsOf(req)
		return c.after(c.cutFor(n), req)
	}).middleware()
}

// cut is a place before a turn: what stands before it, except the instructions, is left out.
type cut struct {
	turns int // how many are left out
	since int // how long the conversation was when the cut came to stand here
}

// cutFor returns the cut that leaves the last n turns, and up to half of n more.
func (c *conversation) cutFor(n int) cut {
	step := max(1, n/2)
	over := max(0, len(c.starts)-n)
	turns := min(over/step*step, c.current)
	if turns == 0 {
		return cut{}
	}
	return cut{turns: turns, since: c.starts[turns+n-1]} // the turn that moved it here
}

// after returns the view behind the cut k. The notice is nil if the cut stood there at the request
// before.
func (c *conversation) after(k cut, req *llm.Request) (v fold.View, moved *llm.Notice) {
	if k.turns == 0 {
		return fold.View{Messages: c.messages, Turn: req.Turn, Edited: req.Edited}, nil
	}

	start := c.starts[k.turns]
	v.Messages = make([]llm.Message, 0, c.head+len(c.messages)-start)
	v.Messages = append(v.Messages, c.messages[:c.head]...)
	v.Messages = append(v.Messages, c.messages[start:]...)

	// Indexes into the request become indexes into the view.
	shift := c.head - start
	v.Turn = max(0, req.Turn+shift)
	v.Edited = max(k.since, req.Edited) + shift

	if c.isNew(k) {
		moved = notice(NoticeCut, "from here on the first %d turns (%d messages) are left out of requests",
			k.turns, start-c.head)
	}
	return v, moved
}

// isNew reports whether the cut did not stand here at the request before.
func (c *conversation) isNew(k cut) bool {
	for i := len(c.messages) - 1; i >= k.since; i-- {
		if c.messages[i].Role == llm.RoleAssistant {
			return false // it answers a request that was cut so
		}
	}
	return true
}
