package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// decoder emits the deltas of one reply. A stream is a sequence of objects of the same form as a
// whole reply, so both use the functions of this file. stream.go has the state that spans several
// objects.
type decoder struct {
	*wire.Emitter
	text, thought int       // the open part of each kind, or closed
	call          *openCall // a call whose arguments arrive in pieces
	thinking      *llm.Opaque
	calling       bool            // the event has a call, or a piece of one
	last          []byte          // the last event, if another one with a call cannot be equal
	counted       map[string]bool // the events with a call and the tokens so far

	// The end of the reply depends on these fields.
	over    bool     // a gateway marked the end
	some    bool     // an event arrived
	seen    bool     // a candidate arrived
	plain   bool     // an event without a finish reason arrived
	end     wire.End // the finish reason
	message string   // the finish reason as text
	token   string   // with which another request continues the reply; "" means none
	blocked string   // why the prompt was refused
	usage   []byte   // the last figures
}

func newDecoder(out *wire.Emitter) wire.Decoder {
	return &decoder{Emitter: out, text: closed, thought: closed}
}

// Whole reads a whole reply, or a stream that came as one array.
func (d *decoder) Whole(body []byte) error {
	c := jsonscan.New(body)
	d.Emitter.Whole = c.Kind() == jsonscan.Object
	if err := d.chunk(&c); err != nil {
		return err
	}
	if err := c.End(); err != nil {
		return broken("the reply cannot be read: %v", err)
	}
	return d.End()
}

// chunk reads one response object, or an array of them.
func (d *decoder) chunk(c *jsonscan.Cursor) error {
	if c.Kind() == jsonscan.Array {
		for c.Array(); c.More(); {
			if err := d.chunk(c); err != nil {
				return err
			}
		}
		if c.Err() != nil {
			return broken("the stream cannot be read: %v", c.Err())
		}
		return nil
	}
	isObject := c.Kind() == jsonscan.Object
	var candidates, usage, model, id, feedback, failure []byte
	c.Fields("candidates", &candidates, "usageMetadata", &usage, "modelVersion", &model, "responseId", &id,
		"promptFeedback", &feedback, "error", &failure)
	switch {
	case failure != nil && string(failure) != "null":
		return toStreamError(failure)
	case c.Err() != nil:
		return broken("the reply cannot be read: %v", c.Err())
	case !isObject:
		return broken("the reply is not a JSON object")
	}
	if d.Model == "" {
		d.Model = wire.AsText(model)
	}
	if d.ID == "" {
		d.ID = wire.AsText(id)
	}
	// The last figures are the totals. Usage without figures must not replace them.
	if bytes.Contains(usage, []byte(`TokenCount"`)) {
		d.usage = append(d.usage[:0], usage...)
	}
	d.feedback(feedback)
	list := jsonscan.New(candidates)
	for list.Array(); list.More(); {
		if err := d.candidate(&list); err != nil {
			return err
		}
	}
	return nil
}

// feedback reads why the prompt was refused.
func (d *decoder) feedback(raw []byte) {
	var reason []byte
	var words string
	c := jsonscan.New(raw)
	c.Fields("blockReason", &reason, "blockReasonMessage", &words)
	if reason != nil {
		d.blocked = enum(reason, blockReasons)
	}
	if d.blocked != "" && words != "" {
		d.blocked += ": " + words
	}
}

// candidate reads one of the replies. Only the first is used; only provider options can ask for
// more. The index follows the parts.
func (d *decoder) candidate(c *jsonscan.Cursor) error {
	var content, finish []byte
	var message, token string
	var index int
	c.Fields("content", &content, "finishReason", &finish, "finishMessage", &message, "index", &index,
		"continuationToken", &token)
	if index > 0 || c.Err() != nil {
		return nil // the chunk reports the error
	}
	reason := enum(finish, reasonNumbers)
	d.seen = true
	d.token = cmp.Or(token, d.token)
	d.plain = d.plain || reason == ""
	ended := d.ended()
	if ended {
		d.Late = d.Late || hasContent(content)
	} else if err := d.content(content); err != nil {
		return err
	}

	if !ended {
		d.end = wire.End{}
	}
	if d.end.State(reason, toFinish(reason)) {
		d.message = message
	}
	return nil
}

// ended reports whether the reply ended with an earlier event. Older models write STOP into each
// event of a stream, from the first on; there it ends nothing.
func (d *decoder) ended() bool {
	stamped := d.end.Word == "STOP" && !d.plain
	return d.Stated() && !stamped
}

// hasContent reports whether the content of a candidate says something.
func hasContent(raw []byte) bool {
	c := jsonscan.New(wire.Member(raw, "parts"))
	for c.Array(); c.More(); {
		for k := range c.Members() {
			if value := c.Raw(); string(k) != "text" || len(value) > 2 {
				return true
			}
		}
	}
	return false
}

// content emits the parts of a candidate.
func (d *decoder) content(raw []byte) error {
	c := jsonscan.New(wire.Member(raw, "parts"))
	for c.Array(); c.More(); {
		p := d.readPart(&c)
		if err := d.toDelta(&p); err != nil {
			return err
		}
	}
	return nil
}

// toCall emits a call, or a piece of one.
func (d *decoder) toCall(p *part) error {
	d.calling = true
	var o *llm.Opaque
	if p.members != nil {
		var err error
		o, err = d.keep(p.members)
		if err != nil {
			return err
		}
	}

	// A model writes one call after the other, so that a piece without a name belongs to the open
	// call.
	if d.call != nil {
		sameID := p.id != "" && p.id == d.call.id
		if p.name == "" || sameID {
			return d.continueCall(p, o)
		}
	}

	// The end mark of a call that is complete: {"functionCall":{}}.
	anonymous := p.name == "" && p.id == ""
	hasArgs := p.args != nil || p.partial != nil
	if anonymous && !hasArgs && o == nil {
		return nil
	}
	if p.name == "" && p.args == nil {
		return broken("a piece of arguments came where no call was open")
	}
	if err := d.closeCall(); err != nil {
		return err
	}
	if err := d.closeText(); err != nil {
		return err
	}
	whole := llm.ToolCall{ID: p.id, Name: d.Tools.FromWire(p.name), Opaque: o}
	if p.args == nil && (p.more || p.partial != nil) {
		return d.beginCall(whole, p)
	}
	whole.Args = json.RawMessage("{}") // for the API, missing arguments are an empty object
	if p.args != nil {
		whole.Args = bytes.Clone(p.args)
	}
	return d.Part(whole)
}

// toUsage reads the figures. The API does not count thoughts as output, nor the input of built-in
// tools as prompt.
func toUsage(raw []byte) *llm.Usage {
	u := &llm.Usage{Raw: raw}
	tools := 0
	c := jsonscan.New(raw)
	c.Fields("promptTokenCount", &u.Input, "toolUsePromptTokenCount", &tools, "candidatesTokenCount", &u.Output,
		"thoughtsTokenCount", &u.Reasoning, "cachedContentTokenCount", &u.CacheRead)
	if c.Err() != nil || raw[0] != '{' {
		return nil
	}
	u.Input += tools
	u.Output += u.Reasoning
	return u
}

// These are the names of enums, by value from 0, for servers that were asked to send numbers
// ($alt=json;enum-encoding=int).
var (
	reasonNumbers = []string{"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
	blockReasons = []string{"", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
)

// enum returns a name, or the name that a number represents. A number without a name is returned in
// digits.
func enum(raw []byte, names []string) string {
	c := jsonscan.New(raw)
	if c.Kind() != jsonscan.Number {
		if s := c.String(); s != "FINISH_REASON_UNSPECIFIED" && s != "BLOCK_REASON_UNSPECIFIED" && s != "BLOCKED_REASON_UNSPECIFIED" {
			return s
		}
		return ""
	}
	n, _ := c.Int()
	switch {
	case n <= 0:
		return ""
	case n < int64(len(names)):
		return names[n]
	}
	return strconv.FormatInt(n, 10)
}

// finishReasons has a row for each finish reason of the API, and of Vertex AI. STOP also ends
// replies with calls, which Response.Add sees. The API itself found some calls malformed; they must
// not be executed, so these reasons are failures.
// https://ai.google.dev/api/generate-content#FinishReason
var finishReasons = wire.Endings{
	"FINISH_REASON_UNSPECIFIED": wire.Cut,
	"STOP":                      wire.Answered,
	"MAX_TOKENS":                wire.Full,
	"OTHER":                     wire.Cut,
	"CONTINUATION":              wire.Paused,
	"NO_IMAGE":                  wire.Cut,
	"IMAGE_OTHER":               wire.Cut,

	"SAFETY":                   wire.Filtered,
	"RECITATION":               wire.Filtered,
	"LANGUAGE":                 wire.Filtered,
	"BLOCKLIST":                wire.Filtered,
	"PROHIBITED_CONTENT":       wire.Filtered,
	"SPII":                     wire.Filtered,
	"MODEL_ARMOR":              wire.Filtered,
	"IMAGE_SAFETY":             wire.Filtered,
	"IMAGE_PROHIBITED_CONTENT": wire.Filtered,
	"IMAGE_RECITATION":         wire.Filtered,

	"MALFORMED_FUNCTION_CALL":   wire.Unusable,
	"UNEXPECTED_TOOL_CALL":      wire.Unusable,
	"TOO_MANY_TOOL_CALLS":       wire.Unusable,
	"MALFORMED_RESPONSE":        wire.Unusable,
	"MISSING_THOUGHT_SIGNATURE": wire.Unusable,
}

// toFinish returns what a finish reason means.
func toFinish(reason string) wire.Ending { return finishReasons[reason] }
