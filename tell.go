package pawl

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
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
func (r *run) tell(resp *llm.Response, d llm.Delta) {
	if r.sink == nil {
		return
	}
	if r.teller == nil {
		r.teller = new(teller)
	}
	step := r.replies + 1
	if d.Notice != nil {
		r.emit(Event{Kind: EventNotice, Step: step, Code: d.Notice.Code, Text: d.Notice.Text, Data: d.Notice.Data})
	}
	switch p := d.Part.(type) {
	case llm.Text:
		if p.Text != "" {
			r.emit(Event{Kind: EventText, Step: step, Index: d.Index, Text: p.Text})
		}
	case llm.Reasoning:
		if p.Text != "" {
			r.emit(Event{Kind: EventReasoning, Step: step, Index: d.Index, Text: p.Text})
		}
	case llm.ToolCall:
		r.emit(Event{Kind: EventCallDelta, Step: step, Index: d.Index, Call: r.teller.calling(resp, d.Index), Text: r.teller.text(p.Args)})
	}
	if d.Done {
		r.callReady(resp, d.Index)
	}
	if d.Finish != "" {
		for i := range resp.Message.Parts {
			r.callReady(resp, i)
		}
		r.teller.ready = r.teller.ready[:0]
	}
}

// teller is what a run has told of calls that are being written.
type teller struct {
	call   *llm.ToolCall // of the last fragment
	part   int           // that it is of
	ready  []int         // parts that were announced as ready calls
	pieces strings.Builder
}

// calling returns the id and the name of the call that is part i, as far as they are known: the same value for all its fragments, unless more
// has become known.
func (t *teller) calling(resp *llm.Response, i int) *llm.ToolCall {
	c := resp.Message.Parts[i].(llm.ToolCall)
	if t.call == nil || t.part != i || t.call.ID != c.ID || t.call.Name != c.Name {
		t.call, t.part = &llm.ToolCall{ID: c.ID, Name: c.Name}, i
	}
	return t.call
}

// text returns piece as a string. Small ones share what they are allocated in.
func (t *teller) text(piece []byte) string {
	const room = 1 << 10
	if len(piece) > room/4 {
		return string(piece)
	}
	if t.pieces.Cap()-t.pieces.Len() < len(piece) {
		t.pieces.Reset()
		t.pieces.Grow(room)
	}
	at := t.pieces.Len()
	t.pieces.Write(piece)
	return t.pieces.String()[at:]
}

func (r *run) callReady(resp *llm.Response, i int) {
	c, ok := resp.Sealed(i).(llm.ToolCall)
	if !ok || slices.Contains(r.teller.ready, i) {
		return
	}
	r.teller.ready = append(r.teller.ready, i)
	call := c
	r.emit(Event{Kind: EventCallReady, Step: r.replies + 1, Index: i, Call: &call})
}

// retract drops text that only echoes a call's arguments.
func (r *run) retract(resp *llm.Response) {
	var kept []llm.Part // nil: all
	for i, p := range resp.Message.Parts {
		if t, ok := p.(llm.Text); ok && echoes(t.Text, resp.Message) {
			r.emit(Event{Kind: EventTextRetracted, Step: r.replies + 1, Index: i, Text: t.Text})
			if kept == nil {
				kept = append(make([]llm.Part, 0, len(resp.Message.Parts)), resp.Message.Parts[:i]...)
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
