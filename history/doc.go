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
