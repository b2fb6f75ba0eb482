package llm

// response.go: Response, the only place that joins the fragments of a reply.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
)

// Response is a model's reply. Only Response.Add joins fragments: adapters translate and do not
// collect. The zero value is ready to use. A Response is not safe for concurrent use.
type Response struct {
	Message Message
	Finish  FinishReason
	Usage   Usage
	Model   string // the model name that the provider reports; may be empty
	ID      string // the provider's id of the reply; may be empty
	// Requests is the sum of Delta.Requests: further requests, besides the answered request.
	Requests int

	open []fragments // by part; nil if every part arrived whole
}

// fragments collects the bytes of one part, so that joining is linear in their size.
type fragments struct {
	buf    []byte
	sealed bool
}

// someArgs is the initial capacity for arguments in fragments. Most arguments fit.
const someArgs = 128

// errAfterFinish is the error for a model that yields a fragment after the last one.
var errAfterFinish = errors.New("a fragment came after the reply had ended")

// Add appends the next fragment. An error means that the model broke the contract of Delta: it
// skipped a part, continued a complete part, or yielded a fragment after the end. The reply cannot
// be used then.
//
// The fragment with Finish set completes the reply. Add then seals the open parts and gives an id
// to each call that has none or a repeated one. If the reply has calls, an ordinary stop becomes
// FinishReasonToolCalls.
func (r *Response) Add(d Delta) error {
	if r.Finish != "" {
		return errAfterFinish
	}
	r.Requests += d.Requests
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
	if d.Finish == "" {
		return nil
	}
	for i := range r.open {
		r.seal(i)
	}
	r.open = nil
	r.Message.Role = RoleAssistant
	r.Finish = d.Finish
	calls := r.Message.HasCalls()
	switch {
	case calls && (d.Finish == FinishReasonStop || d.Finish == FinishReasonOther):
		// The calls count, not the finish reason: many servers send "stop" for a reply with calls.
		r.Finish = FinishReasonToolCalls
	case !calls && d.Finish == FinishReasonToolCalls:
		r.Finish = FinishReasonStop
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
			c.ID, c.Name, c.Opaque = cmp.Or(c.ID, p.ID), cmp.Or(c.Name, p.Name), cmp.Or(p.Opaque, c.Opaque)
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

// begin starts the next part. A part that arrives whole is stored without a copy.
func (r *Response) begin(d Delta) error {
	switch d.Part.(type) {
	case Text, Reasoning, ToolCall, Media:
	default:
		return fmt.Errorf("part %d: a reply cannot hold %T", d.Index, d.Part)
	}
	r.Message.Role = RoleAssistant
	if d.Index == 1 && cap(r.Message.Parts) == 1 { // a reply with two parts often has more
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
		r.open = append(r.open, fragments{sealed: true}) // the earlier parts arrived whole
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

// seal replaces part i with its collected bytes.
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
		p.Args = json.RawMessage(f.buf)
		if len(f.buf) == 0 {
			p.Args = nil
		}
		r.Message.Parts[i] = p
	}
	f.buf = nil
	r.identify(i)
}

// identify gives call i an id of its own if it has none or the id of an earlier call in the reply.
func (r *Response) identify(i int) {
	c, ok := r.Message.Parts[i].(ToolCall)
	if !ok {
		return
	}
	used := func(p Part) bool { other, ok := p.(ToolCall); return ok && other.ID == c.ID }
	if c.ID != "" && !slices.ContainsFunc(r.Message.Parts[:i], used) {
		return
	}
	base := c.ID
	if base == "" {
		base = "call"
	}
	for n := i; ; n++ {
		// A later call may be sealed already.
		c.ID = base + "_" + strconv.Itoa(n)
		if !slices.ContainsFunc(r.Message.Parts, used) {
			break
		}
	}
	r.Message.Parts[i] = c
}

// Seal completes the parts that are open, with the fragments that have arrived. It is for a reply
// that broke off.
func (r *Response) Seal() {
	for i := range r.open {
		r.seal(i)
	}
	r.open = nil
}

// Sealed returns part i if it is complete, and nil while it is open.
func (r *Response) Sealed(i int) Part {
	if i >= len(r.Message.Parts) || i < len(r.open) && !r.open[i].sealed {
		return nil
	}
	return r.Message.Parts[i]
}

// Err returns an error if the reply broke off: a stream without its last fragment never counts as a
// reply.
func (r *Response) Err() error {
	if r.Finish == "" {
		return &ProviderError{Code: CodeStream, Message: "the reply ended without a finish reason", Retryable: true}
	}
	return nil
}

// Deltas yields r as a Model would, each part whole. It is for engines and tests with a recorded
// reply.
func (r *Response) Deltas() iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for i, p := range r.Message.Parts {
			if !yield(Delta{Index: i, Part: p, Done: true}, nil) {
				return
			}
		}
		u := r.Usage
		yield(Delta{Usage: &u, Finish: r.Finish, Model: r.Model, ID: r.ID, Requests: r.Requests}, nil)
	}
}
