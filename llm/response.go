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
	Message Message      // what has arrived; open parts lack their latest fragments
	Finish  FinishReason // "" means that the reply is not complete
	Usage   Usage        // the last that the model reported
	Model   string       // the model name that the provider reports; may be empty
	ID      string       // the provider's id of the reply; may be empty
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
const someArgs = 256

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

	switch {
	case d.Part != nil:
		if err := r.addPart(d); err != nil {
			return err
		}
	case d.Done:
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

// finish completes the reply. The calls count, not the reason of the provider: many servers send
// "stop" for a reply with calls.
func (r *Response) finish(reason FinishReason) {
	r.Seal()
	r.Message.Role = RoleAssistant
	r.Finish = reason

	calls := r.Message.HasCalls()
	switch {
	case calls && (reason == FinishReasonStop || reason == FinishReasonOther):
		r.Finish = FinishReasonToolCalls
	case !calls && reason == FinishReasonToolCalls:
		r.Finish = FinishReasonStop
	}
}

func (r *Response) addPart(d Delta) error {
	next := len(r.Message.Parts)
	switch {
	case d.Index < 0 || d.Index > next:
		return fmt.Errorf("part %d came when part %d was next", d.Index, next)
	case d.Index == next:
		return r.begin(d)
	case d.Index >= len(r.open) || r.open[d.Index].sealed:
		return fmt.Errorf("part %d was continued after it was sealed", d.Index)
	}

	if err := r.extend(d.Index, d.Part); err != nil {
		return err
	}
	if d.Done {
		r.seal(d.Index)
	}
	return nil
}

// extend appends a fragment to part i, which is open. Its bytes go to r.open, and the part itself
// changes only if the fragment has more than bytes, because that allocates.
func (r *Response) extend(i int, fragment Part) error {
	f := &r.open[i]
	switch p := fragment.(type) {
	case Text:
		t, ok := r.Message.Parts[i].(Text)
		if !ok {
			return fmt.Errorf("part %d changed from %T to text", i, r.Message.Parts[i])
		}
		f.buf = append(f.buf, p.Text...)
		if p.Opaque != nil {
			t.Opaque = p.Opaque
			r.Message.Parts[i] = t
		}

	case Reasoning:
		t, ok := r.Message.Parts[i].(Reasoning)
		if !ok {
			return fmt.Errorf("part %d changed from %T to reasoning", i, r.Message.Parts[i])
		}
		f.buf = append(f.buf, p.Text...)
		if p.Opaque != nil {
			t.Opaque = p.Opaque
			r.Message.Parts[i] = t
		}

	case ToolCall:
		old, ok := r.Message.Parts[i].(ToolCall)
		if !ok {
			return fmt.Errorf("part %d changed from %T to a call", i, r.Message.Parts[i])
		}
		f.buf = append(f.buf, p.Args...)

		// The first id and name, and the latest Opaque.
		c := old
		c.ID = cmp.Or(old.ID, p.ID)
		c.Name = cmp.Or(old.Name, p.Name)
		c.Opaque = cmp.Or(p.Opaque, old.Opaque)
		if c.ID != old.ID || c.Name != old.Name || c.Opaque != old.Opaque {
			r.Message.Parts[i] = c
		}

	default:
		return fmt.Errorf("part %d: %T cannot come in fragments", i, fragment)
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

	// Media cannot come in fragments; see extend.
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

	base := cmp.Or(c.ID, "call")
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

// Err returns an error if the reply broke off, or ended for a reason that is not on the list of
// finish reasons: neither counts as a reply.
func (r *Response) Err() error {
	switch {
	case r.Finish == "":
		return &ProviderError{Code: CodeStream, Message: "the reply ended without a finish reason", Retryable: true}
	case !r.Finish.known():
		text := fmt.Sprintf("the model yielded the unknown finish reason %q", r.Finish)
		return &ProviderError{Code: CodeStream, Message: text}
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
