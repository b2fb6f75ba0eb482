package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// Response is a model's reply. Add joins its fragments and is the only joiner: adapters translate, they do not collect.
// The zero value is ready. A Response is not safe for concurrent use.
type Response struct {
	Message Message
	Finish  FinishReason
	Usage   Usage
	Model   string // the name the provider answered under; may be empty
	ID      string // the provider's id of the reply; may be empty

	open []fragments // by part; nil when every part came whole
}

// fragments collects the bytes of one part, so that joining is linear in their size.
type fragments struct {
	buf    []byte
	sealed bool
}

// someArgs is room for arguments that come in fragments: most fit.
const someArgs = 128

// errAfterFinish is what a model gets that goes on after its last fragment.
var errAfterFinish = errors.New("a fragment came after the reply had ended")

// Add takes the next fragment. An error means that the model broke the contract of Delta (a part skipped, a sealed
// part continued, a fragment after the end) and the reply cannot be used.
//
// With the fragment that has Finish set, the reply is complete: open parts are sealed, calls without an id or with
// a repeated one get an id of their own, and a stop-like finish beside calls becomes FinishToolCalls.
func (r *Response) Add(d Delta) error {
	if r.Finish != "" {
		return errAfterFinish
	}
	if d.Usage != nil {
		r.Usage = d.Usage.plausible()
	}
	if d.Model != "" {
		r.Model = d.Model
	}
	if d.ID != "" {
		r.ID = d.ID
	}
	if d.Part != nil {
		if err := r.addPart(d); err != nil {
			return err
		}
	} else if d.Done {
		if d.Index < 0 || d.Index >= len(r.Message.Parts) {
			return fmt.Errorf("part %d was sealed before it began", d.Index)
		}
		r.seal(d.Index)
	}
	if d.Finish != "" {
		r.finish(d.Finish)
	}
	return nil
}

func (r *Response) addPart(d Delta) error {
	n := len(r.Message.Parts)
	switch {
	case d.Index < 0 || d.Index > n:
		return fmt.Errorf("part %d came when part %d was next", d.Index, n)
	case d.Index == n:
		return r.begin(d)
	case d.Index >= len(r.open) || r.open[d.Index].sealed:
		return fmt.Errorf("part %d was continued after it was sealed", d.Index)
	}
	f := &r.open[d.Index]
	switch p := d.Part.(type) {
	case Text:
		t, ok := r.Message.Parts[d.Index].(Text)
		if !ok {
			return fmt.Errorf("part %d changed from %T to text", d.Index, r.Message.Parts[d.Index])
		}
		f.buf = append(f.buf, p.Text...)
		if p.Opaque != nil {
			t.Opaque = p.Opaque
			r.Message.Parts[d.Index] = t
		}
	case Reasoning:
		t, ok := r.Message.Parts[d.Index].(Reasoning)
		if !ok {
			return fmt.Errorf("part %d changed from %T to reasoning", d.Index, r.Message.Parts[d.Index])
		}
		f.buf = append(f.buf, p.Text...)
		if p.Opaque != nil {
			t.Opaque = p.Opaque
			r.Message.Parts[d.Index] = t
		}
	case ToolCall:
		c, ok := r.Message.Parts[d.Index].(ToolCall)
		if !ok {
			return fmt.Errorf("part %d changed from %T to a call", d.Index, r.Message.Parts[d.Index])
		}
		f.buf = append(f.buf, p.Args...)
		if p.ID != "" && c.ID == "" || p.Name != "" && c.Name == "" || p.Opaque != nil {
			if c.ID == "" {
				c.ID = p.ID
			}
			if c.Name == "" {
				c.Name = p.Name
			}
			if p.Opaque != nil {
				c.Opaque = p.Opaque
			}
			r.Message.Parts[d.Index] = c
		}
	default:
		return fmt.Errorf("part %d: %T cannot come in fragments", d.Index, d.Part)
	}
	if d.Done {
		r.seal(d.Index)
	}
	return nil
}

// begin starts the next part. A part that comes whole is taken as it is, without a copy.
func (r *Response) begin(d Delta) error {
	switch d.Part.(type) {
	case Text, Reasoning, ToolCall, Media:
	default:
		return fmt.Errorf("part %d: a reply cannot hold %T", d.Index, d.Part)
	}
	r.Message.Role = RoleAssistant
	if d.Index == 1 && cap(r.Message.Parts) == 1 { // where there are two there are often more
		r.Message.Parts = append(make([]Part, 0, 8), r.Message.Parts...)
	}
	r.Message.Parts = append(r.Message.Parts, d.Part)
	_, media := d.Part.(Media)
	if d.Done || media {
		if r.open != nil {
			r.open = append(r.open, fragments{sealed: true})
		}
		r.identify(d.Index)
		return nil
	}
	for len(r.open) < d.Index {
		r.open = append(r.open, fragments{sealed: true}) // those before came whole
	}
	var f fragments
	switch p := d.Part.(type) {
	case Text:
		f.buf = append(f.buf, p.Text...)
	case Reasoning:
		f.buf = append(f.buf, p.Text...)
	case ToolCall:
		f.buf = append(make([]byte, 0, max(len(p.Args), someArgs)), p.Args...)
	}
	r.open = append(r.open, f)
	return nil
}

// seal puts the collected bytes of part i in its place.
func (r *Response) seal(i int) {
	if i >= len(r.open) || r.open[i].sealed {
		return
	}
	f := &r.open[i]
	f.sealed = true
	switch p := r.Message.Parts[i].(type) {
	case Text:
		p.Text = string(f.buf)
		r.Message.Parts[i] = p
	case Reasoning:
		p.Text = string(f.buf)
		r.Message.Parts[i] = p
	case ToolCall:
		if p.Args = json.RawMessage(f.buf); len(f.buf) == 0 {
			p.Args = nil
		}
		r.Message.Parts[i] = p
	}
	f.buf = nil
	r.identify(i)
}

// identify gives a call without an id, or with that of an earlier call of the reply, one of its own.
func (r *Response) identify(i int) {
	c, ok := r.Message.Parts[i].(ToolCall)
	if !ok || c.ID != "" && !used(r.Message.Parts[:i], c.ID) {
		return
	}
	base := c.ID
	if base == "" {
		base = "call"
	}
	for n := i; ; n++ {
		if c.ID = base + "_" + strconv.Itoa(n); !used(r.Message.Parts, c.ID) { // a later call may be sealed already
			break
		}
	}
	r.Message.Parts[i] = c
}

func used(parts []Part, id string) bool {
	for _, p := range parts {
		if c, ok := p.(ToolCall); ok && c.ID == id {
			return true
		}
	}
	return false
}

func (r *Response) finish(f FinishReason) {
	for i := range r.open {
		r.seal(i)
	}
	r.open = nil
	r.Message.Role = RoleAssistant
	if (f == FinishStop || f == FinishOther) && r.Message.HasCalls() {
		f = FinishToolCalls // calls decide, not the finish reason: many servers say stop beside calls
	} else if f == FinishToolCalls && !r.Message.HasCalls() {
		f = FinishStop
	}
	r.Finish = f
}

// part returns the sealed part i, or nil while it is open.
func (r *Response) Sealed(i int) Part {
	if i >= len(r.Message.Parts) || i < len(r.open) && !r.open[i].sealed {
		return nil
	}
	return r.Message.Parts[i]
}

// ended reports a reply that broke off: a stream without its last fragment is never taken for a reply.
func (r *Response) Err() error {
	if r.Finish == "" {
		return &ProviderError{Code: CodeStream, Message: "the reply ended without a finish reason", Retryable: true}
	}
	return nil
}

// Deltas plays r as a Model would yield it, each part whole. It serves engines and tests that have a recorded reply.
func (r *Response) Deltas() iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for i, p := range r.Message.Parts {
			if !yield(Delta{Index: i, Part: p, Done: true}, nil) {
				return
			}
		}
		u := r.Usage
		yield(Delta{Usage: &u, Finish: r.Finish, Model: r.Model, ID: r.ID}, nil)
	}
}
