package wire

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
)

// held are the arguments of a call whose tool was sent with a changed schema. They can be restored
// only when they are complete.
type held struct {
	restore func(json.RawMessage) json.RawMessage
	args    []byte
}

// restored emits d with arguments in the form of the tool's own schema.
func (o *Emitter) restored(d llm.Delta) error {
	call, ok := d.Part.(llm.ToolCall)
	h := o.held[d.Index]
	if h == nil && ok {
		if restore := o.Tools.restore[call.Name]; restore != nil {
			h = &held{restore: restore}
			if o.held == nil {
				o.held = map[int]*held{}
			}
			o.held[d.Index] = h
		}
	}
	// Only arguments of a tool with a changed schema are held. All other deltas pass.
	if h == nil || d.Part == nil && !d.Done {
		return o.yield(d)
	}
	h.args = append(h.args, call.Args...)
	call.Args = nil
	if d.Done {
		delete(o.held, d.Index)
		call.Args = h.restore(h.args)
		// A call without arguments ends without a part.
		if len(call.Args) == 0 && !ok {
			return o.yield(d)
		}
		d.Part = call
		return o.yield(d)
	}
	d.Part = call
	if call.ID == "" && call.Name == "" && call.Opaque == nil {
		return nil // an empty delta
	}
	return o.yield(d)
}

// emitHeld emits the buffered arguments of calls that never ended, unchanged: these calls are not
// executed.
func (o *Emitter) emitHeld() error {
	for i := range o.Next {
		if h := o.held[i]; h != nil && len(h.args) > 0 {
			if err := o.yield(llm.Delta{Index: i, Part: llm.ToolCall{Args: h.args}}); err != nil {
				return err
			}
		}
	}
	o.held = nil
	return nil
}
