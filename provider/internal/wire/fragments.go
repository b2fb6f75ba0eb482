package wire

import (
	"bytes"
	"unsafe"

	"github.com/pawl-go/pawl/llm"
)

// The Emitter joins fragments that arrive together. Servers send a word or four bytes at a time,
// and one read from the network often returns many of them. One delta for all of them costs
// consumers a fraction, and arrives no later: the pending fragment is emitted before the next
// read.

// fragment is a pending part of a reply: its beginning, more of its text, its end, or all of
// these.
type fragment struct {
	on    bool // a fragment is pending
	index int  // index of the part
	kind  fragmentKind
	begin bool         // the fragment begins the part
	call  llm.ToolCall // with begin: the call without its arguments
	with  *llm.Opaque  // of a text or reasoning
	data  []byte       // text or arguments
}

// usualSize is room for most fragments that are joined.
const usualSize = 256

type fragmentKind byte

const (
	textKind fragmentKind = iota
	reasoningKind
	callKind
)

// BeginText begins a part and returns its index.
func (o *Emitter) BeginText(t llm.Text) (int, error) {
	return o.begin(fragment{kind: textKind, with: t.Opaque}, bytesOf(t.Text))
}

// BeginReasoning begins a part and returns its index.
func (o *Emitter) BeginReasoning(r llm.Reasoning) (int, error) {
	return o.begin(fragment{kind: reasoningKind, with: r.Opaque}, bytesOf(r.Text))
}

// BeginCall begins a part and returns its index. The caller may use the arguments again.
func (o *Emitter) BeginCall(c llm.ToolCall) (int, error) {
	args := bytes.Clone(c.Args)
	c.Args = nil
	return o.begin(fragment{kind: callKind, call: c}, args)
}

// MoreText continues part i.
func (o *Emitter) MoreText(i int, s string) error { return o.more(i, textKind, bytesOf(s)) }

// MoreReasoning continues part i.
func (o *Emitter) MoreReasoning(i int, s string) error { return o.more(i, reasoningKind, bytesOf(s)) }

// MoreArgs continues part i. The caller may use args again.
func (o *Emitter) MoreArgs(i int, args []byte) error { return o.more(i, callKind, args) }

// Seal ends part i.
func (o *Emitter) Seal(i int) error {
	if err := o.endHalf(i); err != nil {
		return err
	}
	if o.late.on && o.late.index == i {
		return o.emitPending(true)
	}
	return o.Send(llm.Delta{Index: i, Done: true})
}

// Flush emits the pending fragment.
func (o *Emitter) Flush() error {
	if !o.late.on {
		return nil
	}
	return o.emitPending(false)
}

// Restart drops all parts: the reply begins again.
func (o *Emitter) Restart() {
	o.Next = 0
	o.late.on = false
	o.sums = nil
	o.calls = nil
	o.called = false
	o.halves = nil
}

func (o *Emitter) begin(f fragment, data []byte) (int, error) {
	if err := o.Flush(); err != nil {
		return 0, err
	}
	data = o.join(o.Next, f.kind, data)
	o.sum(o.Next).add(data)
	f.index, f.begin, f.on, f.data = o.Next, true, true, data
	o.late = f
	o.Next++
	if f.kind == callKind {
		return f.index, o.noteCall(f.index, f.call)
	}
	return f.index, nil
}

func (o *Emitter) more(i int, kind fragmentKind, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	data = o.join(i, kind, data)
	if len(data) == 0 {
		return nil
	}
	if i < len(o.sums) {
		o.sums[i].add(data)
	}
	// Fragments of one part that arrive together become one delta. Flush emits them before the
	// connection is awaited.
	if o.late.on && o.late.index == i {
		if len(o.late.data) == 0 {
			o.late.data = make([]byte, 0, max(len(data), usualSize))
		}
		o.late.data = append(o.late.data, data...)
		return nil
	}
	if err := o.Flush(); err != nil {
		return err
	}
	room := make([]byte, 0, max(len(data), usualSize))
	o.late = fragment{on: true, index: i, kind: kind, data: append(room, data...)}
	return nil
}

// emitPending emits the pending fragment. It is a whole part if it begins the part and done is set.
func (o *Emitter) emitPending(done bool) error {
	f := &o.late
	f.on = false
	d := llm.Delta{Index: f.index, Done: done}
	switch f.kind {
	case textKind:
		d.Part = llm.Text{Text: stringOf(f.data), Opaque: f.with}
	case reasoningKind:
		d.Part = llm.Reasoning{Text: stringOf(f.data), Opaque: f.with}
	case callKind:
		c := f.call
		c.Args = f.data
		d.Part = c
	}
	return o.send(d)
}

// bytesOf returns the bytes of s, which must not be written.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
