package anthropic

import "slices"

// cacheMark is a cache breakpoint: the server keeps what is before it for some minutes.
const cacheMark = `{"type":"ephemeral"}`

// marks says where a request has its breakpoints, four at most: at the end of the tools, of the system prompt, and at two
// places of the conversation. At Anthropic's own server these are the end of the first message, and the end of all, where
// one mark outside the messages lets the server put it: so no mark moves, and the messages of a turn begin with the bytes of
// the turn before. Servers that do not know that mark get two in the messages, at the end of the last two turns of the user's.
type marks struct {
	on    bool
	fixed bool // after the first messages of the user's, and outside the messages
	moves bool // after the last two turns of the user's
}

func (e *encoder) toMarks() marks {
	on := !e.noCache && !e.own.cached
	return marks{on, on && e.newest(), on && !e.newest()}
}

// mark puts a breakpoint on the block that was written last.
func (e *encoder) mark() {
	e.B = append(append(e.B[:len(e.B)-1], markMember...), '}')
}

var markMember = []byte(`,"cache_control":` + cacheMark)

// turns are the places of the marks that move, in the body without them: 0, or where the last block of a turn ends, the earlier turn first.
type turns [2]int

// turned notes that a turn of the user's ends with the block that was written last, or without any.
func (e *encoder) turned() {
	end := 0
	if e.role == "user" {
		end = len(e.B) - 1
	}
	if e.turns[1] == end {
		e.turns[1] = 0 // it added nothing to the turn before
	}
	e.turns = turns{e.turns[1], end}
}

// markTurns puts the marks that move into the body.
func (e *encoder) markTurns() {
	for _, at := range [...]int{e.turns[1], e.turns[0]} {
		if at > 0 {
			e.B = slices.Insert(e.B, at, markMember...)
		}
	}
}
