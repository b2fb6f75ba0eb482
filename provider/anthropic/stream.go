package anthropic

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/wire"
)

// slot is a block of a stream.
type slot struct {
	index     int64
	kind      kind
	part      int    // the open part, or closed
	text      []byte // of thinking, so far, or of the arguments that are held back
	signature []byte // of thinking
	citations []byte // of a text, so far: the inside of an array
	input     []byte // of a call: what it began with
	filled    bool   // some of the arguments came in fragments
	block     *pieces
	head      uint64 // of the event that began it
	done      bool
}

// The kinds of blocks: how each is yielded while it comes.
type kind int

const (
	kindText     kind = iota
	kindThinking      // text, and at its end the block
	kindCall
	kindBlock // yielded when it is complete
)

// closed stands for the index of a part that is not open.
const closed = -1

// Event reads one event. Its name is taken from its data.
func (d *decoder) Event(data []byte) error {
	var typ, delta, block, usage []byte
	index := int64(0)
	indexed := false
	c := jsonscan.New(data)
	if !c.Object() {
		if string(data) == "[DONE]" { // of servers that have learned it elsewhere
			return nil
		}
		return broken("an event is not a JSON object: %s", wire.Excerpt(data))
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "type":
			if typ = c.Text(); string(typ) == "ping" {
				return nil
			}
		case "index":
			index, _ = c.Int()
			indexed = true
		case "delta":
			if indexed && string(typ) == "content_block_delta" {
				if err := d.toDelta(&c, index); err != nil {
					return err
				}
				continue
			}
			delta = c.Raw()
		case "content_block":
			block = c.Raw()
		case "usage":
			usage = c.Raw()
		case "error":
			if c.Kind() != jsonscan.Null {
				return toStreamError(data)
			}
		case "message":
			if string(typ) == "error" {
				return toStreamError(data) // {"type":"error","message":"…"}
			}
			if err := d.start(&c); err != nil {
				return err
			}
		}
	}
	if err := c.End(); err != nil {
		return broken("an event of the reply cannot be read: %v", err)
	}
	switch string(typ) {
	case "error":
		return toStreamError(data)
	case "content_block_start":
		return d.begin(index, block)
	case "content_block_delta":
		if delta != nil {
			inner := jsonscan.New(delta)
			return d.toDelta(&inner, index)
		}
	case "content_block_stop":
		for i := len(d.slots) - 1; i >= 0; i-- {
			if d.slots[i].index == index {
				return d.end(&d.slots[i])
			}
		}
	case "message_delta":
		inner := jsonscan.New(delta)
		inner.Object()
		for k, ok := inner.Key(); ok; k, ok = inner.Key() {
			d.ending(k, &inner)
		}
		if len(usage) > 0 && usage[0] == '{' {
			d.figures.add(usage)
		}
	case "message_stop":
		d.ended = true
	}
	return nil
}

// Over reports that the message has stopped.
func (d *decoder) Over() bool { return d.ended }

// End finishes the reply. A server may leave out message_stop after a stop reason; a stream without either was cut.
func (d *decoder) End() error {
	if !d.ended && d.stop == "" {
		return broken("the stream ended before the message did")
	}
	for i := range d.slots {
		if err := d.end(&d.slots[i]); err != nil {
			return err
		}
	}
	return d.finish()
}

// start reads the message that opens a stream. A second one says that a proxy has asked again, and that what came does not count.
// What was yielded to a consumer who watches cannot be taken back: the reply has failed for him.
func (d *decoder) start(c *jsonscan.Cursor) error {
	if d.started {
		if len(d.slots) > 0 {
			if d.restart == nil {
				return broken("the reply began anew after some of it was seen")
			}
			d.restart()
			d.Restart()
		}
		*d = decoder{Emitter: d.Emitter, dialect: d.dialect, restart: d.restart}
	}
	d.started = true
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		d.message(k, c)
	}
	return nil
}

// headOf tells the beginnings of blocks apart: those of calls have ids.
func headOf(raw []byte) uint64 {
	h := uint64(len(raw))
	for _, c := range raw[:min(len(raw), 512)] {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// begin opens a block.
func (d *decoder) begin(index int64, raw []byte) error {
	b := d.content(raw)
	for i := range d.slots {
		if d.slots[i].index == index { // used again: the first one is complete
			if !d.slots[i].done && d.slots[i].head == headOf(raw) {
				return nil // the event came twice
			}
			if err := d.end(&d.slots[i]); err != nil {
				return err
			}
		}
	}
	d.slots = append(d.slots, slot{index: index, part: closed, head: headOf(raw)})
	s := &d.slots[len(d.slots)-1]
	d.holding = d.holding || string(b.typ) == "tool_use" && foreign(b.caller)
	switch {
	case d.holding:
		s.kind = kindBlock
	case string(b.typ) == "text":
		if len(b.citations) > 2 && b.citations[0] == '[' {
			s.citations = append(s.citations, b.citations[1:len(b.citations)-1]...)
		}
		return d.say(s, wire.AsText(b.text))
	case string(b.typ) == "thinking":
		s.kind = kindThinking
		s.signature = append(s.signature, wire.AsText(b.signature)...)
		return d.think(s, wire.AsText(b.thinking))
	case string(b.typ) == "tool_use":
		s.kind = kindCall
		s.input = d.AsArgs(b.input)
		call, err := d.toCall(&b)
		if err != nil {
			return err
		}
		s.part, err = d.BeginCall(call)
		return err
	default:
		s.kind = kindBlock
	}
	s.block = newPieces(raw)
	return nil
}

// toDelta reads a fragment of a block.
func (d *decoder) toDelta(c *jsonscan.Cursor, index int64) error {
	var s *slot
	for i := len(d.slots) - 1; i >= 0; i-- {
		if d.slots[i].index == index {
			s = &d.slots[i]
			break
		}
	}
	if s == nil || s.done {
		return broken("a piece of block %d came before its beginning, or after its end", index)
	}
	if s.kind == kindBlock {
		s.block.add(c.Raw())
		return nil
	}
	if !c.Object() {
		return nil
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		var err error
		switch {
		case s.kind == kindText && string(k) == "text":
			err = d.say(s, d.String(c))
		case s.kind == kindText && string(k) == "citation":
			if len(s.citations) > 0 {
				s.citations = append(s.citations, ',')
			}
			s.citations = append(s.citations, c.Raw()...)
		case s.kind == kindThinking && string(k) == "thinking":
			err = d.think(s, d.String(c))
		case s.kind == kindThinking && string(k) == "signature":
			s.signature = c.AppendString(s.signature)
		case s.kind == kindCall && string(k) == "partial_json":
			if args := d.Args(c); len(args) > 0 {
				s.filled = true
				err = d.MoreArgs(s.part, args)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) say(s *slot, text string) error {
	if text == "" {
		return nil
	}
	if s.part != closed {
		return d.MoreText(s.part, text)
	}
	var err error
	s.part, err = d.BeginText(pawl.Text{Text: text})
	return err
}

func (d *decoder) think(s *slot, text string) error {
	if text == "" {
		return nil
	}
	s.text = append(s.text, text...)
	if s.part != closed {
		return d.MoreReasoning(s.part, text)
	}
	var err error
	s.part, err = d.BeginReasoning(pawl.Reasoning{Text: text})
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
		opaque, err := d.cited(append(append([]byte{'['}, s.citations...), ']'))
		switch {
		case err != nil:
			return err
		case s.part == closed && opaque == nil:
			return nil
		case s.part == closed:
			return d.Part(pawl.Text{Opaque: opaque})
		case opaque == nil:
			return d.Seal(s.part)
		}
		return d.Send(pawl.Delta{Index: s.part, Part: pawl.Text{Opaque: opaque}, Done: true})
	case kindThinking:
		raw := jsonscan.AppendString([]byte(`{"type":"thinking","thinking":`), s.text)
		if len(s.signature) > 0 {
			raw = jsonscan.AppendString(append(raw, `,"signature":`...), s.signature)
		}
		raw = append(raw, '}')
		switch {
		case s.part == closed:
			return d.thought("", raw, len(s.signature) > 0)
		case len(s.signature) == 0 && !d.compatible:
			return d.Seal(s.part)
		}
		return d.Send(pawl.Delta{Index: s.part, Part: pawl.Reasoning{Opaque: &pawl.Opaque{Provider: d.tag, Data: raw}}, Done: true})
	case kindCall:
		if !s.filled {
			return d.Send(pawl.Delta{Index: s.part, Part: pawl.ToolCall{Args: orEmpty(s.input)}, Done: true})
		}
		return d.Seal(s.part)
	}
	raw := s.block.join()
	if d.holding {
		d.held = append(d.held, raw)
		return nil
	}
	return d.block(raw)
}

// orEmpty is args, or the empty object where there are none.
func orEmpty(args []byte) []byte {
	if len(args) == 0 {
		return []byte(`{}`)
	}
	return args
}
