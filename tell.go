package pawl

import (
	"slices"
)

// emit tells whoever watches.
func (r *run) emit(e Event) {
	if r.sink == nil {
		return
	}
	if e.Run == "" {
		e.Run = r.key
		if e.Step == 0 {
			e.Step = r.replies
		}
	}
	r.seq++
	e.Seq = r.seq
	r.sink(e)
}

// tellMends tells what was put right in the messages that the run was given.
func (r *run) tellMends() {
	for i := 0; r.sink != nil && i < len(r.mends); i++ {
		n := r.mends[i].Notice()
		r.emit(Event{Kind: EventNotice, Code: n.Code, Text: n.Text, Data: n.Data})
	}
}

// tell turns a fragment of the reply into events.
func (r *run) tell(resp *Response, d Delta) {
	if r.sink == nil {
		return
	}
	step := r.replies + 1
	if d.Notice != nil {
		r.emit(Event{Kind: EventNotice, Step: step, Code: d.Notice.Code, Text: d.Notice.Text, Data: d.Notice.Data})
	}
	switch p := d.Part.(type) {
	case Text:
		if p.Text != "" {
			r.emit(Event{Kind: EventText, Step: step, Index: d.Index, Text: p.Text})
		}
	case Reasoning:
		if p.Text != "" {
			r.emit(Event{Kind: EventReasoning, Step: step, Index: d.Index, Text: p.Text})
		}
	case ToolCall:
		c := resp.Message.Parts[d.Index].(ToolCall)
		r.emit(Event{Kind: EventCallDelta, Step: step, Index: d.Index, Call: &ToolCall{ID: c.ID, Name: c.Name}, Text: string(p.Args)})
	}
	if d.Done {
		r.callReady(resp, d.Index)
	}
	if d.Finish != "" {
		for i := range resp.Message.Parts {
			r.callReady(resp, i)
		}
		r.ready = r.ready[:0]
	}
}

func (r *run) callReady(resp *Response, i int) {
	c, ok := resp.part(i).(ToolCall)
	if !ok || slices.Contains(r.ready, i) {
		return
	}
	r.ready = append(r.ready, i)
	r.emit(Event{Kind: EventCallReady, Step: r.replies + 1, Index: i, Call: &c})
}

// retract drops text that only echoes a call's arguments.
func (r *run) retract(resp *Response) {
	var kept []Part // nil: all
	for i, p := range resp.Message.Parts {
		if t, ok := p.(Text); ok && echoes(t.Text, resp.Message) {
			r.emit(Event{Kind: EventTextRetracted, Step: r.replies + 1, Index: i, Text: t.Text})
			if kept == nil {
				kept = append(make([]Part, 0, len(resp.Message.Parts)), resp.Message.Parts[:i]...)
			}
			continue
		}
		if kept != nil {
			kept = append(kept, p)
		}
	}
	if kept != nil {
		resp.Message.Parts = kept
	}
}
