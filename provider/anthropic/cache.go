package anthropic

import "github.com/pawl-go/pawl"

// cacheMark is a cache breakpoint: the server keeps what is before it for some minutes.
const cacheMark = `{"type":"ephemeral"}`

// marks says where a request has its breakpoints, four at most: at the end of the tools, of the system prompt, and at two
// places of the conversation. At Anthropic's own server these are the end of the first message, and the end of all, where
// one mark outside the messages lets the server put it: so no mark moves, and the messages of a turn begin with the bytes of
// the turn before. Servers that do not know that mark get two in the messages, at the end of the last two turns of the user's.
type marks struct {
	on         bool
	top        bool // the mark outside the messages
	first      bool // after the first messages of the user's
	last, prev int  // after these messages; -1: nowhere
}

func (e *encoder) toMarks(messages []pawl.Message) marks {
	c := marks{last: -1, prev: -1}
	if e.noCache || e.own.cached {
		return c
	}
	c.on = true
	if e.newest() {
		c.top, c.first = true, true
		return c
	}
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == pawl.RoleAssistant || i+1 < len(messages) && messages[i+1].Role != pawl.RoleAssistant {
			continue
		}
		if c.last < 0 {
			c.last = i
		} else {
			c.prev = i
			break
		}
	}
	return c
}

// at reports whether there is a mark after message i, which ends the first of the user's or does not.
func (c *marks) at(i int, first bool) bool {
	return c.on && (c.first && first || i == c.last || i == c.prev)
}

// mark puts a breakpoint on the block that was written last.
func (e *encoder) mark() {
	e.B = append(e.B[:len(e.B)-1], `,"cache_control":`+cacheMark+`}`...)
}
