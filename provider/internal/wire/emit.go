package wire

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Emitter numbers the parts of a reply in the order in which they appear, and yields their fragments.
type Emitter struct {
	Provider string // in errors
	Tag      string // of what is kept in Opaque
	Tools    *Toolset
	Yield    func(llm.Delta, error) bool
	Next     int  // the index of the next new part
	Began    bool // a fragment was yielded, so that the request cannot be repeated

	// What is told with the last delta.
	Model, ID string
	Usage     *llm.Usage
	Refused   bool // some of the text is a refusal

	Whole bool     // the reply comes whole: its parts are kept as they are
	late  fragment // of a stream, held back
	block []byte   // short texts are cut from here: one allocation for many of them
	last  int      // where the one that was read last begins
	held  map[int]*held
}

// Send yields one delta, after what was held back. The arguments of a tool whose schema was changed for the provider are held until they can be turned back.
func (o *Emitter) Send(d llm.Delta) error {
	if err := o.Flush(); err != nil {
		return err
	}
	return o.send(d)
}

func (o *Emitter) send(d llm.Delta) error {
	if len(o.Tools.restore) > 0 && d.Notice == nil {
		return o.restored(d)
	}
	return o.yield(d)
}

func (o *Emitter) yield(d llm.Delta) error {
	o.Began = true
	if !o.Yield(d, nil) {
		return ErrStopped
	}
	return nil
}

// Part yields a whole part.
func (o *Emitter) Part(p llm.Part) error {
	i := o.Next
	o.Next++
	return o.Send(llm.Delta{Index: i, Part: p, Done: true})
}

// Finish yields the last delta.
func (o *Emitter) Finish(f llm.FinishReason) error {
	if o.Refused && f == llm.FinishReasonStop {
		f = llm.FinishReasonContentFilter
	}
	if err := o.Flush(); err != nil {
		return err
	}
	if o.held != nil {
		if err := o.unheld(); err != nil {
			return err
		}
	}
	return o.yield(llm.Delta{Usage: o.Usage, Finish: f, Model: o.Model, ID: o.ID})
}

// Keep returns an Opaque of one JSON value of this server, or an error where it is none.
func (o *Emitter) Keep(raw []byte) (*llm.Opaque, error) {
	if !jsonscan.Valid(raw) {
		return nil, Broken(o.Provider, "an item of the reply is not valid JSON")
	}
	return &llm.Opaque{Provider: o.Tag, Data: append(json.RawMessage(nil), raw...)}, nil
}

// Count reads a number of tokens.
func Count(c *jsonscan.Cursor) int {
	n, _ := c.Int()
	return int(max(n, 0))
}

// The sizes of blocks. One that is kept for a short text must not be large.
const (
	firstBlock = 512
	maxBlock   = 4 << 10
)

// Bytes reads a string into memory that is written once. A nil of what is none.
func (o *Emitter) Bytes(c *jsonscan.Cursor) []byte {
	if c.Kind() != jsonscan.String {
		c.Skip()
		return nil
	}
	free := o.room()
	b := c.AppendString(free)
	if cap(b) == cap(free) {
		o.block = o.block[:o.last+len(b)]
	} // else append has moved it
	return b[:len(b):len(b)]
}

// copied is Bytes of what is no string.
func (o *Emitter) copied(raw []byte) []byte {
	free := o.room()
	if len(raw) > cap(free) {
		return bytes.Clone(raw)
	}
	o.block = o.block[:o.last+len(raw)]
	copy(o.block[o.last:], raw)
	return o.block[o.last:len(o.block):len(o.block)]
}

// room returns what is free in the block, where the next text begins; it is never nothing.
func (o *Emitter) room() []byte {
	if cap(o.block)-len(o.block) < 64 {
		o.block = make([]byte, 0, min(max(firstBlock, 2*cap(o.block)), maxBlock))
	}
	o.last = len(o.block)
	return o.block[o.last:]
}

// String is Bytes as a string.
func (o *Emitter) String(c *jsonscan.Cursor) string { return stringOf(o.Bytes(c)) }

// Word reads a short string that is kept as long as the reply: of a stream, whose blocks are not, for itself.
func (o *Emitter) Word(c *jsonscan.Cursor) string {
	if o.Whole {
		return o.String(c)
	}
	return c.String()
}

// Name reads what a tool is called on the wire.
func (o *Emitter) Name(c *jsonscan.Cursor) string { return c.Known(o.Tools.words) }

// Args reads arguments: the inside of a string, or, from servers that send the value itself, its text.
func (o *Emitter) Args(c *jsonscan.Cursor) json.RawMessage {
	switch c.Kind() {
	case jsonscan.Object, jsonscan.Array:
		return o.copied(c.Raw())
	}
	return o.Bytes(c)
}

// AsArgs is Args of a value that Cursor.Raw returned.
func (o *Emitter) AsArgs(raw []byte) json.RawMessage {
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		return o.copied(raw)
	}
	c := jsonscan.New(raw)
	return o.Args(&c)
}

// Value returns a copy of a raw value that is kept as long as the reply: of a stream, whose blocks are not, for itself.
func (o *Emitter) Value(raw []byte) json.RawMessage {
	if o.Whole {
		return o.copied(raw)
	}
	return bytes.Clone(raw)
}

// AsText returns the text of a raw JSON string.
func AsText(raw []byte) string {
	c := jsonscan.New(raw)
	return c.String()
}

// Filled reports whether a raw JSON string has something in it.
func Filled(raw []byte) bool { return len(raw) > 2 && raw[0] == '"' }
