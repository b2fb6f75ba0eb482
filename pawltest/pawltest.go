// Package pawltest is for testing what is built on pawl, with the means pawl is tested with.
//
//	                        ┌────────────── Simulator ───────────────┐
//	agent ─▶ adapter ─HTTP─▶│ Check ▶ its own reader ▶ a script plays │   made-up conversations, faults on demand
//	                        └────────────────────────────────────────┘
//	                        ┌─────────────── Replay ─────────────────┐
//	agent ─▶ adapter ─HTTP─▶│ Check ▶ the next recorded reply         │   recorded conversations
//	                        └────────────────────────────────────────┘
//
// Simulator is a provider on loopback that speaks four APIs, streamed and whole: OpenAI's Chat Completions and Responses,
// Anthropic's Messages and Gemini's generateContent. What it answers comes from a llm.Model, most often a script; what
// it was asked is logged; Fault makes it fail. Replay serves the
// exchanges of a recording in order. Check finds what is wrong with the history in a request's body: both servers run
// every request through it, and it shares no code with the adapters or with pawl's own decoding, so that a mistake
// there shows here.
//
// TestModel is the suite that every llm.Model must pass, TestAdapter the one for adapters to the four APIs.
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
	Chat      = "openai-chat"        // Chat Completions, at /v1/chat/completions
	Responses = "openai-responses"   // Responses, at /v1/responses
	Anthropic = "anthropic-messages" // Messages, at /v1/messages
	Gemini    = "gemini"             // at /v1beta/models/NAME:generateContent and NAME:streamGenerateContent
)

// APIs returns the names of the APIs that this package speaks.
func APIs() []string { return []string{Chat, Responses, Anthropic, Gemini} }

// endpoint is what the path of a request says.
type endpoint struct {
	api    string // "" when it is none of ours
	model  string // "" where the body names it
	stream bool   // of no meaning where the body says it
}

// endpointOf reads a path, whatever stands before the API's own end of it.
func endpointOf(path string) endpoint {
	dir, last, _ := cutLast(path, "/")
	name, method, _ := cutLast(last, ":")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return endpoint{api: Chat}
	case last == "responses":
		return endpoint{api: Responses}
	case last == "messages":
		return endpoint{api: Anthropic}
	case method == "rawPredict", method == "streamRawPredict": // Anthropic's models on Vertex
		return endpoint{Anthropic, name, method == "streamRawPredict"}
	case last == "invoke": // on Bedrock, whose streams are no server-sent events
		_, name, _ := cutLast(dir, "/")
		return endpoint{Anthropic, name, false}
	case method == "generateContent", method == "streamGenerateContent":
		return endpoint{Gemini, name, method == "streamGenerateContent"}
	}
	return endpoint{}
}

// cutLast cuts s around the last sep; without one, all of s is after it.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// Violation is one thing that is wrong with a request.
type Violation struct {
	Place string // JSON pointer to what is wrong: "/messages/3/tool_calls/0"
	Text  string // what is wrong, in a sentence
}

// String returns "place: text".
func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Place, v.Text) }
