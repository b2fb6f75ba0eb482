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
// Prompt caches hit as long as a request begins like the one before. So what is left out depends on
// the transcript alone, only grows, and grows rarely, by more than necessary. A notice reports it.
// Instructions stay in front. The middlewares can be nested.
//
// # Turns
//
// A turn is a message of the user and everything that follows from it. So a call and its results
// stay together, and a part of a valid transcript is valid. DropPastToolCalls and LastTurns never
// change the current turn (llm.Request.Turn).
//
//	system │ turn 1      │ turn 2                       │ turn 3, current
//	───────┼─────────────┼──────────────────────────────┼───────────────────────────────
//	sent   │ user, reply │ user, calls, results, reply  │ user, calls, results, …
//	       │◀── a cut stands before a turn, never inside one ──▶│  always sent whole
//
// # Rounds
//
// An agent that works alone has one long turn. Window shortens it by rounds: a round is a reply and
// the results of its calls. The oldest rounds are shortened first, in two stages.
//
//	system, task │ round 1 … 40          │ round 41 … 58        │ round 59, 60, 61
//	─────────────┼───────────────────────┼──────────────────────┼─────────────────────────────
//	sent whole   │ folded: one record    │ stubs: a line for    │ whole; results that are long
//	             │ of what was done      │ each result, with id │ for the window are cut first
//
// A request takes this path through the code:
//
//	windowed.Stream       window.go   one request, and up to two shorter ones after a refusal
//	  planner.next        plan.go     the state of the last reply, and an edit if High is passed
//	    window.sizes      sizes.go    what High and Low are in bytes, by the provider's last count
//	    planner.putAway   plan.go     how many rounds become stubs, and how many are folded
//	    planner.render    plan.go     the messages of that state, by package history/internal/fold
//	  sending.send        window.go   the inner model streams
//	  sending.withMark    window.go   the new state is the last part of the reply
//
// The state of Window (fold.Mark) stands in the replies of the transcript and nowhere else. So a
// run that is resumed, forked or replayed sends the same requests. Readers who do not use
// WindowOptions.Notes and Native can skip notes.go and native.go.
package history
