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

// history.go: what a request leaves out, as a middleware.

import (
	"context"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// NoticeCut is the code of the notice that more of the conversation is left out than before.
const NoticeCut = "messages_cut"

// cutter returns the view of a request, and a notice if more is left out than before.
type cutter func(req *llm.Request) (fold.View, *llm.Notice)

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
		v, notice := m.cut(req)
		if notice != nil && !yield(llm.Delta{Notice: notice}, nil) {
			return
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

// Edited says what Window put away right before the request of a reply, for people. Empty means
// nothing.
func Edited(reply llm.Message) string { return fold.Edited(reply) }
