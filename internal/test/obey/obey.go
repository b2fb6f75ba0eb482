// Package obey makes a scripted model obey its request, as the models of providers do. A script
// calls its tools in any case, so that a program which offers none, or forbids calls, is not found.
package obey

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Model returns m as a model that calls only tools which are offered and which the tool choice
// permits, and that calls one if the choice demands it. It is for simulators of providers.
func Model(m llm.Model) llm.Model { return &model{m} }

type model struct{ inner llm.Model }

// Unwrap returns the inner model.
func (o *model) Unwrap() llm.Model { return o.inner }

// Stream yields the reply of the inner model as it comes, made to obey the request.
func (o *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return Reply(req, o.inner.Stream(ctx, req))
}

// Reply yields a reply, made to obey its request. A text takes the place of a call that the request
// does not permit. If the request demands a call, and the reply has none, one follows.
func Reply(req *llm.Request, reply iter.Seq2[llm.Delta, error]) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		r := obedient{req: req, refused: map[int]bool{}}
		for d, err := range reply {
			if err != nil {
				yield(d, err)
				return
			}
			for _, d := range r.obey(d) {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// obedient is the state of one reply.
type obedient struct {
	req     *llm.Request
	parts   int          // parts so far
	called  bool         // the reply has a call
	refused map[int]bool // the places of calls that are not permitted
}

// obey returns the fragments that take the place of d.
func (r *obedient) obey(d llm.Delta) []llm.Delta {
	if d.Finish != "" {
		return r.end(d)
	}
	if r.refused[d.Index] && (d.Part != nil || d.Done) {
		return nil
	}
	if d.Part == nil {
		return []llm.Delta{d}
	}

	begins := d.Index >= r.parts
	r.parts = max(r.parts, d.Index+1)
	c, isCall := d.Part.(llm.ToolCall)
	switch {
	case !isCall || !begins:
		return []llm.Delta{d}
	case permits(r.req, c.Name):
		r.called = true
		return []llm.Delta{d}
	}
	r.refused[d.Index] = true
	return []llm.Delta{{Index: d.Index, Part: llm.Text{Text: "I cannot call " + c.Name + "."}, Done: true}}
}

// end returns the last fragments: the call that the request demands, and the finish. A reply that
// was cut or filtered does not change.
func (r *obedient) end(d llm.Delta) []llm.Delta {
	mode := r.req.Choice.Mode
	demanded := (mode == llm.ToolRequired || mode == llm.ToolNamed) && len(r.req.Tools) > 0
	switch {
	case d.Finish != llm.FinishReasonStop && d.Finish != llm.FinishReasonToolCalls:
		return []llm.Delta{d}
	case r.called:
		return []llm.Delta{d}
	case len(r.refused) == 0 && demanded:
		names := append(slices.Clone(r.req.Choice.Names), r.req.Tools[0].Name)
		call := llm.ToolCall{ID: "demanded", Name: names[0], Args: json.RawMessage(`{}`)}
		d.Finish = llm.FinishReasonToolCalls
		return []llm.Delta{{Index: r.parts, Part: call, Done: true}, d}
	}
	d.Finish = llm.FinishReasonStop
	return []llm.Delta{d}
}

// permits reports whether a request permits a call of the tool.
func permits(req *llm.Request, name string) bool {
	offered := slices.ContainsFunc(req.Tools, func(t *llm.ToolSpec) bool { return t.Name == name })
	switch req.Choice.Mode {
	case llm.ToolNone:
		return false
	case llm.ToolNamed:
		return offered && slices.Contains(req.Choice.Names, name)
	}
	return offered
}
