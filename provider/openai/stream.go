package openai

import (
	"bytes"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// slot is an open item of a stream. output_index identifies it, because some servers change the
// ids between events.
type slot struct {
	index   int64
	kind    kind
	call    llm.ToolCall // the call without its arguments
	opaque  *llm.Opaque  // of the texts of a message
	part    int          // the open part, or closed
	content int64        // the open content or summary part
	any     bool         // a part of the item was emitted
	sealed  bool         // the call or the reasoning is complete
	done    bool         // the whole item arrived
	texts   []int        // the parts of a message
	hold    []byte       // the arguments of a call that may have to be unwrapped
	raw     bool         // reasoning: the text is the reasoning itself, not its summary
}

// Event reads one event of a stream. Its name is in the data, because some servers send it only
// there.
func (d *responseDecoder) Event(data []byte) error {
	if string(data) == "[DONE]" {
		return nil
	}
	c := jsonscan.New(data)
	if c.Kind() != jsonscan.Object {
		return d.broken("an event is not a JSON object: %s", wire.Excerpt(data))
	}
	name := jsonscan.New(wire.Member(data, "type"))
	typ := name.Text()
	// Its number is not read: these events are half of a stream, and the early return keeps them
	// cheap. inOrder accepts a gap of as many numbers.
	if ignored(typ) {
		d.begun = true
		d.skipped++
		return nil
	}
	var response, failure []byte
	ev := event{output: noIndex}
	number := int64(noIndex)
	c.Fields("output_index", &ev.output, "sequence_number", &number, "content_index", &ev.content,
		"summary_index", &ev.content, "delta", &ev.delta, "text", &ev.text, "refusal", &ev.text,
		"arguments", &ev.args, "input", &ev.input, "item", &ev.item, "response", &response, "error", &failure)
	if response != nil && endEvents[string(typ)] != "" {
		inner := jsonscan.New(response)
		return d.last(&inner, string(typ), number)
	}
	d.begun = true
	if err := c.End(); err != nil {
		return d.broken("an event cannot be read: %v", err)
	}
	// The number is checked before the error and the fragment: a duplicate must not have an effect
	// twice.
	if again, err := d.inOrder(number); again || err != nil {
		return err
	}
	if string(failure) == "null" {
		failure = nil
	}
	if failure != nil || string(typ) == "error" {
		if failure == nil {
			failure = data
		}
		return d.toStreamError(failure)
	}
	// The event that ends a stream came without its response.
	if endEvents[string(typ)] != "" {
		return wire.Nothing(d.provider)
	}
	return d.toDelta(typ, &ev)
}

// event has the members of the events of a stream, as raw JSON.
type event struct {
	delta, text, args, input, item []byte
	output, content                int64 // the index of the item, and of the text in it
}

// last reads the response in the last event, of type typ.
func (d *responseDecoder) last(c *jsonscan.Cursor, typ string, number int64) error {
	if _, err := d.inOrder(number); err != nil {
		return err
	}
	return d.response(c, typ, d.Next == 0)
}

// toDelta emits the fragments of one event.
func (d *responseDecoder) toDelta(typ []byte, ev *event) error {
	switch string(typ) {
	case "response.output_item.added":
		return d.added(ev.output, ev.item)
	case "response.output_item.done":
		if ev.output != noIndex && d.slot(ev.output).sealed {
			d.slot(ev.output).done = true // the common case: a call whose arguments are complete
			d.partial = d.partial || bytes.Contains(ev.item, incompleteWord) &&
				wire.MemberText(ev.item, "status") == "incomplete"
			return nil
		}
		return d.itemDone(ev.output, ev.item)
	case "response.output_text.delta":
		return d.say(ev.output, ev.content, ev.delta)
	case "response.refusal.delta":
		d.Refused = true
		return d.say(ev.output, ev.content, ev.delta)
	case "response.output_text.done", "response.refusal.done":
		// The event has the whole text. It is the text if no fragment came, and a check of the
		// fragments if they did.
		if s := d.slot(ev.output); s.part == closed || s.content != ev.content {
			d.Refused = d.Refused || string(typ) == "response.refusal.done"
			return d.say(ev.output, ev.content, ev.text)
		} else if wire.Filled(ev.text) && !d.Agrees(s.part, d.unquoted(ev.text)) {
			return d.Inconsistent("the text of item %d differs from its fragments", ev.output)
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_summary.delta":
		return d.think(ev.output, ev.content, ev.delta, false)
	case "response.reasoning_text.delta", "response.reasoning.delta":
		return d.think(ev.output, ev.content, ev.delta, true)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return d.addArgs(ev.output, ev.delta)
	case "response.function_call_arguments.done":
		return d.argsDone(ev.output, ev.args)
	case "response.custom_tool_call_input.done":
		return d.argsDone(ev.output, ev.input)
	}
	return nil
}

// inOrder checks the numbers of events, if a server counts them. An event with the previous number
// is a duplicate and is skipped. A lower number is an error, because its fragment belongs before
// the emitted ones. After a gap, the last event must vouch for the reply.
func (d *responseDecoder) inOrder(number int64) (again bool, err error) {
	switch {
	case number == noIndex:
		return false, nil
	case number > d.number:
		d.gap = d.gap || d.numbered && number > d.number+1+d.skipped
		d.skipped = 0
		d.counts = d.counts || d.numbered
		d.number, d.numbered = number, true
		return false, nil
	// Until a number has been higher than the one before, the server may number all events alike.
	// Then the order says nothing.
	case !d.counts:
		d.number, d.numbered = number, true
		return false, nil
	case number == d.number:
		return !d.Unchecked, nil
	}
	return false, d.Inconsistent("event %d came after event %d", number, d.number)
}

// ignored reports whether an event only repeats others. There are many of them, and they are long.
func ignored(typ []byte) bool {
	t, ok := bytes.CutPrefix(typ, []byte("response."))
	if !ok {
		return false
	}
	switch string(t) {
	case "created", "in_progress", "queued", "content_part.added", "content_part.done", "output_text.annotation.added",
		"reasoning_summary_part.added", "reasoning_summary_part.done", "reasoning_summary_text.done", "reasoning_text.done":
		return true
	}
	return false
}

// incompleteWord is in every item with the status incomplete.
var incompleteWord = []byte(`"incomplete"`)

// slot returns the item with an index, or a new one. Without an index it returns the last one.
func (d *responseDecoder) slot(index int64) *slot {
	if n := len(d.slots); index == noIndex && n > 0 {
		return &d.slots[n-1]
	}
	if i, ok := d.at[index]; ok {
		return &d.slots[i]
	}
	return d.newSlot(slot{index: index, part: closed, kind: kindMessage})
}

func (d *responseDecoder) newSlot(s slot) *slot {
	if d.at == nil {
		d.at = make(map[int64]int, 8)
	}
	d.at[s.index] = len(d.slots)
	d.slots = append(d.slots, s)
	return &d.slots[len(d.slots)-1]
}

func (d *responseDecoder) added(index int64, raw []byte) error {
	c := jsonscan.New(raw)
	it := d.read(&c)
	if index == noIndex {
		index = it.index
	}
	if index == noIndex {
		index = int64(len(d.slots))
	}
	if i, ok := d.at[index]; ok && !d.Unchecked {
		s := &d.slots[i]
		same := s.kind == it.kind() && s.call.ID == it.callID
		if same && !s.any && !s.done {
			return nil // a duplicate event
		}
	}
	s := d.newSlot(slot{index: index, part: closed, kind: it.kind(), call: llm.ToolCall{ID: it.callID}})
	switch s.kind {
	case kindMessage:
		var err error
		s.opaque, err = d.phase(&it)
		return err
	case kindFunction, kindCustom:
		call, err := d.toCall(&it)
		if err != nil {
			return err
		}
		if s.kind == kindCustom {
			call.Opaque = nil // arrives with the whole item
		}
		s.call = call
		s.call.Args = nil
		if wrapped(d.Tools, call.Name) {
			s.hold = []byte{}
			return nil
		}
		s.any = len(call.Args) > 0
		s.part, err = d.BeginCall(call)
		return err
	}
	return nil
}

func (d *responseDecoder) say(index, content int64, delta []byte) error {
	if !wire.Filled(delta) {
		return nil
	}
	s := d.slot(index)
	// Text in an item of another kind belongs to that item, which is stored whole when it is done.
	if s.kind != kindMessage {
		return nil
	}
	s.any = true
	if s.part != closed && s.content == content {
		c := jsonscan.New(delta)
		return d.MoreText(s.part, wire.ReadPiece(&c))
	}
	if err := d.sealSlot(s); err != nil {
		return err
	}
	s.content = content
	var err error
	s.part, err = d.BeginText(llm.Text{Text: wire.AsPiece(delta), Opaque: s.opaque})
	s.texts = append(s.texts, s.part)
	return err
}

// think emits reasoning. If a server sends the reasoning and its summary, only the first of them
// is emitted.
func (d *responseDecoder) think(index, content int64, delta []byte, raw bool) error {
	if !wire.Filled(delta) {
		return nil
	}
	s := d.slot(index)
	if s.sealed || s.part != closed && s.kind != kindReasoning {
		return nil
	}
	text := wire.AsPiece(delta)
	if s.part == closed {
		s.kind, s.any, s.raw, s.content = kindReasoning, true, raw, content
		var err error
		s.part, err = d.BeginReasoning(llm.Reasoning{Text: text})
		return err
	}
	if s.raw != raw {
		return nil
	}
	// Summaries have several parts, which are paragraphs of one text here, as in reasoningText.
	if s.content != content {
		s.content = content
		text = "\n\n" + text
	}
	return d.MoreReasoning(s.part, text)
}

// takesArgs reports whether arguments are for a call of this program. The same events have the
// arguments of tools that the server executes.
func (s *slot) takesArgs() bool {
	return (s.kind == kindFunction || s.kind == kindCustom) && !s.sealed
}

func (d *responseDecoder) addArgs(index int64, delta []byte) error {
	s := d.slot(index)
	if !s.takesArgs() || !wire.Filled(delta) {
		return nil
	}
	if s.hold != nil {
		c := jsonscan.New(delta)
		s.hold = c.AppendPiece(s.hold)
		return nil
	}
	s.any = true
	return d.MoreArgs(s.part, d.ArgsPiece(delta))
}

// argsDone ends a function call as soon as its arguments are complete, so that it can start. raw
// has all arguments.
func (d *responseDecoder) argsDone(index int64, raw []byte) error {
	s := d.slot(index)
	if !s.takesArgs() {
		return nil
	}
	args := d.unquoted(raw)
	// The calls in a wrapper are emitted from the joined arguments, since none of them has been
	// emitted.
	if s.hold != nil {
		s.hold = jsonscan.JoinHalves(s.hold)
		if len(s.hold) == 0 {
			s.hold = bytes.Clone(args)
		} else if len(args) > 0 && !bytes.Equal(args, s.hold) {
			if err := d.changed(s); err != nil {
				return err
			}
		}
		s.sealed = true
		s.call.Args = s.hold
		return unwrap(d.Emitter, s.call)
	}
	// Without fragments this event has the arguments; otherwise it must agree with them.
	if !s.any && len(args) > 0 {
		s.any = true
		if err := d.MoreArgs(s.part, args); err != nil {
			return err
		}
	} else if len(args) > 0 && !d.Agrees(s.part, args) {
		if err := d.changed(s); err != nil {
			return err
		}
	}
	if s.kind == kindCustom {
		return nil // its item follows and is stored
	}
	s.sealed = true
	return d.Seal(s.part)
}

// changed returns the error of a call whose arguments differ from its fragments.
func (d *responseDecoder) changed(s *slot) error {
	return d.Inconsistent("the arguments of the call %q differ from their fragments", s.call.ID)
}

func (d *responseDecoder) sealSlot(s *slot) error {
	if s.part == closed {
		return nil
	}
	i := s.part
	s.part = closed
	if s.kind != kindMessage {
		s.sealed = true
	}
	return d.Seal(i)
}

// itemDone completes an item. Content that no fragment had comes from the whole item.
func (d *responseDecoder) itemDone(index int64, raw []byte) error {
	c := jsonscan.New(raw)
	it := d.read(&c)
	if index == noIndex {
		index = it.index
	}
	s := d.slot(index)
	// A second event of the same item must not emit it again.
	again := s.done
	s.done = true
	d.noteStatus(&it)
	kind := it.kind()
	switch {
	case s.sealed:
		return nil
	case s.part == closed && !s.any && s.hold == nil:
		if again && !d.Unchecked {
			return nil
		}
		return d.wholeItem(s, &it)
	case s.hold != nil:
		return d.argsDone(index, it.args)
	case kind == kindMessage || kind != s.kind:
		return d.sealSlot(s)
	case kind == kindReasoning:
		o, err := d.Keep(raw)
		if err != nil {
			return err
		}
		s.sealed = true
		summarized := s.part != closed && !s.raw && len(it.summary) > 2
		if summarized && !d.Agrees(s.part, []byte(reasoningText(&it))) {
			if err := d.Inconsistent("the summary of item %d differs from its fragments", index); err != nil {
				return err
			}
		}
		if s.part == closed { // of a slot whose kind changed
			return d.Part(llm.Reasoning{Opaque: o})
		}
		return d.Send(llm.Delta{Index: s.part, Part: llm.Reasoning{Opaque: o}, Done: true})
	case kind == kindCustom:
		call, err := d.toCall(&it)
		if err != nil {
			return err
		}
		// Agreed arguments are not sent twice. The item itself is stored, because its result needs
		// its type.
		if s.any {
			if !d.Agrees(s.part, call.Args) {
				if err := d.changed(s); err != nil {
					return err
				}
			}
			call.Args = nil
		}
		s.sealed = true
		return d.Send(llm.Delta{Index: s.part, Part: llm.ToolCall{Args: call.Args, Opaque: call.Opaque}, Done: true})
	case kind == kindFunction:
		return d.argsDone(index, it.args)
	}
	return nil
}
