package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// closed is the index of a part that is not open.
const closed = -1

// Event reads one event of a stream.
func (d *decoder) Event(data []byte) error {
	if string(data) == "[DONE]" { // from some gateways
		d.over = true
		return nil
	}
	if len(d.last) > 0 && bytes.Equal(d.last, data) && !d.Unchecked {
		return nil // a duplicate event: another call, or another piece, has other figures
	}
	d.some = true
	d.calling = false
	open := d.call
	c := jsonscan.New(data)
	if err := d.chunk(&c); err != nil {
		return err
	}
	if err := c.End(); err != nil {
		return broken("an event cannot be read: %v", err)
	}
	// Only an event with a call is remembered: its duplicate would be a second call. An event of a
	// text may well repeat another.
	d.last = d.last[:0]
	counted := bytes.Contains(data, []byte(`"candidatesTokenCount"`))
	begun := d.call != nil && d.call != open
	if d.calling && (begun || counted) {
		d.last = append(d.last, data...)
	}
	if !d.calling || !counted {
		return nil
	}
	if d.counted[string(data)] { // the tokens only grow
		return d.Inconsistent("an event with a call came again")
	}
	if d.counted == nil {
		d.counted = map[string]bool{}
	}
	d.counted[string(data)] = true
	return nil
}

// Over reports whether a gateway has marked the end: the API marks no event as the last one. Older
// models send a finish reason in each.
func (d *decoder) Over() bool { return d.over }

// Stated reports whether a finish reason arrived.
func (d *decoder) Stated() bool { return d.end.Stated() }

// End completes the reply, or its part before a continuation.
func (d *decoder) End() error {
	if d.usage != nil {
		d.Usage = toUsage(d.usage)
	}
	switch {
	case !d.Stated() && d.blocked != "":
		return d.block()
	case !d.Stated() && !d.seen && d.some:
		return wire.Nothing(provider)
	case !d.Stated() && !d.seen:
		return broken("the reply has no candidates")
	case !d.Stated() && d.token != "":
		d.end.State(continuation, toFinish(continuation))
	case !d.Stated() && !d.Emitter.Whole:
		return broken("the stream ended without a finish reason")
	}

	ending := d.end.Ending
	if ending == wire.Paused && d.token != "" && !d.Has() {
		return &pausedError{d.token}
	}
	// The end mark of a call may be missing. If the reply ended as it should, its arguments are
	// complete.
	if d.call != nil && ending == wire.Answered {
		if err := d.closeCall(); err != nil {
			return err
		}
	}
	if ending == wire.Filtered || ending == wire.Unusable {
		if err := d.refused(ending); err != nil {
			return err
		}
	}
	return d.FinishAs(d.end)
}

// continuation is the finish reason of a reply that another request continues.
const continuation = "CONTINUATION"

// block ends the reply to a prompt that the API refuses.
func (d *decoder) block() error {
	if err := d.NoteEnd("the prompt was not answered: "+d.blocked, "blocked"); err != nil {
		return err
	}
	return d.Finish(llm.FinishReasonContentFilter)
}

// refused emits why the API refuses what the model wrote.
func (d *decoder) refused(ending wire.Ending) error {
	text := cmp.Or(d.message, "the reply ended with "+d.end.Word)
	if err := d.NoteEnd(text, d.end.Word); err != nil {
		return err
	}
	// The model reads the message, and can correct its call.
	if ending == wire.Unusable && d.message != "" && !d.Has() {
		return d.Part(llm.Text{Text: d.message})
	}
	return nil
}

// say emits text.
func (d *decoder) say(text string) error {
	if d.Emitter.Whole {
		return d.Part(llm.Text{Text: text})
	}
	if d.text != closed {
		return d.MoreText(d.text, text)
	}
	if err := d.closeText(); err != nil {
		return err
	}
	var err error
	d.text, err = d.BeginText(llm.Text{Text: text})
	return err
}

// think emits a thought.
func (d *decoder) think(text string) error {
	if d.thinking == nil {
		d.thinking = &llm.Opaque{Provider: d.Tag, Data: json.RawMessage(`{"thought":true}`)}
	}
	if d.Emitter.Whole {
		return d.Part(llm.Reasoning{Text: text, Opaque: d.thinking})
	}
	if d.thought != closed {
		return d.MoreReasoning(d.thought, text)
	}
	if err := d.closeText(); err != nil {
		return err
	}
	var err error
	d.thought, err = d.BeginReasoning(llm.Reasoning{Text: text, Opaque: d.thinking})
	return err
}

// closeText ends the open text or thought.
func (d *decoder) closeText() error {
	for _, open := range [...]*int{&d.text, &d.thought} {
		if i := *open; i != closed {
			*open = closed
			if err := d.Seal(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// openCall is a call whose arguments arrive in pieces.
type openCall struct {
	id   string
	part int
	args argsWriter
}

// beginCall emits a call whose arguments follow.
func (d *decoder) beginCall(c llm.ToolCall, p *part) error {
	open := &openCall{id: p.id}
	if err := open.args.add(p.partial); err != nil {
		return err
	}
	c.Args = open.args.takeArgs()
	var err error
	open.part, err = d.BeginCall(c)
	if err != nil {
		return err
	}
	d.call = open
	if !p.more {
		return d.closeCall()
	}
	return nil
}

// continueCall emits more of the open call. A piece without willContinue is the last; it may be
// empty.
func (d *decoder) continueCall(p *part, o *llm.Opaque) error {
	if p.args != nil {
		return broken("the call %s got its arguments in parts and as a whole", d.call.id)
	}
	if p.id != "" && p.id != d.call.id {
		return broken("the call %q was continued as %q", d.call.id, p.id)
	}
	if err := d.call.args.add(p.partial); err != nil {
		return err
	}
	args := d.call.args.takeArgs()
	// A signature may come with any piece of a call.
	if o != nil {
		if err := d.Send(llm.Delta{Index: d.call.part, Part: llm.ToolCall{Args: args, Opaque: o}}); err != nil {
			return err
		}
	} else if err := d.MoreArgs(d.call.part, args); err != nil {
		return err
	}
	if !p.more {
		return d.closeCall()
	}
	return nil
}

// closeCall ends the open call. If the end mark is missing, the next call or the end of the reply
// ends it, provided that all values are complete.
func (d *decoder) closeCall() error {
	if d.call == nil {
		return nil
	}
	open := d.call
	d.call = nil
	if err := open.args.endArgs(); err != nil {
		return err
	}
	if args := open.args.takeArgs(); len(args) > 0 {
		return d.Send(llm.Delta{Index: open.part, Part: llm.ToolCall{Args: args}, Done: true})
	}
	return d.Seal(open.part)
}
