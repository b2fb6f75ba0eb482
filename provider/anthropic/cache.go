package anthropic

import (
	"slices"
	"time"
)

// cacheMark is a cache breakpoint: the server caches what precedes it for some minutes.
const cacheMark = `{"type":"ephemeral"}`

// lifetimeMarks are the breakpoints for the lifetimes of cache entries that a program can choose.
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching
var lifetimeMarks = map[time.Duration]string{
	0:               cacheMark,
	5 * time.Minute: `{"type":"ephemeral","ttl":"5m"}`,
	time.Hour:       `{"type":"ephemeral","ttl":"1h"}`,
}

// checkCache returns the error of settings of the cache that the API does not have.
func checkCache(o *Options) error {
	_, known := lifetimeMarks[o.CacheTTL]
	switch {
	case !known:
		return unsupported("cache.ttl", "Anthropic caches for 5m or 1h, not for %s", o.CacheTTL)
	case o.CacheTTL != 0 && o.NoCache:
		return invalid("cache.ttl", "a lifetime has no effect without the cache; leave out CacheTTL or NoCache")
	}
	return nil
}

// marks are the places of a request's breakpoints, at most four: the end of the tools, the end of
// the system prompt, and two in the conversation. At Anthropic these two are the end of the first
// message and one mark outside the messages, which the server applies to the end. So no mark
// moves, and the body of a turn begins with the bytes of the turn before. Servers that do not know
// the outer mark get two in the messages, at the end of the last two user turns.
type marks struct {
	on    bool
	fixed bool // after the first user turn, and outside the messages
	moves bool // after the last two user turns
}

func (e *encoder) toMarks() marks {
	on := !e.noCache && !e.own.cached
	return marks{on, on && e.newest(), on && !e.newest()}
}

// mark puts a breakpoint on the block that was written last.
func (e *encoder) mark() {
	e.Body = append(append(e.Body[:len(e.Body)-1], e.markMember()...), '}')
}

// markMember returns the member that makes a block a breakpoint.
func (e *encoder) markMember() []byte { return []byte(`,"cache_control":` + lifetimeMarks[e.ttl]) }

// turns are the places of the moving marks in the body without them, the earlier turn first. A
// place is the end of the last block of a turn; 0 means none.
type turns [2]int

// turned records that a user turn ends here.
func (e *encoder) turned() {
	end := 0
	if e.role == "user" {
		end = len(e.Body) - 1
	}
	if e.turns[1] == end {
		e.turns[1] = 0 // the turn has no block
	}
	e.turns = turns{e.turns[1], end}
}

// markTurns inserts the moving marks into the body.
func (e *encoder) markTurns() {
	for _, at := range [...]int{e.turns[1], e.turns[0]} {
		if at > 0 {
			e.Body = slices.Insert(e.Body, at, e.markMember()...)
		}
	}
}
