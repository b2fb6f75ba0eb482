package pawltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// object is a JSON object that we write. Its keys are sorted in the output.
type object = map[string]any

// event is one server-sent event.
type event struct {
	name string // "" means no event line
	data string
	crlf bool // lines end in CRLF
}

// reply writes one reply in the form of its API.
type reply struct {
	api   string
	req   *llm.Request
	usage bool   // Chat: the request asks for a chunk with the usage
	id    string // the reply's number in the conversation, for ids

	noIDs  bool // Gemini: calls have no ids
	loose  bool // arguments that are not an object are sent too
	array  bool // Gemini: a stream is one JSON array
	pieces bool // Gemini: a stream has arguments in pieces

	background bool // Responses: the reply is computed in the background

	// Anthropic: code in the server's container waits for the results that end the request; the
	// reply so far
	runsCode  bool
	ahead     llm.Response
	container string          // Anthropic: in which the server runs code
	contained func(id string) // stores the container
	prefix    string          // Anthropic: what the thinking is bound to; "" means nothing

	// what the server did to a long conversation: tokens that it summarized; results that it
	// cleared, and their tokens
	compacted, cleared, clearedTokens int
	onDemand                          int // tokens of a request for a summary; 0 means none

	began bool
	seq   int        // Responses: number of the next event
	parts []*partOut // by Delta.Index
	// Chat: index of the next call; Anthropic: of the next block; Gemini: calls so far.
	calls     int
	thought   bool   // Gemini: a thought was sent
	malformed string // Gemini: the complaint about a malformed call
	figure    llm.Usage
}

// partOut is the written state of a part.
type partOut struct {
	part llm.Part        // kind, id and name; the text is in buf
	buf  strings.Builder // text or arguments
	call int             // Chat: index of the call; Anthropic: of the block
	done bool
}

func newReply(got *Received, opts SimulatorOptions) *reply {
	n := 1
	for _, m := range got.Request.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	r := &reply{api: got.API, req: got.Request, id: fmt.Sprintf("sim_%d", n), noIDs: opts.NoIDs, loose: opts.Loose}
	r.runsCode = got.API == Anthropic && ranCode(got.Request)
	r.pieces = got.API == Gemini && streamsArgs(got.Body)
	var w chatRequest
	if got.API == Chat && json.Unmarshal(got.Body, &w) == nil {
		r.usage = w.StreamOptions.IncludeUsage
	}
	return r
}

func (r *reply) contentType() string {
	if r.req.Whole || r.array {
		return "application/json"
	}
	return "text/event-stream"
}

// body returns the reply in one piece.
func (r *reply) body(resp *llm.Response) []byte {
	switch r.api {
	case Chat:
		return r.chatBody(resp)
	case Anthropic:
		return r.anthropicBody(resp)
	case Gemini:
		return r.geminiBody(resp)
	}
	return r.responsesBody(resp)
}

// events returns the events of a fragment of the reply.
func (r *reply) events(d llm.Delta) []event {
	if d.Usage != nil {
		r.figure = *d.Usage
	}
	switch r.api {
	case Chat:
		return r.chatEvents(d)
	case Anthropic:
		return r.anthropicEvents(d)
	case Gemini:
		return r.geminiEvents(d)
	}
	return r.responsesEvents(d)
}

// failed returns the end of a broken stream.
func (r *reply) failed(e *apiError) []event {
	switch r.api {
	case Chat:
		return []event{{data: string(e.body(Chat))}}
	case Anthropic:
		return r.anthropicFailed(e)
	case Gemini:
		return []event{{data: string(e.body(Gemini)), crlf: true}}
	}
	return r.responsesFailed(e)
}

// part records the fragment. It returns the fragment's part and whether the part begins here.
func (r *reply) part(d llm.Delta) (p *partOut, fragment string, begins bool) {
	for d.Index >= len(r.parts) {
		r.parts = append(r.parts, nil)
	}
	p = r.parts[d.Index]
	if p == nil {
		p = &partOut{part: d.Part}
		begins = true
		r.parts[d.Index] = p
	}
	switch part := d.Part.(type) {
	case llm.Text:
		fragment = part.Text
	case llm.Reasoning:
		fragment = part.Text
	case llm.ToolCall:
		fragment = string(part.Args)
	}
	p.buf.WriteString(fragment)
	return p, fragment, begins
}

// looseArgs writes arguments that are not an object where an API requires one, as translating
// servers do: as their JSON value, or as a string.
func looseArgs(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return marshal(text)
}

func isExhausted(err error) bool {
	var e *script.ExhaustedError
	return errors.As(err, &e)
}

// marshal writes JSON as OpenAI does, without escaping <, > and &.
func marshal(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("pawltest: %v", err)) // we only write maps, strings and numbers
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
