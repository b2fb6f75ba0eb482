// Package pawltest has the servers and suites that test pawl, for programs and adapters that are
// built on it.
//
//	                        ┌────────────── Simulator ───────────────┐
//	agent ─▶ adapter ─HTTP─▶│ Check ▶ its own reader ▶ a script      │  invented
//	                        └────────────────────────────────────────┘
//	                        ┌─────────────── Replay ─────────────────┐
//	agent ─▶ adapter ─HTTP─▶│ Check ▶ the next recorded reply        │  recorded
//	                        └────────────────────────────────────────┘
//
// Simulator is a provider on loopback with four APIs, streamed and whole: OpenAI's Chat Completions
// and Responses, Anthropic's Messages and Gemini's generateContent. Its answers come from an
// llm.Model, usually a script. It logs its requests, and Fault makes it fail. Replay serves the
// exchanges of a recording in order.
//
// Check finds the faults in the history of a request's body. Both servers check every request with
// it. It shares no code with the adapters or with pawl's decoding, so that it detects their
// mistakes.
//
// TestModel is the suite that every llm.Model must pass, TestAdapter the suite for adapters to the
// four APIs, TestExecutor the suite for what executes calls, and TestRunner the suite for
// everything that executes agents. Each has a Score function, which plants faults in an
// implementation that passes: see package mutant.
//
// The package does not import testing: the suites take the few methods of *testing.T that they
// need, so that a program such as pawl demo can run a Simulator without a test framework.
package pawltest

import (
	"strings"
)

// The supported APIs, by the names in recordings and in the pawl command.
const (
	Chat      = "openai-chat"        // Chat Completions, at /v1/chat/completions
	Responses = "openai-responses"   // Responses, at /v1/responses
	Anthropic = "anthropic-messages" // Messages, at /v1/messages
	// At /v1beta/models/NAME:generateContent and NAME:streamGenerateContent.
	Gemini = "gemini"
)

// APIs returns the names of the supported APIs.
func APIs() []string { return []string{Chat, Responses, Anthropic, Gemini} }

// endpoint is the information in the path of a request.
type endpoint struct {
	api    string // "" means another path
	model  string // "" means that the body names it
	stream bool   // without a meaning if the body says it
	id     string // of a response in the background; "" means none
	cancel bool   // cancels that response
}

// endpointOf reads a path with any prefix before the API's own part.
func endpointOf(path string) endpoint {
	dir, last, _ := cutLast(path, "/")
	name, method, _ := cutLast(last, ":")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return endpoint{api: Chat}
	case last == "responses":
		return endpoint{api: Responses}
	case strings.HasSuffix(dir, "/responses"): // in the background
		return endpoint{api: Responses, id: last}
	case last == "cancel" && strings.Contains(dir, "/responses/"):
		_, id, _ := cutLast(dir, "/")
		return endpoint{api: Responses, id: id, cancel: true}
	case last == "messages":
		return endpoint{api: Anthropic}
	case method == "rawPredict", method == "streamRawPredict": // Anthropic's models on Vertex
		return endpoint{api: Anthropic, model: name, stream: method == "streamRawPredict"}
	case last == "invoke": // on Bedrock, whose streams are no server-sent events
		_, name, _ := cutLast(dir, "/")
		return endpoint{api: Anthropic, model: name}
	case method == "generateContent", method == "streamGenerateContent":
		return endpoint{api: Gemini, model: name, stream: method == "streamGenerateContent"}
	}
	return endpoint{}
}

// cutLast cuts s around the last sep. Without a sep, after is s.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}
