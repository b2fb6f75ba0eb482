package anthropic

import (
	"bytes"
	"hash/maphash"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// slot is a block of a stream.
type slot struct {
	index int
	kind  kind
	part  int // the open part, or closed
	// so depends on the kind. Thinking: the text so far. Text: the content of the array of
	// citations. Call: the initial input.
	so     []byte
	signed []byte // of thinking: the signature so far
	filled bool   // some arguments arrived in fragments
	done   bool
	closed bool // its stop event arrived
	block  *pieces
	head   uint64 // hash of the event that opened it
}

// kind is how a block is emitted while it arrives.
type kind int

const (
	kindText     kind = iota
	kindThinking      // text, followed by the complete block
	kindCall
	kindBlock // emitted when complete
)

// closed is the index of a part that is not open.
const closed = -1

// Event reads one event. The data has its name.
func (d *decoder) Event(data []byte) error {
	var typ jsonscan.Word
	var delta, block, usage, message, failure, managed []byte
	var index int
	c := jsonscan.New(data)
	if c.Kind() != jsonscan.Object {
		if string(data) == "[DONE]" { // from compatible servers
			return nil
		}
		return broken("an event is not a JSON object: %s", wire.Excerpt(data))
	}
	c.Fields("type", &typ, "index", &index, "delta", &delta, "content_block", &block, "usage", &usage,
		"message", &message, "error", &failure, "context_management", &managed)
	switch {
	case string(typ) == "ping":
		return nil
	case string(typ) == "error", failure != nil && string(failure) != "null":
		return toStreamError(data)
	}
	if err := c.End(); err != nil {
		return broken("an event of the reply cannot be read: %v", err)
	}
	if d.stated && d.isContent(typ, index) {
		d.Late = true
		return nil
	}
	if message != nil {
		if err := d.start(message); err != nil {
			return err
		}
	}
	switch string(typ) {
	case "content_block_start":
		return d.begin(index, block)
	case "content_block_delta":
		if delta != nil {
			return d.toDelta(delta, index)
		}
	case "content_block_stop":
		s := d.slot(index)
		if s == nil {
			return d.Inconsistent("block %d ended, and had not begun", index)
		}
		s.closed = true
		return d.end(s)
	// The end of the message comes with its totals of tokens, which replace the figures of its
	// start.
	case "message_delta":
		var stop string
		var details, container []byte
		inner := jsonscan.New(delta)
		inner.Fields("stop_reason", &stop, "stop_details", &details, "container", &container)
		// A reason in the message that opened the stream was not its end.
		if stop != "" && !d.stated {
			d.stated = true
			d.stop = wire.End{}
		}
		d.ending(stop, details, container)
		d.edited(managed)
		if len(usage) > 0 && usage[0] == '{' {
			return d.spent(usage)
		}
	case "message_stop":
		d.ended = true
	}
	return nil
}

// isContent reports whether an event after the stop reason is more content. The end of a block that
// arrived before it is none: some servers send it late.
func (d *decoder) isContent(typ []byte, index int) bool {
	switch string(typ) {
	case "message_start", "content_block_start", "content_block_delta":
		return true
	case "content_block_stop":
		return d.slot(index) == nil
	}
	return false
}

// spent adds the figures of an event, which are totals. They cannot become less.
func (d *decoder) spent(usage []byte) error {
	before := d.figures.output
	d.figures.add(usage)
	if d.figures.output < before && d.Has() {
		return d.Inconsistent("the usage became less")
	}
	return nil
}

// Over reports whether the message has stopped.
func (d *decoder) Over() bool { return d.ended }

// Stated reports whether the stop reason arrived.
func (d *decoder) Stated() bool { return d.stop.Stated() }

// End finishes the reply. A server may leave out message_stop after a stop reason. A stream
// without either was cut off. A stream without the beginning of a message has lost it, and maybe
// calls with it.
func (d *decoder) End() error {
	switch {
	case !d.ended && !d.Stated():
		return broken("the stream ended before the message did")
	case !d.started && len(d.slots) == 0:
		return wire.Nothing(provider)
	}
	if err := d.complete(); err != nil {
		return err
	}
	// Compatible servers may leave out the ends of blocks. complete has checked that no call lacks
	// its end.
	for i := range d.slots {
		if err := d.end(&d.slots[i]); err != nil {
			return err
		}
	}
	return d.finish()
}

// complete checks that the events of a reply with calls say how it ended, and that the end of each
// call arrived, if the server sends the ends of blocks.
func (d *decoder) complete() error {
	open := -1
	closed := false
	for i := range d.slots {
		s := &d.slots[i]
		switch {
		case s.closed:
			closed = true
		case s.kind == kindCall:
			open = i
		}
	}

	// A block without an end is a fault only if other blocks have ends, and matters only if its
	// call would run.
	switch {
	case !d.Stated() && d.Has():
		return d.Inconsistent("the reply has calls, and no stop reason")
	case open >= 0 && closed && d.stop.Word == "tool_use":
		return d.Inconsistent("block %d has a call, and did not end", d.slots[open].index)
	}
	return nil
}

// start reads the message that opens a stream. It has content if code in the server's container
// waits for calls. A second message means that a proxy repeated the request, and the first reply
// does not count. If its deltas cannot be taken back, the reply fails.
func (d *decoder) start(message []byte) error {
	if d.started {
		id := wire.MemberText(message, "id")
		repeated := id != "" && id == d.ID && len(d.slots) == 0
		if repeated && !d.Unchecked {
			if !bytes.Equal(wire.Member(message, "content"), d.opening) {
				return d.Inconsistent("the message began twice, with other content")
			}
			return nil // a duplicate event
		}
		if len(d.slots) > 0 || d.Next > d.from {
			if d.restart == nil {
				return broken("the reply began anew after some of it was seen")
			}
			d.restart()
			d.Restart()
		}
		*d = decoder{Emitter: d.Emitter, dialect: d.dialect, restart: d.restart}
	}
	d.started = true
	d.from = d.Next
	inner := jsonscan.New(message)
	_, blocks, _ := d.message(&inner)
	d.opening = bytes.Clone(blocks)
	if len(blocks) == 0 || blocks[0] != '[' {
		return nil
	}
	list := jsonscan.New(blocks)
	for list.Array(); list.More(); {
		raw := list.Raw()
		d.holding = d.holding || foreign(wire.Member(raw, "caller"))
		if d.holding { // the stop reason may follow
			d.held = append(d.held, bytes.Clone(raw))
		} else if err := d.blockOf(raw); err != nil {
			return err
		}
	}
	return nil
}

// heads is the seed for hashes of the beginnings of blocks. Calls differ by their ids.
var heads = maphash.MakeSeed()

// slot returns the last block with an index; nil means none.
func (d *decoder) slot(index int) *slot {
	for i := len(d.slots) - 1; i >= 0; i-- {
		if d.slots[i].index == index {
			return &d.slots[i]
		}
	}
	return nil
}

// begin opens a block.
func (d *decoder) begin(index int, raw []byte) error {
	c := jsonscan.New(raw)
	b, head := d.content(&c), maphash.Bytes(heads, raw)
	for i := range d.slots {
		if d.slots[i].index == index { // an index used again: the first block is complete
			if !d.slots[i].done && d.slots[i].head == head {
				return nil // a duplicate event
			}
			if err := d.end(&d.slots[i]); err != nil {
				return err
			}
		}
	}
	// Blocks are numbered without gaps, so that a gap means a lost block, and maybe a lost call.
	if n := len(d.slots); n > 0 && index > d.slots[n-1].index+1 {
		if err := d.Inconsistent("block %d came after block %d", index, d.slots[n-1].index); err != nil {
			return err
		}
	}
	if d.slots == nil {
		d.slots = make([]slot, 0, 4)
	}
	d.slots = append(d.slots, slot{index: index, part: closed, head: head})
	s := &d.slots[len(d.slots)-1]
	// From the first call by code on, blocks wait for the stop reason: it says whether this program
	// or the server executes the calls.
	d.holding = d.holding || string(b.typ) == "tool_use" && foreign(b.caller)
	switch {
	case d.holding:
		s.kind = kindBlock
	case string(b.typ) == "text":
		s.so = append(s.so, inside(b.citations)...)
		return d.say(s, wire.AsPiece(b.text))
	case string(b.typ) == "thinking":
		s.kind = kindThinking
		s.signed = append(s.signed, wire.AsText(b.signature)...)
		return d.think(s, wire.AsPiece(b.thinking))
	case string(b.typ) == "tool_use":
		s.kind = kindCall
		s.so = wire.AsArgs(b.input)
		call, err := d.toCall(&b)
		if err != nil {
			return err
		}
		s.part, err = d.BeginCall(call)
		return err
	default:
		s.kind = kindBlock
	}
	s.block = &pieces{members: wire.ReadMembers(raw)}
	return nil
}

// toDelta reads a fragment of a block.
func (d *decoder) toDelta(raw []byte, index int) error {
	s := d.slot(index)
	if s == nil || s.done {
		return broken("a piece of block %d came before its beginning, or after its end", index)
	}
	// The provider's own blocks go back with all their members, also with members that this version
	// does not know.
	if s.kind == kindBlock {
		s.block.add(raw)
		return nil
	}
	c := jsonscan.New(raw)
	for k := range c.Members() {
		switch {
		case s.kind == kindText && string(k) == "text", s.kind == kindThinking && string(k) == "thinking",
			s.kind == kindCall && string(k) == "partial_json":
			if err := d.fragment(&c, s); err != nil {
				return err
			}
		case s.kind == kindText && string(k) == "citation":
			if len(s.so) > 0 {
				s.so = append(s.so, ',')
			}
			s.so = append(s.so, c.Raw()...)
		case s.kind == kindThinking && string(k) == "signature":
			s.signed = c.AppendString(s.signed)
		}
	}
	return nil
}

// fragment emits more of a text, or of arguments.
func (d *decoder) fragment(c *jsonscan.Cursor, s *slot) error {
	switch s.kind {
	case kindText:
		return d.say(s, wire.ReadPiece(c))
	case kindThinking:
		return d.think(s, wire.ReadPiece(c))
	}
	args := d.ArgsPiece(c.Raw())
	if len(args) == 0 {
		return nil
	}
	s.filled = true
	return d.MoreArgs(s.part, args)
}

func (d *decoder) say(s *slot, text string) error {
	if text == "" {
		return nil
	}
	if s.part != closed {
		return d.MoreText(s.part, text)
	}
	var err error
	s.part, err = d.BeginText(llm.Text{Text: text})
	return err
}

func (d *decoder) think(s *slot, text string) error {
	if text == "" {
		return nil
	}
	s.so = append(s.so, text...)
	if s.part != closed {
		return d.MoreReasoning(s.part, text)
	}
	var err error
	s.part, err = d.BeginReasoning(llm.Reasoning{Text: text})
	return err
}

// end completes a block.
func (d *decoder) end(s *slot) error {
	if s.done {
		return nil
	}
	s.done = true
	switch s.kind {
	case kindText:
		opaque, err := d.cited(s.so)
		switch {
		case err != nil:
			return err
		case s.part == closed && opaque == nil:
			return nil
		case s.part == closed:
			return d.Part(llm.Text{Opaque: opaque})
		case opaque == nil:
			return d.Seal(s.part)
		}
		return d.Send(llm.Delta{Index: s.part, Part: llm.Text{Opaque: opaque}, Done: true})
	case kindThinking:
		// The block is built again from its pieces. The signature covers the text, so that each
		// byte of it counts.
		raw := jsonscan.AppendString([]byte(`{"type":"thinking","thinking":`), jsonscan.JoinHalves(s.so))
		if len(s.signed) > 0 {
			raw = jsonscan.AppendString(append(raw, `,"signature":`...), s.signed)
		}
		raw = append(raw, '}')
		switch {
		case s.part == closed:
			return d.thought("", raw, len(s.signed) > 0)
		case len(s.signed) == 0 && !d.compatible:
			return d.Seal(s.part)
		}
		return d.Send(llm.Delta{Index: s.part, Part: llm.Reasoning{Opaque: &llm.Opaque{Provider: d.tag, Data: raw}},
			Done: true})
	case kindCall:
		// A call without arguments has no fragment. Some servers put all arguments into the start
		// of the block.
		if !s.filled {
			return d.Send(llm.Delta{Index: s.part, Part: llm.ToolCall{Args: orEmpty(s.so)}, Done: true})
		}
		return d.Seal(s.part)
	}
	raw := s.block.join()
	if d.holding {
		d.held = append(d.held, raw)
		return nil
	}
	return d.blockOf(raw)
}

// orEmpty returns args, or the empty object.
func orEmpty(args []byte) []byte {
	if len(args) == 0 {
		return []byte(`{}`)
	}
	return args
}
