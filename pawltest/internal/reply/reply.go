// Package reply writes the replies of the simulated providers, whole and in the events of a stream.
package reply

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// Event is one server-sent event.
type Event struct {
	Name string // "" means no event line
	Data string
	CRLF bool // lines end in CRLF
}

// WriteTo writes the event in the server's form.
func (e Event) WriteTo(w io.Writer) (int64, error) {
	end := "\n"
	if e.CRLF {
		end = "\r\n"
	}
	text := "data: " + e.Data + end + end
	if e.Name != "" {
		text = "event: " + e.Name + end + text
	}
	n, err := io.WriteString(w, text)
	return int64(n), err
}

// Options are the optional settings of a Reply.
type Options struct {
	NoIDs bool // Gemini: calls have no ids
	Loose bool // arguments that are not an object are sent too
}

// Reply writes one reply in the form of its API. The exported fields may be set until the first
// fragment is written.
type Reply struct {
	API     string
	Request *llm.Request
	ID      string // the reply's number in the conversation, for ids

	Array      bool            // Gemini: a stream is one JSON array
	Background bool            // Responses: the reply is computed in the background
	Contained  func(id string) // Anthropic: stores the container in which the server runs code
	Prefix     string          // Anthropic: what the thinking is bound to; "" means nothing
	Managed    Managed

	opts   Options
	usage  bool // Chat: the request asks for a chunk with the usage
	pieces bool // Gemini: a stream has arguments in pieces

	// Anthropic: code in the server's container waits for the results that end the request; the
	// reply so far
	runsCode  bool
	ahead     llm.Response
	container string // Anthropic: in which the server runs code

	began bool
	seq   int        // Responses: number of the next event
	parts []*partOut // by Delta.Index
	// Chat: index of the next call; Anthropic: of the next block; Gemini: calls so far.
	calls     int
	thought   bool   // Gemini: a thought was sent
	malformed string // Gemini: the complaint about a malformed call
	figure    llm.Usage
}

// Managed is what the server did to a long conversation.
type Managed struct {
	Compacted     int // tokens that it summarized; 0 means none
	Cleared       int // results that it cleared
	ClearedTokens int // tokens of these results
	OnDemand      int // tokens of a request for a summary; 0 means none
}

// partOut is the written state of a part.
type partOut struct {
	part llm.Part        // kind, id and name; the text is in buf
	buf  strings.Builder // text or arguments
	call int             // Chat: index of the call; Anthropic: of the block
	done bool
}

// New returns the reply to a request with this body.
func New(api string, req *llm.Request, body []byte, opts Options) *Reply {
	n := 1
	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	r := &Reply{API: api, Request: req, ID: fmt.Sprintf("sim_%d", n), opts: opts}
	switch api {
	case wire.Anthropic:
		r.runsCode = ranCode(req)
	case wire.Gemini:
		r.pieces = streamsArgs(body)
	case wire.Chat:
		r.usage = asksForUsage(body)
	}
	return r
}

// ContentType returns the content type of the reply.
func (r *Reply) ContentType() string {
	if r.Request.Whole || r.Array {
		return "application/json"
	}
	return "text/event-stream"
}

// Body returns the reply in one piece.
func (r *Reply) Body(resp *llm.Response) []byte {
	switch r.API {
	case wire.Chat:
		return r.chatBody(resp)
	case wire.Anthropic:
		return r.anthropicBody(resp)
	case wire.Gemini:
		return r.geminiBody(resp)
	}
	return r.responsesBody(resp)
}

// Events returns the events of a fragment of the reply.
func (r *Reply) Events(d llm.Delta) []Event {
	if d.Usage != nil {
		r.figure = *d.Usage
	}
	switch r.API {
	case wire.Chat:
		return r.chatEvents(d)
	case wire.Anthropic:
		return r.anthropicEvents(d)
	case wire.Gemini:
		return r.geminiEvents(d)
	}
	return r.responsesEvents(d)
}

// Failed returns the end of a broken stream.
func (r *Reply) Failed(e *wire.Error) []Event {
	switch r.API {
	case wire.Chat:
		return []Event{{Data: string(e.Body(wire.Chat))}}
	case wire.Anthropic:
		return r.anthropicFailed(e)
	case wire.Gemini:
		return []Event{{Data: string(e.Body(wire.Gemini)), CRLF: true}}
	}
	return r.responsesFailed(e)
}

// InProgress returns the response object of a reply that has no output yet (Responses).
func (r *Reply) InProgress() []byte { return wire.Marshal(r.response("", nil)) }

// part records the fragment. It returns the fragment's part and whether the part begins here.
func (r *Reply) part(d llm.Delta) (p *partOut, fragment string, begins bool) {
	for d.Index >= len(r.parts) {
		r.parts = append(r.parts, nil)
	}
	p = r.parts[d.Index]
	if p == nil {
		p = &partOut{part: d.Part}
		begins = true
		r.parts[d.Index] = p
	}
	fragment = partText(d.Part)
	p.buf.WriteString(fragment)
	return p, fragment, begins
}

// partText returns the text or the arguments of p.
func partText(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return p.Text
	case llm.Reasoning:
		return p.Text
	case llm.ToolCall:
		return string(p.Args)
	}
	return ""
}

// looseArgs writes arguments that are not an object where an API requires one, as translating
// servers do: as their JSON value, or as a string.
func looseArgs(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return wire.Marshal(text)
}

// verbatim returns the block or part that a script wrote in the form of provider. nil means that
// the script did not.
func verbatim(p llm.Reasoning, provider string) any {
	if p.Opaque == nil || p.Opaque.Provider != provider || !wire.IsObject(string(p.Opaque.Data)) {
		return nil
	}
	return p.Opaque.Data
}
