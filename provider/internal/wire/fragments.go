package wire

import (
	"bytes"
	"unsafe"

	"github.com/pawl-go/pawl/llm"
)

// Fragments that came together leave together. Servers send a word or four bytes at a time, and a network brings many of them at once: one delta for all that was there
// costs its consumers a fraction of what each would, and is not a moment later, for what is held back is told before the connection is waited for.
//
// The text of fragments stands in a block of memory, one behind the other, so that joining two of them is to look at both.

// fragment is what is held back of a part: its beginning, more of it, its end, or all of these.
type fragment struct {
	on    bool // something is held back
	index int  // of the part
	kind  fragmentKind
	begin bool         // it begins the part
	call  llm.ToolCall // with begin: the call without its arguments
	with  *llm.Opaque  // of a text or a reasoning
	data  []byte       // its text, or arguments; in a block
}

type fragmentKind byte

const (
	textKind fragmentKind = iota
	reasoningKind
	callKind
)

// BeginText begins a part, and returns its index.
func (o *Emitter) BeginText(t llm.Text) (int, error) {
	return o.begin(fragment{kind: textKind, with: t.Opaque}, bytesOf(t.Text))
}

// BeginReasoning begins a part, and returns its index.
func (o *Emitter) BeginReasoning(r llm.Reasoning) (int, error) {
	return o.begin(fragment{kind: reasoningKind, with: r.Opaque}, bytesOf(r.Text))
}

// BeginCall begins a part, and returns its index.
func (o *Emitter) BeginCall(c llm.ToolCall) (int, error) {
	args := c.Args
	c.Args = nil
	return o.begin(fragment{kind: callKind, call: c}, args)
}

// MoreText goes on with part i.
func (o *Emitter) MoreText(i int, s string) error { return o.more(i, textKind, bytesOf(s)) }

// MoreReasoning goes on with part i.
func (o *Emitter) MoreReasoning(i int, s string) error { return o.more(i, reasoningKind, bytesOf(s)) }

// MoreArgs goes on with part i.
func (o *Emitter) MoreArgs(i int, args []byte) error { return o.more(i, callKind, args) }

// Seal says that part i is complete.
func (o *Emitter) Seal(i int) error {
	if o.late.on && o.late.index == i {
		return o.tell(true)
	}
	return o.Send(llm.Delta{Index: i, Done: true})
}

// Flush yields what is held back.
func (o *Emitter) Flush() error {
	if !o.late.on {
		return nil
	}
	return o.tell(false)
}

// Restart forgets all parts: the reply begins anew.
func (o *Emitter) Restart() {
	o.Next, o.late.on = 0, false
}

func (o *Emitter) begin(f fragment, data []byte) (int, error) {
	if err := o.Flush(); err != nil {
		return 0, err
	}
	f.index, f.begin, f.on, f.data = o.Next, true, true, o.placed(data)
	o.late = f
	o.Next++
	return f.index, nil
}

func (o *Emitter) more(i int, kind fragmentKind, data []byte) error {
	data = o.placed(data)
	switch {
	case len(data) == 0:
		return nil
	case !o.late.on:
	case o.late.index == i && len(o.late.data) == 0:
		o.late.data = data
		return nil
	case o.late.index == i && follows(o.late.data, data):
		o.late.data = o.late.data[:len(o.late.data)+len(data)]
		return nil
	default:
		if err := o.tell(false); err != nil {
			return err
		}
	}
	o.late = fragment{on: true, index: i, kind: kind, data: data}
	return nil
}

// placed returns data with what is free behind it, where it is what was read last.
func (o *Emitter) placed(data []byte) []byte {
	if last := o.block[o.last:]; len(data) > 0 && len(last) == len(data) && &last[0] == &data[0] {
		return last
	}
	return data
}

// follows reports whether b stands right behind a, in the same block.
func follows(a, b []byte) bool {
	return cap(a)-len(a) >= len(b) && &a[:len(a)+1][len(a)] == &b[0]
}

// tell yields what is held back, as a whole part where it begins one and done says that this is its end.
func (o *Emitter) tell(done bool) error {
	f := &o.late
	f.on = false
	data := f.data
	if done && f.begin && cap(data) > firstBlock && len(data) < cap(data)/4 {
		data = bytes.Clone(data) // it is kept for long: without its block
	}
	data = data[:len(data):len(data)]
	d := llm.Delta{Index: f.index, Done: done}
	switch f.kind {
	case textKind:
		d.Part = llm.Text{Text: stringOf(data), Opaque: f.with}
	case reasoningKind:
		d.Part = llm.Reasoning{Text: stringOf(data), Opaque: f.with}
	case callKind:
		c := f.call
		c.Args = data
		d.Part = c
	}
	return o.send(d)
}

// bytesOf returns the bytes of s, which are written once.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
