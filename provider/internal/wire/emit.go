package wire

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Emitter numbers the parts of a reply in the order in which they appear, and emits their
// fragments.
type Emitter struct {
	Provider string // used in errors
	Tag      string // the provider of the Opaque values
	Tools    *Toolset
	Yield    func(llm.Delta, error) bool
	Next     int  // index of the next new part
	Began    bool // true once a fragment was emitted: the request cannot be repeated

	// The last delta carries these fields.
	Model, ID string
	Usage     *llm.Usage
	Refused   bool // part of the text is a refusal
	Late      bool // content came after the finish reason, and was skipped

	// Lenient means that the words that end replies are not known in advance: a reply that ends
	// with an unknown one counts as complete.
	Lenient bool

	// Summary means that a summary was asked for in place of a reply. It has no calls, also
	// if its finish reason announces some.
	Summary bool

	Whole     bool // the reply arrives in one body, and its parts are stored without joining
	Unchecked bool // for tests: differing statements are no error

	piece  []byte              // of ArgsPiece
	late   fragment            // the pending fragment of a stream
	halves map[int]half        // by part: the half of a character at the end of its last fragment
	sums   []sum               // by part
	calls  map[string]wireCall // by id
	called bool                // the reply has a call
	held   map[int]*held
}

// Send emits one delta, after the pending fragment. If the schema of a tool was changed for the
// provider, Send buffers the arguments of its calls until they can be restored.
func (o *Emitter) Send(d llm.Delta) error {
	if d.Part != nil {
		d.Part = o.joinPart(d.Index, d.Part)
		if err := o.note(d.Index, d.Part); err != nil {
			return err
		}
	}
	if d.Done {
		if err := o.endHalf(d.Index); err != nil {
			return err
		}
	}
	// A fragment that waits was sent before this delta, so that it is emitted first.
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

// Part emits a whole part. A call that repeats an earlier one is dropped.
func (o *Emitter) Part(p llm.Part) error {
	if c, ok := p.(llm.ToolCall); ok && o.repeats(c) {
		return nil
	}
	i := o.Next
	o.Next++
	return o.Send(llm.Delta{Index: i, Part: wholePart(p), Done: true})
}

// Finish emits the last delta.
func (o *Emitter) Finish(f llm.FinishReason) error {
	// APIs that send a refusal as text end it like any text.
	if o.Refused && f == llm.FinishReasonStop {
		f = llm.FinishReasonContentFilter
	}
	// A part that was not ended may still wait for the second half of a character.
	for i := 0; i < o.Next && len(o.halves) > 0; i++ {
		if err := o.endHalf(i); err != nil {
			return err
		}
	}
	if err := o.Flush(); err != nil {
		return err
	}
	if err := o.announced(f); err != nil {
		return err
	}
	if o.held != nil {
		if err := o.emitHeld(); err != nil {
			return err
		}
	}
	return o.yield(llm.Delta{Usage: o.Usage, Finish: f, Model: o.Model, ID: o.ID})
}

// Keep returns an Opaque with one JSON value of this server. It returns an error if raw is not
// valid JSON.
func (o *Emitter) Keep(raw []byte) (*llm.Opaque, error) {
	if !json.Valid(raw) {
		return nil, Broken(o.Provider, "an item of the reply is not valid JSON")
	}
	return &llm.Opaque{Provider: o.Tag, Data: append(json.RawMessage(nil), raw...)}, nil
}

// Name returns the wire name of a tool from the JSON of a string.
func (o *Emitter) Name(raw []byte) string {
	c := jsonscan.New(raw)
	return c.Known(o.Tools.words)
}

// Args reads the arguments of a call, or a piece of them. They are the content of a string; some
// servers send the JSON value itself.
func Args(c *jsonscan.Cursor) json.RawMessage {
	switch c.Kind() {
	case jsonscan.Object, jsonscan.Array:
		return bytes.Clone(c.Raw())
	}
	return c.AppendPiece(nil)
}

// ArgsPiece is AsArgs for one of many pieces, which share a buffer: unless the reply arrives whole,
// the result is valid until the next call.
func (o *Emitter) ArgsPiece(raw []byte) []byte {
	if o.Whole {
		return AsArgs(raw)
	}
	c := jsonscan.New(raw)
	switch c.Kind() {
	case jsonscan.Object, jsonscan.Array:
		o.piece = append(o.piece[:0], c.Raw()...)
	default:
		o.piece = c.AppendPiece(o.piece[:0])
	}
	return o.piece
}

// AsArgs reads arguments, as Args does, from a value that Cursor.Raw returned.
func AsArgs(raw []byte) json.RawMessage {
	c := jsonscan.New(raw)
	return Args(&c)
}

// AsText returns the text of a raw JSON string.
func AsText(raw []byte) string {
	c := jsonscan.New(raw)
	return c.String()
}

// AsPiece returns the text of a raw JSON string that other strings continue.
func AsPiece(raw []byte) string {
	c := jsonscan.New(raw)
	return ReadPiece(&c)
}

// ReadPiece reads the text of a string that other strings continue.
func ReadPiece(c *jsonscan.Cursor) string { return stringOf(c.AppendPiece(nil)) }

// Filled reports whether raw is a JSON string that is not empty.
func Filled(raw []byte) bool { return len(raw) > 2 && raw[0] == '"' }

// Member returns the raw value of a member of an object; nil means none.
func Member(object []byte, name string) []byte {
	c := jsonscan.New(object)
	for k := range c.Members() {
		if string(k) == name {
			return c.Raw()
		}
	}
	return nil
}

// MemberText returns the text of a member of an object; "" means none.
func MemberText(object []byte, name string) string { return AsText(Member(object, name)) }
