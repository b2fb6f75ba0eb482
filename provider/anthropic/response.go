package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// decoder emits the deltas of a reply: of the blocks of a whole one (this file), or of the events
// of a stream (stream.go).
type decoder struct {
	*wire.Emitter
	*dialect
	restart func() // drops what was emitted; nil means that it cannot be taken back

	slots   []slot // the blocks of a stream, in order of appearance
	started bool
	opening []byte // the content with which the message began; nil means none
	from    int    // index of the first part
	stated  bool   // the event that ends a stream said why: more content is not of this message
	ended   bool
	// holding delays blocks until the stop reason, because a call may already have been executed
	// by the server.
	holding bool
	held    [][]byte // the delayed blocks

	stop        wire.End // the stop reason
	explanation string   // of a refusal
	container   string
	cleared     []byte // the edits of the conversation by the server
	miss        []byte // why the server could not use its cache; nil means not stated
	figures     figures
}

// Whole reads a whole reply.
func (d *decoder) Whole(body []byte) error {
	d.Emitter.Whole = true
	c := jsonscan.New(body)
	if c.Kind() == jsonscan.Array {
		return toStreamError(body) // Vertex AI wraps errors in an array
	}
	if c.Kind() != jsonscan.Object {
		return broken("the reply is not a JSON object: %s", wire.Excerpt(body))
	}
	typ, blocks, failure := d.message(&c)
	switch {
	case failure != nil && string(failure) != "null" || string(typ) == "error":
		return toStreamError(body)
	case c.End() != nil:
		return broken("the reply cannot be read: %v", c.End())
	case len(blocks) == 0 || blocks[0] != '[':
		return broken("the reply has no content: %s", wire.Excerpt(body))
	}
	list := jsonscan.New(blocks)
	for list.Array(); list.More(); {
		if err := d.block(&list); err != nil {
			return err
		}
	}
	if err := list.Err(); err != nil {
		return broken("the content of the reply cannot be read: %v", err)
	}
	return d.finish()
}

// message reads a message, or the message that opens a stream, and returns what it does not use.
func (d *decoder) message(c *jsonscan.Cursor) (typ jsonscan.Word, blocks, failure []byte) {
	var stop string
	var usage, details, container, managed, diagnostics []byte
	c.Fields("type", &typ, "content", &blocks, "error", &failure, "id", &d.ID, "model", &d.Model, "usage", &usage,
		"stop_reason", &stop, "stop_details", &details, "container", &container, "context_management", &managed,
		"diagnostics", &diagnostics)
	d.edited(managed)
	d.missed(diagnostics)
	if len(usage) > 0 && usage[0] == '{' {
		d.figures.add(usage)
	}
	d.ending(stop, details, container)
	return typ, blocks, failure
}

// edited stores what the server cleared from the conversation, if it says so.
func (d *decoder) edited(managed []byte) {
	if list := wire.Member(managed, "applied_edits"); inside(list) != nil {
		d.cleared = bytes.Clone(list)
	}
}

// missed stores why the server could not use its cache, if it says so. It compares only if the
// request's options name an earlier reply (diagnostics.previous_message_id).
// https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics
func (d *decoder) missed(diagnostics []byte) {
	if reason := wire.Member(diagnostics, "cache_miss_reason"); jsonscan.IsObject(reason) {
		d.miss = bytes.Clone(reason)
	}
}

// ending stores the members that end a message, if they are there and the stop reason counts.
func (d *decoder) ending(stop string, details, container []byte) {
	counts := d.stop.State(stop, toFinish(stop))
	if stop != "" && !counts {
		return
	}
	d.explanation = cmp.Or(wire.MemberText(details, "explanation"), d.explanation)
	d.container = cmp.Or(wire.MemberText(container, "id"), d.container)
}

// content is one content block. Its members are raw JSON until its type is known.
type content struct {
	typ                               jsonscan.Word
	raw                               []byte
	id, name                          string
	text, thinking, signature, caller []byte
	input, citations                  []byte
}

func (d *decoder) content(c *jsonscan.Cursor) (b content) {
	c.Kind() // skips white space
	begin := c.Offset()
	var name []byte
	c.Fields("type", &b.typ, "id", &b.id, "name", &name, "text", &b.text, "thinking", &b.thinking,
		"signature", &b.signature, "caller", &b.caller, "input", &b.input, "citations", &b.citations)
	b.name = d.Name(name)
	b.raw = c.Since(begin)
	return b
}

// block emits a whole block.
func (d *decoder) block(c *jsonscan.Cursor) error {
	b := d.content(c)
	if c.Err() != nil {
		return nil // the reader of the list reports it
	}
	switch string(b.typ) {
	case "":
		return broken("a block of the reply has no type: %s", wire.Excerpt(b.raw))
	case "text":
		opaque, err := d.cited(inside(b.citations))
		if err != nil || !wire.Filled(b.text) && opaque == nil {
			return err
		}
		return d.Part(llm.Text{Text: wire.AsText(b.text), Opaque: opaque})
	case "thinking":
		return d.thought(wire.AsText(b.thinking), b.raw, wire.Filled(b.signature))
	case "tool_use":
		// The call is stored with the other blocks of the code, and is not executed again.
		if foreign(b.caller) && d.stop.Word != "tool_use" {
			break // called by code in the server's container, which has its result
		}
		call, err := d.toCall(&b)
		if err != nil {
			return err
		}
		call.Args = orEmpty(wire.AsArgs(b.input))
		return d.Part(call)
	}
	opaque, err := d.Keep(b.raw)
	if err != nil {
		return err
	}
	return d.Part(llm.Reasoning{Opaque: opaque})
}

// blockOf emits a block that was joined.
func (d *decoder) blockOf(raw []byte) error {
	c := jsonscan.New(raw)
	return d.block(&c)
}

// thought emits whole thinking. Anthropic signs complete thinking, and rejects thinking without a
// signature.
func (d *decoder) thought(text string, raw []byte, signed bool) error {
	p := llm.Reasoning{Text: text}
	if signed || d.compatible {
		var err error
		p.Opaque, err = d.Keep(raw)
		if err != nil {
			return err
		}
	} else if text == "" {
		return nil
	}
	return d.Part(p)
}

// cited stores the citations of a text, which are sent back with it. list is the content of their
// array.
func (d *decoder) cited(list []byte) (*llm.Opaque, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return d.Keep(append(append([]byte(`{"citations":[`), list...), `]}`...))
}

// inside returns the content of an array without its brackets; nil means that list is empty or not
// an array.
func inside(list []byte) []byte {
	if len(list) <= 2 || list[0] != '[' {
		return nil
	}
	return list[1 : len(list)-1]
}

// foreign reports whether the caller of a tool is not the model itself.
func foreign(caller []byte) bool {
	if caller == nil {
		return false
	}
	t := wire.MemberText(caller, "type")
	return t != "" && t != "direct"
}

// toCall returns the call of a block, without its arguments.
func (d *decoder) toCall(b *content) (llm.ToolCall, error) {
	call := llm.ToolCall{ID: b.id, Name: d.Tools.FromWire(b.name)}
	if !foreign(b.caller) {
		return call, nil
	}
	var err error
	call.Opaque, err = d.Keep(append(append([]byte(`{"caller":`), b.caller...), '}'))
	return call, err
}

// finish ends the reply, or its part before a pause.
func (d *decoder) finish() error {
	for _, raw := range d.held {
		if err := d.blockOf(raw); err != nil {
			return err
		}
	}
	if d.container != "" {
		data := append(jsonscan.AppendString([]byte(`{"container":`), d.container), '}')
		if err := d.Part(llm.Reasoning{Opaque: &llm.Opaque{Provider: d.tag, Data: data}}); err != nil {
			return err
		}
	}
	d.Usage = d.figures.toUsage()
	// A turn with a call cannot be continued: the API expects the result first.
	if d.stop.Ending == wire.Paused && !d.Has() {
		return errPaused
	}
	var n *llm.Notice
	switch {
	case d.stop.Word == "refusal" && d.explanation != "":
		n = &llm.Notice{Code: "refusal", Text: d.explanation}
	case d.cleared != nil:
		n = &llm.Notice{Code: "context_cleared", Text: "anthropic: the server left out old parts of the conversation", Data: d.cleared}
	}
	d.Began = d.Began || n != nil
	if n != nil && !d.Yield(llm.Delta{Notice: n}, nil) {
		return wire.ErrStopped
	}
	if err := d.NoteCacheMiss(wire.MemberText(d.miss, "type"), d.miss); err != nil {
		return err
	}
	return d.FinishAs(d.stop)
}

// stopReasons has a row for each stop reason of the API and of its beta versions.
// https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
var stopReasons = wire.Endings{
	"end_turn":                      wire.Answered,
	"stop_sequence":                 wire.Answered,
	"tool_use":                      wire.Calls,
	"max_tokens":                    wire.Full,
	"model_context_window_exceeded": wire.Full,
	"pause_turn":                    wire.Paused,
	"compaction":                    wire.Paused, // after a summary of the conversation
	"refusal":                       wire.Filtered,
}

// toFinish returns what a stop reason means.
func toFinish(reason string) wire.Ending { return stopReasons[reason] }

// container returns the id of the container of the last reply that used one; "" means none.
func container(tag string, messages []llm.Message) string {
	// The newest first: the server may have replaced an earlier one.
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != llm.RoleAssistant {
			continue
		}
		for j := len(messages[i].Parts) - 1; j >= 0; j-- {
			r, ok := messages[i].Parts[j].(llm.Reasoning)
			own := ok && r.Opaque != nil && r.Opaque.Provider == tag
			if !own || r.Text != "" {
				continue
			}
			if id := wire.MemberText(r.Opaque.Data, "container"); id != "" && wire.MemberText(r.Opaque.Data, "type") == "" {
				return id
			}
		}
	}
	return ""
}

// figures are the token counts of a reply. A stream reports them twice; the later figures are
// totals.
type figures struct {
	input, output, thinking, read, write int
	hour                                 int // the part of write with a lifetime of an hour
	raw                                  json.RawMessage
}

// add replaces the figures that raw states. The usage of a reply is the sum of its iterations: the
// figures next to them leave out what a compaction used. An iteration that names a model is of
// another model, an advisor, and has another price; it is only in raw.
func (f *figures) add(raw []byte) {
	const unstated = -1
	next := figures{
		input:    unstated,
		output:   unstated,
		thinking: unstated,
		read:     unstated,
		write:    unstated,
		hour:     unstated,
	}
	sum := figures{}
	var details, iterations, model, lifetimes []byte
	c := jsonscan.New(raw)
	c.Fields("input_tokens", &next.input, "output_tokens", &next.output, "cache_read_input_tokens", &next.read,
		"cache_creation_input_tokens", &next.write, "output_tokens_details", &details, "iterations", &iterations,
		"cache_creation", &lifetimes)
	inner := jsonscan.New(details)
	inner.Fields("thinking_tokens", &next.thinking)
	inner = jsonscan.New(lifetimes)
	inner.Fields("ephemeral_1h_input_tokens", &next.hour)
	list := jsonscan.New(iterations)
	// The cursor leaves a variable unchanged whose member is absent, so that each iteration begins
	// anew.
	for list.Array(); list.More(); model = nil {
		var one figures
		lifetimes = nil
		list.Fields("input_tokens", &one.input, "output_tokens", &one.output, "cache_read_input_tokens", &one.read,
			"cache_creation_input_tokens", &one.write, "model", &model, "cache_creation", &lifetimes)
		inner = jsonscan.New(lifetimes)
		inner.Fields("ephemeral_1h_input_tokens", &one.hour)
		if model == nil {
			sum.hour += one.hour
			sum.input, sum.output = sum.input+one.input, sum.output+one.output
			sum.read, sum.write = sum.read+one.read, sum.write+one.write
		}
	}
	// The last event of some streams has only the output. The raw figures are the most complete
	// ones.
	if c.Err() == nil && (next.input != unstated || f.raw == nil) {
		f.raw = append(json.RawMessage(nil), raw...)
	}
	if sum.input+sum.output > 0 {
		next.input, next.output, next.read, next.write = sum.input, sum.output, sum.read, sum.write
		next.hour = sum.hour
	}
	// A last event with zeros states nothing. One with an input replaces the cache's figures too.
	set := func(n *int, v int, zero bool) {
		if v > 0 || v == 0 && zero {
			*n = v
		}
	}
	set(&f.input, next.input, false)
	set(&f.output, next.output, false)
	set(&f.thinking, next.thinking, false)
	set(&f.read, next.read, next.input > 0)
	set(&f.write, next.write, next.input > 0)
	set(&f.hour, next.hour, next.input > 0)
}

// toUsage normalizes the figures: Anthropic's input does not include the cache.
func (f *figures) toUsage() *llm.Usage {
	if f.raw == nil {
		return nil
	}
	return &llm.Usage{Input: f.input + f.read + f.write, Output: f.output, Reasoning: f.thinking, CacheRead: f.read,
		CacheWrite: f.write, CacheWriteLong: f.hour, Raw: f.raw}
}
