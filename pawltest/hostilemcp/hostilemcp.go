// Package hostilemcp is a kit of MCP servers that behave badly. It states what a client in an agent
// should do about each of them, and judges clients.
//
//	Behaviours ──▶ a fake server, over HTTP or as a process ──▶ a Client ──▶ a model
//	    │                                                                      │
//	    └── Want ──▶ Play ◀── which calls ran, what the model read ◀───────────┘
//
// A Behaviour is a server with one tool, note, and a fault: in its results, its sessions, its
// tokens, its lines on standard output, or its lists. A play is a run in which the model calls the
// tool a few times, and a second turn of the same conversation. A behaviour is met if both runs end
// with an answer, if the tool ran as often as wanted, and if the model read what it needs. A result
// says that its call may have happened only where that is true.
//
// A program that plays behaviours of processes calls ServeProcess first.
package hostilemcp

import (
	"slices"
	"strings"
	"time"
)

// Kinds are the kinds of behaviours, in the order of the table.
var Kinds = []string{"lines", "results", "lists", "sessions", "tokens"}

// Behaviour is one way in which a server behaves badly. Treat it as read only.
type Behaviour struct {
	ID    string // unique
	Kind  string // one of Kinds
	Title string // the action of the server, without the words "the server" before it
	// Process means that the server is a process on standard input and output. Otherwise it has an
	// address.
	Process bool
	// Calls is the number of calls of the model, one after the other. 0 means 1.
	Calls int
	// Pause is the time that the model takes before the second call.
	Pause time.Duration
	// Login means that the client gets credentials for the server.
	Login bool
	Want  Want

	fault fault
}

// Want is the expected outcome.
type Want struct {
	// Says has words that the result of each call must contain. Nil means "done 1", "done 2" and so
	// on, which the tool returns.
	Says []string
	// Ran is the number of times that the tool runs. 0 means once for each call, -1 means never.
	Ran int
	// Unknown is the number of results that say that the call may have happened.
	Unknown int
	// Later is the number of tools that the second run has. 0 means the one, -1 means none.
	Later int
}

// says returns the words of the result of a call, from 0.
func (b *Behaviour) says(call int) string {
	if b.Want.Says == nil {
		return "done " + string(rune('1'+call))
	}
	return b.Want.Says[call]
}

// ran returns the number of times that the tool runs.
func (b *Behaviour) ran() int {
	switch b.Want.Ran {
	case 0:
		return b.Calls
	case -1:
		return 0
	}
	return b.Want.Ran
}

// Find returns the Behaviour with the ID, or nil.
func Find(all []Behaviour, id string) *Behaviour {
	i := slices.IndexFunc(all, func(b Behaviour) bool { return b.ID == id })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Behaviours returns all of them, in the order of the table.
func Behaviours() []Behaviour {
	all := slices.Concat(lines(), results(), lists(), sessions(), tokens())
	for i := range all {
		all[i].Calls = max(all[i].Calls, 1)
		all[i].Kind, _, _ = strings.Cut(all[i].ID, "-")
	}
	return all
}
