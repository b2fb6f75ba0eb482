package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// Role says who speaks in a Message.
type Role string

// The roles of a conversation. Instructions of an agent are not kept in its transcript: they are put in front, as
// RoleSystem, when a request is made.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the results message that follows a reply with calls
)

// Message is one turn of a conversation. It is neutral: providers, ReAct and text renderings are views of it.
//
// A transcript is valid when every ToolCall of an assistant message has exactly one ToolResult in the one
// RoleTool message right after it. Only the last reply may have calls that are still open.
//
// A Message is plain data. It must not be changed once it was given to a run.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a piece of a Message: Text, Reasoning, Media, ToolCall, ToolResult, or, as input to a run only, Decision.
// The set is closed. Parts are held by value.
type Part interface{ isPart() }

// Text is words for the reader: the user's, or the model's answer.
type Text struct {
	Text   string
	Opaque *Opaque // what the provider wants back with this text; nil: nothing
}

// Reasoning is what a model thought before it answered. It is returned to the provider that wrote it, byte for byte
// through Opaque, and left out elsewhere. With empty Text it stands for something that only that provider can
// read (encrypted reasoning, a server-side tool's block) and that must keep its place in the reply.
type Reasoning struct {
	Text   string
	Opaque *Opaque
}

// Media is an image, a sound or a document, by URL or by value. Exactly one of URL and Data is set.
type Media struct {
	MIME string // "image/png"; may be empty when URL is set
	URL  string
	Data []byte
}

// ToolCall is the model's request to run a tool.
type ToolCall struct {
	ID     string          // unique within its reply; the provider's, or made by Response.Add
	Name   string          // the tool's name as the agent knows it
	Args   json.RawMessage // the bytes the model wrote: usually a JSON object, but nothing is certain before the pipeline looked
	Opaque *Opaque         // what the provider wants back with this call; nil: nothing
}

// ToolResult is what the model is told of a call.
type ToolResult struct {
	CallID  string
	Parts   []Part          // Text and Media
	IsError bool            // the call did not do what was asked; Parts say why, worded for the model
	Data    json.RawMessage // the result as JSON for programs; nil: none. It is not sent to the model
	Key     Key             // where in the run the call stood; "" when the result did not come from a run
}

// Decision is a person's or a caller's word on an open call. It is input to a run (in a message of any role) and never part
// of a transcript. Approve true lets the call run; false refuses it; Result, when not nil, answers the call
// without running it. Digest must be that of the Waiting it answers: it binds the decision to the question, the
// attempt, the tool with its schema, and the canonical arguments. So it is used once: a call that has its result is
// not open, and one that was begun asks again under another digest. A yes is good until Waiting.Expires; a no and a result are always.
type Decision struct {
	Key     Key
	Digest  string
	Approve bool
	Args    json.RawMessage // with Approve: run it with these in place of the model's, which is told; they must fit the schema; nil: as asked
	By      string          // who decided; for the record
	Reason  string          // told to the model when the call is refused
	Result  *ToolResult
}

func (Text) isPart()       {}
func (Reasoning) isPart()  {}
func (Media) isPart()      {}
func (ToolCall) isPart()   {}
func (ToolResult) isPart() {}
func (Decision) isPart()   {}

// Opaque is what one provider wants back unchanged: signatures, encrypted reasoning, item IDs. Others never see it.
type Opaque struct {
	Provider string          `json:"provider"` // the adapter that wrote it and alone may read it
	Data     json.RawMessage `json:"data"`     // any JSON value
}

// Key says where in a run something happened: "run/3/model" is the request made after three replies, "run/3/0" the
// first call of the third reply, "run/3/0/s1" the second call made by that call, and "run/3/0/clerk/1/model" a request of
// the agent clerk that ran inside it. A Key is made from the transcript, never from a clock, so a repeated run
// has the same keys.
type Key string

// System returns a system message of one text.
func System(text string) Message { return Message{RoleSystem, []Part{Text{Text: text}}} }

// User returns a user message of one text.
func User(text string) Message { return Message{RoleUser, []Part{Text{Text: text}}} }

// Assistant returns a reply made of parts.
func Assistant(parts ...Part) Message { return Message{RoleAssistant, parts} }

// Results returns the message that answers calls: from the caller of a run whose calls are pending, or in a
// written transcript.
func Results(results ...ToolResult) Message {
	m := Message{Role: RoleTool, Parts: make([]Part, len(results))}
	for i, r := range results {
		m.Parts[i] = r
	}
	return m
}

// Decide returns the message that carries decisions into Agent.Resume.
func Decide(decisions ...Decision) Message {
	m := Message{Role: RoleUser, Parts: make([]Part, len(decisions))}
	for i, d := range decisions {
		m.Parts[i] = d
	}
	return m
}

// TextResult returns a result of one text for call.
func TextResult(text string) ToolResult { return ToolResult{Parts: []Part{Text{Text: text}}} }

// ErrorResult returns a result that tells the model what went wrong. Write it for a reader who can try again: what
// was wrong, what would be right.
func ErrorResult(text string) ToolResult {
	return ToolResult{Parts: []Part{Text{Text: text}}, IsError: true}
}

// Text returns the texts of m joined; reasoning is left out.
func (m Message) Text() string { return textOf(m.Parts) }

// Text returns the texts of r joined.
func (r ToolResult) Text() string { return textOf(r.Parts) }

func textOf(parts []Part) string {
	if len(parts) == 1 {
		t, _ := parts[0].(Text)
		return t.Text
	}
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Calls returns the calls of m in the model's order; nil when there are none.
func (m Message) Calls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			if calls == nil {
				calls = make([]ToolCall, 0, len(m.Parts))
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// HasCalls reports whether m has a call. It costs no allocation.
func (m Message) HasCalls() bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { _, ok := p.(ToolCall); return ok })
}

// answers reports whether m has the result of the call id.
func (m Message) answers(id string) bool {
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok && r.CallID == id {
			return true
		}
	}
	return false
}
