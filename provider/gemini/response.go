package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/wire"
)

// decoder makes deltas of one reply. A stream is a sequence of the objects that a whole reply is one of, so both go through
// the same functions (this file); what goes on over several of them is in stream.go.
type decoder struct {
	*wire.Emitter
	text, thought int       // the open part of each kind, or closed
	call          *openCall // a call whose arguments come in parts
	thinking      *pawl.Opaque

	// What the end depends on.
	seen    bool   // a candidate came
	reason  string // why it ended; "": not said
	message string // the same in words
	blocked string // the prompt was refused: why
	usage   []byte // the last figures
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
	if d.Emitter.Whole && d.reason == "" && d.seen {
		d.reason = "OTHER"
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
	if !c.Object() {
		if c.Err() != nil {
			return broken("the reply cannot be read: %v", c.Err())
		}
		return broken("the reply is not a JSON object")
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "candidates":
			for c.Array(); c.More(); {
				if err := d.candidate(c.Raw()); err != nil {
					return err
				}
			}
		case "usageMetadata":
			if raw := c.Raw(); bytes.Contains(raw, []byte(`TokenCount"`)) {
				d.usage = append(d.usage[:0], raw...)
			}
		case "modelVersion":
			if c.Kind() != jsonscan.String || d.Model != "" {
				c.Skip()
				continue
			}
			d.Model = c.String()
		case "responseId":
			if c.Kind() != jsonscan.String || d.ID != "" {
				c.Skip()
				continue
			}
			d.ID = c.String()
		case "promptFeedback":
			d.feedback(c)
		case "error":
			if c.Kind() != jsonscan.Null {
				return toStreamError(c.Raw())
			}
		}
	}
	if c.Err() != nil {
		return broken("the reply cannot be read: %v", c.Err())
	}
	return nil
}

// feedback reads why a prompt was not answered.
func (d *decoder) feedback(c *jsonscan.Cursor) {
	if !c.Object() {
		return
	}
	var words string
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "blockReason":
			d.blocked = enum(c, blockReasons)
		case "blockReasonMessage":
			words = c.String()
		}
	}
	if d.blocked != "" && words != "" {
		d.blocked += ": " + words
	}
}

// candidate reads one of the replies; those after the first, which only provider options can ask for, are left.
func (d *decoder) candidate(raw []byte) error {
	var content []byte
	var reason, message string
	c := jsonscan.New(raw)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "content":
			content = c.Raw()
		case "finishReason":
			reason = enum(&c, finishReasons)
		case "finishMessage":
			message = c.String()
		case "index":
			if n, _ := c.Int(); n > 0 {
				return nil
			}
		}
	}
	if c.Err() != nil {
		return broken("the reply cannot be read: %v", c.Err())
	}
	d.seen = true
	c = jsonscan.New(content)
	if c.Object() {
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			if string(k) != "parts" {
				continue
			}
			for c.Array(); c.More(); {
				if err := d.toDelta(c.Raw()); err != nil {
					return err
				}
			}
		}
		if c.Err() != nil {
			return broken("the reply cannot be read: %v", c.Err())
		}
	}
	// Older models say STOP in each event; a reason that is not that counts wherever it stands.
	if reason != "" && (d.reason == "" || d.reason == "STOP") {
		d.reason, d.message = reason, message
	}
	return nil
}

// A part of a reply has one member that is its content, and some that go with it.
type part struct {
	raw     []byte
	kind    string // the name of the content; "": there is none
	content []byte
	thought bool
	members []byte // the others, as an object; nil: none
}

func readPart(raw []byte) part {
	p := part{raw: raw}
	unknown := 0
	c := jsonscan.New(raw)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "text":
			p.kind, p.content = "text", c.Raw()
			continue
		case "functionCall":
			p.kind, p.content = "functionCall", c.Raw()
			continue
		case "inlineData":
			p.kind, p.content = "inlineData", c.Raw()
			continue
		case "fileData":
			p.kind, p.content = "fileData", c.Raw()
			continue
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionResponse":
			p.kind = "other"
			c.Skip()
			continue
		case "thought":
			p.thought = c.Kind() == jsonscan.True
		case "thoughtSignature", "partMetadata", "mediaResolution", "videoMetadata":
		default:
			unknown++
		}
		if p.members == nil {
			p.members = append(p.members, '{')
		} else {
			p.members = append(p.members, ',')
		}
		p.members = append(jsonscan.AppendString(p.members, k), ':')
		p.members = append(p.members, c.Raw()...)
	}
	if p.members != nil {
		p.members = append(p.members, '}')
	}
	if p.kind == "" && (unknown > 0 || p.members != nil) {
		p.kind = "other"
	}
	return p
}

// toDelta yields a part, or what there is of it.
func (d *decoder) toDelta(raw []byte) error {
	p := readPart(raw)
	if p.thought && p.kind != "text" {
		p.kind = "other" // pictures that the model drew to think; they are no answer
	}
	switch p.kind {
	case "":
		return nil
	case "text":
		return d.toText(&p)
	case "functionCall":
		return d.toCall(&p)
	}
	if err := d.closeText(); err != nil {
		return err
	}
	if p.kind == "other" {
		o, err := d.keep(bytes.Clone(p.raw))
		if err != nil {
			return err
		}
		return d.Part(pawl.Reasoning{Opaque: o})
	}
	m, err := toMedia(p.content)
	if err != nil {
		return err
	}
	if err := d.Part(m); err != nil || p.members == nil {
		return err
	}
	o, err := d.keep(append(append([]byte(`{"`+ofMedia+`":`), p.members...), '}'))
	if err != nil {
		return err
	}
	return d.Part(pawl.Reasoning{Opaque: o})
}

// keep returns an Opaque of an object that the caller gives away.
func (d *decoder) keep(object []byte) (*pawl.Opaque, error) {
	if !jsonscan.Valid(object) {
		return nil, broken("a part of the reply is not valid JSON")
	}
	return &pawl.Opaque{Provider: d.Tag, Data: object}, nil
}

// toMedia reads inlineData or fileData.
func toMedia(raw []byte) (pawl.Media, error) {
	var m pawl.Media
	c := jsonscan.New(raw)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "mimeType":
			m.MIME = c.String()
		case "fileUri":
			m.URL = c.String()
		case "data":
			b, err := wire.DecodeBase64(c.Bytes())
			if err != nil {
				return m, broken("media in the reply are not base64: %v", err)
			}
			m.Data = b
		}
	}
	return m, nil
}

// toText yields text, or a thought. A signature closes what it came with: it belongs to that text and no other.
func (d *decoder) toText(p *part) error {
	c := jsonscan.New(p.content)
	if p.members == nil || p.thought && len(p.members) == len(`{"thought":true}`) {
		if !wire.Filled(p.content) {
			return nil
		}
		if p.thought {
			return d.think(d.String(&c))
		}
		return d.say(d.String(&c))
	}
	if err := d.closeText(); err != nil {
		return err
	}
	o, err := d.keep(p.members)
	if err != nil {
		return err
	}
	if p.thought {
		return d.Part(pawl.Reasoning{Text: d.String(&c), Opaque: o})
	}
	return d.Part(pawl.Text{Text: d.String(&c), Opaque: o})
}

// call is what functionCall says.
type call struct {
	id, name string
	args     []byte // nil: none
	partial  []byte // an array of pieces of arguments; nil: none
	goesOn   bool   // more pieces follow
}

func readCall(raw []byte) call {
	var f call
	c := jsonscan.New(raw)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "id":
			f.id = c.String()
		case "name":
			f.name = c.String()
		case "args":
			if !c.Null() {
				f.args = c.Raw()
			}
		case "partialArgs":
			if !c.Null() {
				f.partial = c.Raw()
			}
		case "willContinue":
			f.goesOn = c.Bool()
		}
	}
	return f
}

// toCall yields a call, or a piece of one.
func (d *decoder) toCall(p *part) error {
	f := readCall(p.content)
	var o *pawl.Opaque
	if p.members != nil {
		var err error
		if o, err = d.keep(p.members); err != nil {
			return err
		}
	}
	if d.call != nil && (f.name == "" || f.id != "" && f.id == d.call.id) {
		return d.goOn(&f, o)
	}
	if f.name == "" && f.id == "" && f.args == nil && f.partial == nil && o == nil {
		return nil // an end mark of a call that was whole before
	}
	if f.name == "" && f.args == nil {
		return broken("a piece of arguments came where no call was open")
	}
	if err := d.closeCall(); err != nil {
		return err
	}
	if err := d.closeText(); err != nil {
		return err
	}
	whole := pawl.ToolCall{ID: f.id, Name: d.Tools.FromWire(f.name), Opaque: o}
	if f.args == nil && (f.goesOn || f.partial != nil) {
		return d.beginCall(whole, &f)
	}
	whole.Args = json.RawMessage("{}") // an empty object is what the absence of one stands for in the API
	if f.args != nil {
		whole.Args = append(json.RawMessage(nil), f.args...)
	}
	return d.Part(whole)
}

// toUsage reads the figures. Thoughts are counted beside the answer, and what built-in tools read beside the prompt.
func toUsage(raw []byte) *pawl.Usage {
	u := new(pawl.Usage)
	c := jsonscan.New(raw)
	if !c.Object() {
		return nil
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Input += wire.Count(&c)
		case "candidatesTokenCount":
			u.Output += wire.Count(&c)
		case "thoughtsTokenCount":
			u.Reasoning = wire.Count(&c)
		case "cachedContentTokenCount":
			u.CacheRead = wire.Count(&c)
		}
	}
	u.Output += u.Reasoning
	if c.Err() != nil {
		return nil
	}
	u.Raw = raw
	return u
}

// The names of enums for servers that were asked to send numbers ($alt=json;enum-encoding=int): position is value, from 0.
var (
	finishReasons = []string{"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
	blockReasons = []string{"", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
)

// enum reads a name, or the number that stands for one.
func enum(c *jsonscan.Cursor, names []string) string {
	if c.Kind() != jsonscan.Number {
		if s := c.String(); s != "FINISH_REASON_UNSPECIFIED" && s != "BLOCK_REASON_UNSPECIFIED" && s != "BLOCKED_REASON_UNSPECIFIED" {
			return s
		}
		return ""
	}
	switch n, _ := c.Int(); {
	case n <= 0:
		return ""
	case n < int64(len(names)):
		return names[n]
	}
	return "OTHER"
}

// toFinish maps why a reply ended. STOP stands beside calls as well: Response.Add sees them. A call that the API itself found
// to be none must not be run, so those reasons are errors.
func toFinish(reason string) pawl.FinishReason {
	switch reason {
	case "STOP":
		return pawl.FinishStop
	case "MAX_TOKENS":
		return pawl.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return pawl.FinishContentFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE":
		return pawl.FinishError
	}
	return pawl.FinishOther
}
