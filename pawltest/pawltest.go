// Package pawltest is for testing what is built on pawl, with the means pawl is tested with.
//
//	                        ┌────────────── Simulator ───────────────┐
//	agent ─▶ adapter ─HTTP─▶│ Check ▶ its own reader ▶ a script plays │   made-up conversations, faults on demand
//	                        └────────────────────────────────────────┘
//	                        ┌─────────────── Replay ─────────────────┐
//	agent ─▶ adapter ─HTTP─▶│ Check ▶ the next recorded reply         │   recorded conversations
//	                        └────────────────────────────────────────┘
//
// Simulator is a provider on loopback that speaks OpenAI's Chat Completions and Responses, streamed and whole. What it answers
// comes from a pawl.Model, most often a script; what it was asked is logged; Fault makes it fail. Replay serves the
// exchanges of a recording in order. Check finds what is wrong with the history in a request's body: both servers run
// every request through it, and it shares no code with the adapters or with pawl's own decoding, so that a mistake
// there shows here.
//
// TestModel is the suite that every pawl.Model must pass.
//
// The package does not import testing: TestModel takes the few methods of *testing.T that it needs, so that a program
// (pawl demo is one) can run a Simulator without a test framework inside.
package pawltest

import (
	"fmt"
	"strings"
)

// The APIs that this package speaks, by the names that recordings and the pawl command use.
const (
	Chat      = "openai-chat"      // Chat Completions, at /v1/chat/completions
	Responses = "openai-responses" // Responses, at /v1/responses
)

// apiOf tells the API from the path of a request; "" when it is none of ours.
func apiOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat
	case strings.HasSuffix(path, "/responses"):
		return Responses
	}
	return ""
}

// Violation is one thing that is wrong with a request.
type Violation struct {
	Place string // JSON pointer to what is wrong: "/messages/3/tool_calls/0"
	Text  string // what is wrong, in a sentence
}

// String returns "place: text".
func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Place, v.Text) }
