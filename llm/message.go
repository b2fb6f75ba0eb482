package llm

// message.go: the Message, its parts and their constructors, Key and Opaque.

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Role is the author of a Message.
type Role string

// The roles of a conversation. An agent's instructions are not stored in its transcript: each
// request puts them in front, as RoleSystem.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the message with the results of a reply's calls
)

// Message is one turn of a conversation. It does not depend on a provider: the forms of providers,
// ReAct and text are made from it.
//
// A transcript is valid when every ToolCall of an assistant message has exactly one ToolResult in
// the one RoleTool message right after it. Only the calls of the last reply may be open.
//
// A Message is plain data. It must not be changed after it is passed to a run.
type Message struct {
	Role  Role   // who wrote it
	Parts []Part // which parts a message can hold depends on its Role: see Validate
}

// Part is a piece of a Message: Text, Reasoning, Media, ToolCall or ToolResult, and Decision in the
// input of a run. The set is closed. Parts are held by value, not by pointer.
type Part interface{ isPart() }

// Text is text of the user, of the instructions or of the model's answer.
type Text struct {
	Text string // as written; may be empty
	// Opaque is provider data that is sent back with this text. Nil means no data.
	Opaque *Opaque
	// Label says who could have written the text. It is never sent. nil means a stranger.
	Label *Label
}

// Reasoning is the text that a model writes before its answer. It is sent back byte for byte, in
// Opaque, to the provider that wrote it; other providers do not receive it.
//
// An empty Text means that only that provider can read the content, such as encrypted reasoning or
// the block of a server-side tool. The part keeps its place in the reply.
type Reasoning struct {
	Text   string  // the readable part of it; may be empty
	Opaque *Opaque // provider data that is sent back with it; nil means no data
}

// Media is an image, a sound or a document, by URL or by value. Exactly one of URL and Data is set.
type Media struct {
	MIME string // "image/png"; may be empty if URL is set
	URL  string // where the content is; the provider fetches it
	Data []byte // the content
	// Label says who could have made the content. It is never sent. nil means a stranger.
	Label *Label
}

// ToolCall is the model's request to execute a tool.
type ToolCall struct {
	ID   string // unique within its reply; set by the provider or by Response.Add
	Name string // the tool's name in the agent
	// Args are the bytes that the model wrote. They are usually a JSON object, but the pipeline has
	// not validated them yet.
	Args json.RawMessage
	// Opaque is provider data that is sent back with this call. Nil means no data.
	Opaque *Opaque
}

// ToolResult is the result of a call, as the model reads it.
type ToolResult struct {
	CallID  string // the ToolCall.ID of the call that it answers
	Parts   []Part // Text and Media
	IsError bool   // the call failed; Parts explain why, for the model
	// The result as JSON for programs, never sent to the model; nil means none.
	Data json.RawMessage
	Key  Key // the place of the call in the run; "" if no run made the result
	// Bytes that the run has cut out of the text of Parts, because the text is longer than the tool
	// may return. 0 means that Parts have the whole text. The model reads it in the text.
	LeftOut int
	// Label says who could have written Parts and Data. The labels of Parts can only make it worse.
	// It is never sent. nil means Tool.Label in what a tool returns, and otherwise a stranger.
	Label *Label
}

// Decision is the answer of a person or a caller to an open call. It is input to a run, in a
// message of any role, and never part of a transcript. If Approve is true, the call is executed; if
// it is false, the call is refused. A Result that is not nil answers the call without executing it.
//
// Digest must equal the digest of the PendingCall. It binds the decision to the question, the
// attempt, the tool with its schema, and the canonical arguments. In one run a decision therefore
// counts once: a call with a result is no longer open, and a call whose attempt has started asks
// again with another digest. An approval is used within PendingCall.ValidFor; a refusal and a
// result do not expire.
//
// Two runs that resume the same stored Result with the same decision execute the call twice.
// Package durable and package thread (Claim) keep a second run from that. A program with a store of
// its own claims the Result there before it resumes: it deletes or marks the row, and resumes only
// if that changed the row.
type Decision struct {
	Key     Key    // the call that it answers, PendingCall.Key
	Digest  string // PendingCall.Digest
	Approve bool   // the call is executed; ignored if Result is not nil
	// Args replace the model's arguments if Approve is true, and the model reads that they were
	// replaced. They must fit the tool's schema. Nil means no change.
	Args   json.RawMessage
	By     string // the decider, for the record, by its own statement
	Reason string // sent to the model if the call is refused
	// Result answers the call without executing it. nil means that Approve decides.
	Result *ToolResult
	// Identity is the decider as the program that took the decision knows it, such as "token ops"
	// or "os anna(1000)". Empty means unknown.
	Identity string
	// At is the time when a run took the decision. The zero time means that it is new.
	At time.Time
}

// Expired reports whether d is an approval that a run took longer than validFor before now. A
// validFor of 0 or less means no limit.
func (d Decision) Expired(validFor time.Duration, now time.Time) bool {
	return validFor > 0 && d.Approve && d.Result == nil && !d.At.IsZero() && now.Sub(d.At) > validFor
}

func (Text) isPart()       {}
func (Reasoning) isPart()  {}
func (Media) isPart()      {}
func (ToolCall) isPart()   {}
func (ToolResult) isPart() {}
func (Decision) isPart()   {}

// Opaque is data that one provider needs back unchanged: signatures, encrypted reasoning, item IDs.
// Other providers never receive it.
type Opaque struct {
	// The adapter that wrote Data; only this adapter may read it.
	Provider string          `json:"provider"`
	Data     json.RawMessage `json:"data"` // any JSON value
}

// Clone returns a copy of o that shares no memory with it. The copy of nil is nil.
func (o *Opaque) Clone() *Opaque {
	if o == nil {
		return nil
	}
	return &Opaque{Provider: o.Provider, Data: bytes.Clone(o.Data)}
}

// Key is a place in a run. "run/3/model" is the request after three replies, "run/3/0" the first
// call of the third reply, "run/3/0/s1" the second call that this call makes, and
// "run/3/0/clerk/1/model" a request of the agent clerk that runs within it.
//
// A Key is derived from the transcript, never from a clock, so that a repeated run has the same
// keys.
type Key string

// System returns a system message with one text of the operator (see Label).
func System(text string) Message {
	return Message{RoleSystem, []Part{Text{Text: text, Label: Operator.Label()}}}
}

// User returns a user message with one text, which counts as the user's own words (see Label). Text
// that the user has from others, such as a file, is a Text of its own with the label
// Attached.Label().
func User(text string) Message {
	return Message{RoleUser, []Part{Text{Text: text, Label: Typed.Label()}}}
}

// Assistant returns a reply with the given parts, such as Assistant(Text{Text: "ok"}).
func Assistant(parts ...Part) Message { return Message{RoleAssistant, parts} }

// Results returns the message that answers calls. Callers use it for the pending calls of a run,
// and in transcripts that they write.
func Results(results ...ToolResult) Message {
	m := Message{Role: RoleTool, Parts: make([]Part, len(results))}
	for i, r := range results {
		m.Parts[i] = r
	}
	return m
}

// DecisionMessage returns the message that passes decisions to Agent.Resume.
func DecisionMessage(decisions ...Decision) Message {
	m := Message{Role: RoleUser, Parts: make([]Part, len(decisions))}
	for i, d := range decisions {
		m.Parts[i] = d
	}
	return m
}

// TextResult returns a result with one text.
func TextResult(text string) ToolResult { return ToolResult{Parts: []Part{Text{Text: text}}} }

// ErrorResult returns a failed result with one text for the model. Write it for a reader who can
// try again: what was wrong, and what would be right.
func ErrorResult(text string) ToolResult {
	return ToolResult{Parts: []Part{Text{Text: text}}, IsError: true}
}

// Clone returns a copy of m that shares no memory with it.
func (m Message) Clone() Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		switch p := p.(type) {
		case Text:
			p.Opaque = p.Opaque.Clone()
			m.Parts[i] = p
		case Reasoning:
			p.Opaque = p.Opaque.Clone()
			m.Parts[i] = p
		case Media:
			p.Data = bytes.Clone(p.Data)
			m.Parts[i] = p
		case ToolCall:
			p.Args, p.Opaque = bytes.Clone(p.Args), p.Opaque.Clone()
			m.Parts[i] = p
		case ToolResult:
			m.Parts[i] = p.Clone()
		}
	}
	return m
}

// Clone returns a copy of r that shares no memory with it.
func (r ToolResult) Clone() ToolResult {
	r.Parts, r.Data = Message{Parts: r.Parts}.Clone().Parts, bytes.Clone(r.Data)
	return r
}

// Text returns the texts of m joined, without reasoning.
func (m Message) Text() string {
	if len(m.Parts) == 1 {
		t, _ := m.Parts[0].(Text)
		return t.Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Text returns the texts of r joined.
func (r ToolResult) Text() string { return Message{Parts: r.Parts}.Text() }

// Calls returns the calls of m in the model's order, or nil if it has none.
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

// HasDecision reports whether m has a decision.
func (m Message) HasDecision() bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { _, ok := p.(Decision); return ok })
}

// HasCalls reports whether m has a call. It does not allocate.
func (m Message) HasCalls() bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { _, ok := p.(ToolCall); return ok })
}
