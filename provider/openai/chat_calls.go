package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// chatCall is an open call.
type chatCall struct {
	index  int64 // on the wire, or noIndex or legacyIndex
	id     string
	name   string
	part   int
	filled bool // some of its arguments arrived
	sealed bool
	held   bool   // it may have to be unwrapped, so nothing is emitted before it is complete
	args   []byte // of a held call
	shape  shape  // of the arguments so far, at servers that may leave out the finish reason
}

const (
	noIndex     = -1 // the server does not number calls
	legacyIndex = -2 // the single call of function_call
)

// chatPiece is one element of tool_calls: a whole call, the start of a call, or more of its
// arguments.
type chatPiece struct {
	index    int64
	id, name string
	args     json.RawMessage // of a stream: valid until the next piece is read
	custom   bool
}

// onlyArgs reports whether p can only continue a call.
func (p *chatPiece) onlyArgs() bool { return p.id == "" && p.name == "" && len(p.args) > 0 }

// piece reads one element of tool_calls.
func (d *chatDecoder) piece(c *jsonscan.Cursor) chatPiece {
	p := chatPiece{index: noIndex}
	var function, custom, name, args []byte
	c.Fields("index", &p.index, "id", &p.id, "function", &function, "custom", &custom)
	p.custom = custom != nil && (len(function) == 0 || function[0] != '{')
	if p.custom {
		function = custom
	}
	inner := jsonscan.New(function)
	inner.Fields("name", &name, "arguments", &args, "input", &args)
	p.name = d.Name(name)
	p.args = d.ArgsPiece(args)
	return p
}

// legacy reads function_call, the predecessor of tool_calls, which has no id. An empty one is not
// a call.
func (d *chatDecoder) legacy(raw []byte) error {
	var args []byte
	p := chatPiece{index: legacyIndex}
	c := jsonscan.New(raw)
	c.Fields("name", &p.name, "arguments", &args)
	p.args = wire.AsArgs(args)
	if p.name == "" && len(p.args) == 0 {
		return nil
	}
	return d.fragment(&p)
}

// find returns the call that a fragment continues; nil means that the fragment begins a call.
// Servers number calls from 0, from 1, all with 0, or not at all. They may repeat ids and names,
// or send them empty.
func (d *chatDecoder) find(index int64, id, name string) *chatCall {
	if d.sealing && index != legacyIndex {
		return nil // a whole reply has whole calls
	}
	// From the newest call backwards: a fragment without an index continues the newest call.
	for i := len(d.calls) - 1; i >= 0; i-- {
		call := &d.calls[i]
		switch {
		case call.index != index:
			continue
		case id != "" && call.id != "" && id != call.id:
			if index == noIndex {
				continue // an earlier call may have this id
			}
			if name == "" && call.name != "" {
				return call // a new id with every fragment: a call begins with its name
			}
			return nil // another call with the same number
		case id == "" && name != "" && call.name != "":
			// Without an id, a name begins a call. Only the number shows that a name is repeated.
			if name != call.name || index == noIndex {
				return nil
			}
		}
		return call
	}
	return nil
}

func (d *chatDecoder) fragment(p *chatPiece) error {
	call := d.find(p.index, p.id, p.name)
	switch {
	case call == nil && p.onlyArgs():
		if err := d.Inconsistent("arguments came for a call that had not begun"); err != nil {
			return err
		}
		fallthrough
	case call == nil:
		return d.newCall(p)
	case d.repeated(call, p):
		return nil
	}
	// Later fragments may repeat the id or the name, or have "" for it. The first statement of each
	// counts.
	var part llm.ToolCall
	if call.id == "" && p.id != "" {
		call.id, part.ID = p.id, p.id
	}
	if call.name == "" && p.name != "" {
		call.name, part.Name = p.name, d.Tools.FromWire(p.name)
	}
	if len(p.args) == 0 && part.ID == "" && part.Name == "" {
		return nil
	}
	// A sealed call may have been started early. Arguments that arrive now would change a call that
	// runs.
	if call.sealed {
		return d.broken("the arguments of call %q went on after the next call had begun", call.id)
	}
	call.filled = call.filled || len(p.args) > 0
	d.measure(call, p.args)
	// Calls in a wrapper get their own parts, so that nothing can be emitted before the wrapper is
	// complete.
	if call.held {
		call.args = append(call.args, p.args...)
		return nil
	}
	if part.ID == "" && part.Name == "" {
		return d.MoreArgs(call.part, p.args)
	}
	part.Args = bytes.Clone(p.args)
	return d.Send(llm.Delta{Index: call.part, Part: part})
}

// repeated reports whether p is a whole call that has arrived before. Two objects are no arguments.
func (d *chatDecoder) repeated(call *chatCall, p *chatPiece) bool {
	if d.Unchecked || p.name == "" {
		return false
	}
	if p.name != call.name || p.id != call.id {
		return false
	}
	if !jsonscan.IsObject(p.args) || !json.Valid(p.args) {
		return false
	}
	if call.held {
		return bytes.Equal(call.args, p.args)
	}
	return d.Agrees(call.part, p.args)
}

// complete checks that no call of the stream is missing: servers that number calls leave none out.
func (d *chatDecoder) complete() error {
	for i := range d.calls {
		call := &d.calls[i]
		if call.index < 1 || call.index == d.calls[0].index {
			continue
		}
		if !slices.ContainsFunc(d.calls, func(o chatCall) bool { return o.index == call.index-1 }) {
			return d.Inconsistent("call %d came, and call %d did not", call.index, call.index-1)
		}
	}
	if !d.end.Stated() && !d.sealing {
		return d.unstated()
	}
	return nil
}

// unstated checks the calls of a stream without a finish reason. Some servers have none
// (Snowflake). There, [DONE] or the usage ends a reply, and its calls are complete if their
// arguments are. At OpenAI's own host an event is missing.
func (d *chatDecoder) unstated() error {
	if d.Has() && !d.compatible {
		return d.Inconsistent("the reply has calls, and no finish reason")
	}
	for i := range d.calls {
		if call := &d.calls[i]; !call.shape.whole() {
			return d.Inconsistent("the reply has no finish reason, and the arguments of call %q are not whole", call.id)
		}
	}
	return nil
}

func (d *chatDecoder) newCall(p *chatPiece) error {
	// A model calls tools after its text. Text that follows a call becomes a new part, so that the
	// order of the parts stays the order of the model.
	if err := d.closeThought(); err != nil {
		return err
	}
	if err := d.closeText(); err != nil {
		return err
	}
	if err := d.sealCalls(); err != nil {
		return err
	}
	part := llm.ToolCall{ID: p.id, Name: d.Tools.FromWire(p.name), Args: p.args}
	if p.custom {
		part.Opaque = &llm.Opaque{Provider: d.tag, Data: json.RawMessage(`{"type":"` + customType + `"}`)}
	}
	hold := wrapped(d.Tools, part.Name)
	// A whole reply is emitted in whole parts. In a stream the call stays open, and the calls
	// before it are complete.
	switch {
	case hold && d.sealing:
		return unwrap(d.Emitter, part)
	case d.sealing:
		return d.Part(part)
	}

	call := chatCall{index: p.index, id: p.id, name: p.name, filled: len(p.args) > 0, held: hold}
	d.measure(&call, p.args)
	var err error
	if hold {
		call.args = bytes.Clone(p.args)
	} else {
		call.part, err = d.BeginCall(part)
	}
	d.calls = append(d.calls, call)
	return err
}

// sealCalls ends the calls so far, because another call begins or the reply ends. Calls without
// arguments stay open, because some servers list all calls first.
func (d *chatDecoder) sealCalls() error {
	for i := range d.calls {
		if call := &d.calls[i]; !call.sealed && call.filled {
			call.sealed = true
			if err := d.sealCall(call); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *chatDecoder) sealCall(call *chatCall) error {
	if call.held {
		return unwrap(d.Emitter, llm.ToolCall{ID: call.id, Name: call.name, Args: jsonscan.JoinHalves(call.args)})
	}
	return d.Seal(call.part)
}

// measure notes the shape of more arguments of a call.
func (d *chatDecoder) measure(call *chatCall, args []byte) {
	if d.compatible {
		call.shape.add(args)
	}
}

// shape is the structure of a JSON text that arrives in pieces: enough to see whether its end is
// missing.
type shape struct {
	depth   int  // open brackets
	quoted  bool // within a string
	escaped bool // behind a backslash in a string
}

func (s *shape) add(piece []byte) {
	for _, b := range piece {
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted && b == '\\':
			s.escaped = true
		case b == '"':
			s.quoted = !s.quoted
		case s.quoted:
		case b == '{', b == '[':
			s.depth++
		case b == '}', b == ']':
			s.depth--
		}
	}
}

// whole reports whether the text ends where a value ends. A text without a value is whole too: the
// call has no arguments.
func (s *shape) whole() bool { return s.depth == 0 && !s.quoted }
