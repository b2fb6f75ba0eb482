package pawltest

import (
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/check"
	"github.com/pawl-go/pawl/pawltest/internal/read"
)

// Violation is a fault of a request.
type Violation struct {
	Place string // JSON pointer to the fault: "/messages/3/tool_calls/0"
	Text  string // the fault, in a sentence
}

// String returns "place: text".
func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Place, v.Text) }

// Check returns the faults in the body of a request to api: the pairing and order of calls and
// results, and the shape of tools and tool choice. Nil means that it found none.
//
// A history is valid if every call has exactly one result, if results come directly after the reply
// that made the calls and before anything else, if no result answers a call that was not made, if
// no two calls of a reply share an id, if arguments are strings, and (Responses) if every reasoning
// item precedes its item. With previous_response_id or conversation, the provider has the start of
// the history, so that results may answer calls that are not in the body.
//
// Anthropic requires more: the results of a reply are first in the one user message right after it,
// ids are unique in the whole history, thinking keeps its signature and its place, replies and user
// messages alternate (the API itself would merge two user messages; not every server with this API
// does), and a choice that forces a call excludes thinking.
//
// Gemini requires as many functionResponses as there were calls, for the same names, in the one
// content right after them (newer models would merge split contents), and a signature at the first
// of parallel calls, not at a later one. Models from 3 on require a signature at the first call of
// every step of the current turn: see CheckModel.
func Check(api string, body []byte) []Violation { return CheckModel(api, "", body) }

// CheckModel is Check for a request to model, if the body does not name it: Gemini's models have
// different requirements for signatures. An empty model has no requirements.
func CheckModel(api, model string, body []byte) []Violation {
	var all []Violation
	for _, v := range check.Body(api, model, body) {
		all = append(all, Violation(v))
	}
	return all
}

// ReadRequest reads the body of a request to api into the neutral form, as the provider would
// understand it. Gemini has the model and the choice of streaming in the address and not in the
// body: for Gemini, Model is "" and Whole is true. ReadRequest shares no code with the adapters. It
// checks no pairing: Check does. The tools are passive. Parts without a neutral form (hosted tools,
// uploaded files, items of hosted tools) are left out, or, if they have a place in a reply, kept as
// Reasoning with the item as Opaque.
func ReadRequest(api string, body []byte) (*llm.Request, error) { return read.Request(api, body) }
