// Package history chooses the part of a long conversation that a model receives. The transcript,
// and the stored conversation, stay whole: each function returns a middleware that changes
// requests on their way to the model.
//
//	agent := &pawl.Agent{Model: m, Middleware: []pawl.Middleware{history.Window(nil)}}
//
// Without such a middleware everything is sent, which suits follow-up questions and prompt caches.
// The functions:
//
//	DropPastToolCalls  all messages, but no calls, results and reasoning of earlier turns
//	LastTurns          the last turns
//	Window             what fits the model's context window, also within a turn
//
//	 system │ turn 1      │ turn 2                       │ turn 3, current
//	 ───────┼─────────────┼──────────────────────────────┼───────────────────────────────
//	 sent   │ user, reply │ user, calls, results, reply  │ user, calls, results, …
//	        │◀── a cut stands before a turn, never inside one ──▶│  always sent whole
//
// A turn is a message of the user and everything that follows from it. So a call and its results
// stay together, and a part of a valid transcript is valid. The current turn (llm.Request.Turn) is
// never cut, except by Window. Instructions stay in front.
//
// Prompt caches hit as long as a request begins like the one before. So cuts depend on the
// transcript alone, only move forward, and move rarely: a cut leaves out more than necessary. A
// notice with the code messages_cut reports it. The middlewares can be nested.
package history

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// NoticeCut is the code of the notice that more of the conversation is left out than before.
const NoticeCut = "messages_cut"

// cutter returns the view of a request.
type cutter func(req *llm.Request) fold.View

func (c cutter) middleware() pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model { return &model{m, c} }}
}

// model sends the view of each request on.
type model struct {
	inner llm.Model
	cut   cutter
}

// Unwrap returns the inner model.
func (m *model) Unwrap() llm.Model { return m.inner }

// Stream sends the view of req.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		v := m.cut(req)
		for _, n := range v.Notices {
			if !yield(llm.Delta{Notice: n}, nil) {
				return
			}
		}
		r := *req
		r.Messages = v.Messages
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
	head     int   // how many are instructions
	starts   []int // where the turns begin; never empty

	// the current turn; later ones are corrections by its run, which look like the user's messages
	current int
}

// parse finds the turns of req. In a request outside a run, the current turn begins with the user's
// last message.
func parse(req *llm.Request) conversation {
	c := conversation{messages: req.Messages}
	for c.head < len(c.messages) && fold.Instructs(c.messages[c.head].Role) {
		c.head++
	}
	current := req.Turn
	if req.Key == "" && current == 0 {
		for current = len(c.messages) - 1; current > c.head && c.messages[current].Role != llm.RoleUser; current-- {
		}
	}
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

// cut is a place before a turn: what stands before it, but for the instructions, is left out.
type cut struct {
	turn int // how many turns are left out
	at   int // how long the conversation was when the cut came to stand here
}

// from returns the view that leaves the first turns out.
func (c *conversation) from(k cut, req *llm.Request) fold.View {
	if k.turn == 0 {
		return fold.View{Messages: c.messages, Turn: req.Turn, Edited: req.Edited}
	}
	start := c.starts[k.turn]
	v := fold.View{Messages: make([]llm.Message, 0, c.head+len(c.messages)-start)}
	v.Messages = append(v.Messages, c.messages[:c.head]...)
	v.Messages = append(v.Messages, c.messages[start:]...)
	shift := c.head - start
	v.Turn = max(0, req.Turn+shift)
	v.Edited = max(k.at, req.Edited) + shift
	if c.fresh(k) {
		v.Notices = append(v.Notices, &llm.Notice{Code: NoticeCut, Text: fmt.Sprintf("from here on the first %d turns (%d messages) are left out of requests", k.turn, start-c.head)})
	}
	return v
}

// fresh reports whether the cut did not stand here at the request before.
func (c *conversation) fresh(k cut) bool {
	for i := len(c.messages) - 1; i >= k.at; i-- {
		if c.messages[i].Role == llm.RoleAssistant {
			return false // it answers a request that was cut so
		}
	}
	return true
}

// Edited says what Window put away right before the request of a reply, for people. Empty means
// nothing.
func Edited(reply llm.Message) string { return fold.Edited(reply) }
