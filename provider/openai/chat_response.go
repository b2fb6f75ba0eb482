package openai

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
)

var chatAPI = &api{
	provider: "openai-chat",
	path:     "chat/completions",
	maxID:    40,
	encode:   fromChatRequest,
	fromTool: fromChatTool,
	decoder:  func(out *emitter) decoder { return &chatDecoder{emitter: out, text: closed, thought: closed} },
}

// chunkDepth is how deep a delta stands: in a choice, in the choices, in a chunk.
const chunkDepth = 3

// closed stands for the index of a part that is not open.
const closed = -1

// chatDecoder makes deltas of a Chat Completions reply. A whole message is read as the one delta of a stream.
type chatDecoder struct {
	*emitter
	text    int // the open text, or closed
	thought int // the open reasoning, or closed
	calls   []chatCall
	details *chatDetails // OpenRouter's reasoning_details; nil: none came
	reason  []byte       // the finish reason, once there is one
	done    bool         // [DONE] came
	sealing bool         // this is a whole reply: parts come sealed

	// The chunks of a stream differ in little more than their delta. What stands before and after it is read once.
	before []byte // the last chunk up to its delta; nil: not known
	delta  int    // where the delta of this chunk stands; 0: nowhere
	after  []byte // what followed a delta and said nothing
	tries  int    // how often after was set
}

// chatCall is a call under way.
type chatCall struct {
	index  int64 // on the wire; noIndex, legacyIndex
	id     string
	name   string
	part   int
	filled bool // some of its arguments came
	sealed bool
}

const (
	noIndex     = -1 // the server numbers no calls
	legacyIndex = -2 // the one call of function_call
)

func (d *chatDecoder) event(data []byte) error {
	if string(data) == "[DONE]" {
		d.done = true
		return nil
	}
	return d.chunk(data)
}

func (d *chatDecoder) over() bool { return d.done }

func (d *chatDecoder) whole(body []byte) error {
	d.sealing, d.emitter.whole = true, true
	if err := d.chunk(body); err != nil {
		return err
	}
	d.done = true
	return d.end()
}

// chunk reads one chunk of a stream, or a whole body.
func (d *chatDecoder) chunk(data []byte) error {
	var c jsonscan.Cursor
	choices := false
	rest := 0 // where that begins which follows a delta and may say nothing; 0: it says something
	if d.before != nil && bytes.HasPrefix(data, d.before) {
		c = jsonscan.Resume(data, len(d.before), chunkDepth)
		choices = true
		if err := d.toDelta(&c); err != nil {
			return err
		}
		rest = c.Offset()
		if d.after != nil && c.Err() == nil && bytes.Equal(data[rest:], d.after) {
			return nil
		}
		if err := d.members(&c, 0, true); err != nil {
			return err
		}
		for c.More() {
			rest = 0
			if err := d.choice(&c); err != nil {
				return err
			}
		}
	} else {
		c = jsonscan.New(data)
		if !c.Object() {
			return d.broken("the reply is not a JSON object: %s", excerpt(data))
		}
	}
	var failure []byte
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "choices":
			d.delta = 0
			for c.Array(); c.More(); {
				choices = true
				if err := d.choice(&c); err != nil {
					return err
				}
			}
			if d.delta > 0 {
				d.before = append(d.before[:0], data[:d.delta]...)
			}
		case "usage":
			if c.Kind() == jsonscan.Object {
				if u := toUsage(c.Raw()); u != nil {
					d.usage = u
				}
				rest = 0
			}
		case "x_groq":
			d.groq(&c)
			rest = 0
		case "id":
			if d.id == "" {
				d.id = c.String()
			}
		case "model":
			if d.model == "" {
				d.model = c.String()
			}
		case "error":
			if c.Kind() != jsonscan.Null {
				failure = c.Raw()
			}
		}
	}
	if failure != nil {
		return d.toStreamError(failure)
	}
	if err := c.End(); err != nil {
		return d.broken("a chunk of the reply cannot be read: %v", err)
	}
	if rest > 0 && len(d.reason) == 0 && d.tries < 8 { // padding that is always new is not learned for ever
		d.tries++
		d.after = append(d.after[:0], data[rest:]...)
	}
	if d.sealing && !choices {
		return d.broken("the reply has no choices: %s", excerpt(data))
	}
	return nil
}

// groq reads the usage that Groq hides in a member of its own; the plain one, which comes with it or later, wins.
func (d *chatDecoder) groq(c *jsonscan.Cursor) {
	if !c.Object() {
		return
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		if string(k) == "usage" && c.Kind() == jsonscan.Object {
			if u := toUsage(c.Raw()); u != nil && d.usage == nil {
				d.usage = u
			}
		}
	}
}

// choice reads one choice. Of several (n > 1) the first one counts; they may be interleaved.
func (d *chatDecoder) choice(c *jsonscan.Cursor) error {
	if !c.Object() {
		return nil
	}
	return d.members(c, noIndex, false)
}

// members reads the rest of a choice; read says that its delta was read already.
func (d *chatDecoder) members(c *jsonscan.Cursor, index int64, read bool) error {
	var delta, message, reason []byte
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "index":
			index, _ = c.Int()
		case "delta":
			if index != 0 || d.sealing || read {
				delta = c.Raw()
				continue
			}
			read = true
			d.delta = c.Offset()
			if err := d.toDelta(c); err != nil {
				return err
			}
		case "message":
			message = c.Raw()
		case "finish_reason":
			if c.Kind() == jsonscan.String {
				reason = c.Text()
			}
		}
	}
	if index > 0 || c.Err() != nil {
		return nil // the chunk reports the error
	}
	if delta == nil || d.sealing && message != nil { // Perplexity sends both; in a stream the message is what came so far
		delta = message
	}
	if delta != nil && !read {
		inner := jsonscan.New(delta)
		if err := d.toDelta(&inner); err != nil {
			return err
		}
	}
	if len(reason) > 0 {
		d.reason = append(d.reason[:0], reason...)
		return d.sealCalls()
	}
	return nil
}

// toDelta reads a message, or a fragment of one. Its members are taken in the order in which a model writes, whatever theirs.
func (d *chatDecoder) toDelta(c *jsonscan.Cursor) error {
	var text, refusal, thinking, plain string
	var list, details, calls, function []byte
	if !c.Object() {
		return nil
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "content":
			if c.Kind() == jsonscan.Array {
				list = c.Raw()
			} else {
				text = d.string(c)
			}
		case "refusal":
			refusal = d.string(c)
		case reasoningContent:
			thinking = d.string(c)
		case reasoningPlain:
			plain = d.string(c)
		case reasoningDetails:
			details = c.Raw()
		case "tool_calls":
			if d.sealing || text != "" || refusal != "" || thinking != "" || plain != "" || list != nil || details != nil {
				calls = c.Raw()
				continue
			}
			for c.Array(); c.More(); {
				if err := d.call(c); err != nil {
					return err
				}
			}
		case "function_call":
			function = c.Raw()
		}
	}
	if c.Err() != nil {
		return nil // the chunk reports it
	}
	form := reasoningContent
	if thinking == "" {
		thinking, form = plain, reasoningPlain
	}
	if len(details) > 2 && details[0] == '[' {
		if err := d.addDetails(details); err != nil {
			return err
		}
	}
	if err := d.reasoning(thinking, form); err != nil {
		return err
	}
	if err := d.content(list); err != nil {
		return err
	}
	if err := d.say(text); err != nil {
		return err
	}
	if refusal != "" {
		d.refused = true
		if err := d.say(refusal); err != nil {
			return err
		}
	}
	if len(calls) > 2 && calls[0] == '[' {
		inner := jsonscan.New(calls)
		for inner.Array(); inner.More(); {
			if err := d.call(&inner); err != nil {
				return err
			}
		}
	}
	if len(function) > 2 && function[0] == '{' {
		return d.legacy(function)
	}
	return nil
}

// content reads a list of typed parts; nil is none.
func (d *chatDecoder) content(raw []byte) error {
	if raw == nil {
		return nil
	}
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		var typ, text, thinking []byte
		if !c.Object() {
			continue
		}
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			switch string(k) {
			case "type":
				typ = c.Text()
			case "text":
				text = c.Raw()
			case "thinking":
				thinking = c.Raw()
			}
		}
		switch {
		case string(typ) == "thinking" && len(thinking) > 2:
			if err := d.thinking(thinking); err != nil {
				return err
			}
		case filled(text):
			if err := d.say(asText(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// thinking reads Mistral's thinking: text, or a list of text parts.
func (d *chatDecoder) thinking(raw []byte) error {
	if raw[0] == '"' {
		return d.reasoning(asText(raw), reasoningList)
	}
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		if !c.Object() {
			continue
		}
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			if string(k) == "text" {
				if s := c.String(); s != "" {
					if err := d.reasoning(s, reasoningList); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (d *chatDecoder) say(s string) error {
	if s == "" {
		return nil
	}
	if err := d.closeThought(); err != nil {
		return err
	}
	if d.text != closed {
		return d.more(d.text, pawl.Text{Text: s})
	}
	if d.sealing && s != "" {
		return d.part(pawl.Text{Text: s})
	}
	i, err := d.begin(pawl.Text{Text: s})
	d.text = i
	return err
}

func (d *chatDecoder) reasoning(s, form string) error {
	if s == "" {
		return nil
	}
	if d.thought != closed {
		return d.more(d.thought, pawl.Reasoning{Text: s})
	}
	if err := d.closeText(); err != nil {
		return err
	}
	part := pawl.Reasoning{Text: s, Opaque: &pawl.Opaque{Provider: d.tag, Data: json.RawMessage(`{"field":"` + form + `"}`)}}
	if d.sealing {
		return d.part(part)
	}
	i, err := d.begin(part)
	d.thought = i
	return err
}

func (d *chatDecoder) closeText() error {
	if d.text == closed {
		return nil
	}
	i := d.text
	d.text = closed
	return d.seal(i)
}

// closeThought seals the open reasoning, but for one that has details: they may go on until the end.
func (d *chatDecoder) closeThought() error {
	if d.thought == closed || d.details != nil && d.details.part == d.thought {
		return nil
	}
	i := d.thought
	d.thought = closed
	return d.seal(i)
}

// call reads one element of tool_calls: a whole call, the start of one, or more of its arguments.
func (d *chatDecoder) call(c *jsonscan.Cursor) error {
	if !c.Object() {
		return nil
	}
	index := int64(noIndex)
	var id, name string
	var args json.RawMessage
	custom := false
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "index":
			if n, ok := c.Int(); ok {
				index = n
			}
		case "id":
			id = c.String()
		case "function", "custom":
			custom = string(k) == "custom"
			if !c.Object() {
				continue
			}
			for k, ok := c.Key(); ok; k, ok = c.Key() {
				switch string(k) {
				case "name":
					name = c.String()
				case "arguments", "input":
					args = d.args(c)
				}
			}
		}
	}
	if c.Err() != nil {
		return nil // the chunk reports it
	}
	return d.fragment(index, id, name, args, custom)
}

// legacy reads function_call, which was there before tool_calls and has no id. Empty, it is no call.
func (d *chatDecoder) legacy(raw []byte) error {
	var name string
	var args json.RawMessage
	c := jsonscan.New(raw)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "name":
			name = c.String()
		case "arguments":
			args = d.args(&c)
		}
	}
	if name == "" && len(args) == 0 {
		return nil
	}
	return d.fragment(legacyIndex, "", name, args, false)
}

// find returns the call that a fragment continues, or nil where it begins one. Servers number calls from 0 or from 1, all
// with 0, or not at all; they repeat ids and names, or send them empty.
func (d *chatDecoder) find(index int64, id, name string) *chatCall {
	if d.sealing && index != legacyIndex {
		return nil // a whole reply has whole calls
	}
	for i := len(d.calls) - 1; i >= 0; i-- {
		call := &d.calls[i]
		switch {
		case call.index != index:
			continue
		case id != "" && call.id != "" && id != call.id:
			if index == noIndex {
				continue // an earlier call may have this id
			}
			return nil // another call under the same number
		case id == "" && name != "" && call.name != "" && (name != call.name || index == noIndex):
			return nil // without an id, a name begins a call
		}
		return call
	}
	return nil
}

func (d *chatDecoder) fragment(index int64, id, name string, args json.RawMessage, custom bool) error {
	call := d.find(index, id, name)
	if call == nil {
		return d.newCall(index, id, name, args, custom)
	}
	var part pawl.ToolCall
	if call.id == "" && id != "" {
		call.id, part.ID = id, id
	}
	if call.name == "" && name != "" {
		call.name, part.Name = name, d.tools.fromWire(name)
	}
	part.Args = args
	if len(args) == 0 && part.ID == "" && part.Name == "" {
		return nil
	}
	if call.sealed {
		return d.broken("the arguments of call %q went on after the next call had begun", call.id)
	}
	call.filled = call.filled || len(args) > 0
	return d.more(call.part, part)
}

func (d *chatDecoder) newCall(index int64, id, name string, args json.RawMessage, custom bool) error {
	if err := d.closeThought(); err != nil {
		return err
	}
	if err := d.closeText(); err != nil {
		return err
	}
	if err := d.sealCalls(); err != nil {
		return err
	}
	part := pawl.ToolCall{ID: id, Name: d.tools.fromWire(name), Args: args}
	if custom {
		part.Opaque = &pawl.Opaque{Provider: d.tag, Data: json.RawMessage(`{"type":"` + customType + `"}`)}
	}
	if d.sealing {
		return d.part(part)
	}
	i, err := d.begin(part)
	d.calls = append(d.calls, chatCall{index: index, id: id, name: name, part: i, filled: len(args) > 0})
	return err
}

// sealCalls seals the calls so far: another one begins, or the reply ends. A call without any arguments is left open: some
// servers list the calls first.
func (d *chatDecoder) sealCalls() error {
	for i := range d.calls {
		if call := &d.calls[i]; !call.sealed && call.filled {
			call.sealed = true
			if err := d.seal(call.part); err != nil {
				return err
			}
		}
	}
	return nil
}

// end finishes the reply. A server may leave out [DONE] after a finish reason, or, with [DONE], the reason; a stream without
// either was cut.
func (d *chatDecoder) end() error {
	if len(d.reason) == 0 && !d.done {
		return d.broken("the stream ended without a finish reason")
	}
	if err := d.closeDetails(); err != nil {
		return err
	}
	return d.finish(toChatFinish(d.reason))
}

// toFinish maps the reasons of OpenAI, and those that other servers use beside them.
func toChatFinish(reason []byte) pawl.FinishReason {
	switch string(bytes.ToLower(reason)) {
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed":
		return pawl.FinishStop
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return pawl.FinishLength
	case "tool_calls", "tool_call", "function_call", "tool_use":
		return pawl.FinishToolCalls
	case "content_filter", "safety", "refusal", "recitation":
		return pawl.FinishContentFilter
	case "error", "malformed_function_call":
		return pawl.FinishError
	}
	return pawl.FinishOther
}
