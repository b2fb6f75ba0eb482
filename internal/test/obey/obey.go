// Package obey makes a scripted model obey its request, as the models of providers do. A script
// calls its tools in any case, so that a program which offers none, or forbids calls, is not found.
package obey

import (
	"context"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Model returns m as a model that calls only tools which are offered and which the tool choice
// permits, and that calls one if the choice demands it. It is for simulators of providers.
func Model(m llm.Model) llm.Model { return &model{m} }

type model struct{ inner llm.Model }

// Unwrap returns the inner model.
func (o *model) Unwrap() llm.Model { return o.inner }

// Stream yields the reply of the inner model, or the reply that obeys the request.
func (o *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply := new(llm.Response)
		var deltas []llm.Delta
		var failed error
		for d, err := range o.inner.Stream(ctx, req) {
			if err != nil {
				failed = err
				break
			}
			deltas = append(deltas, d)
			failed = reply.Add(d)
			if failed != nil {
				break
			}
		}

		other, obeys := replacement(req, reply.Message.Calls())
		if failed == nil && !obeys {
			for d, err := range script.New(other).Stream(ctx, &llm.Request{Tools: req.Tools}) {
				if !yield(d, err) {
					return
				}
			}
			return
		}
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if failed != nil {
			yield(llm.Delta{}, failed)
		}
	}
}

// replacement returns the turn that takes the place of a reply with these calls. obeys reports that
// the reply obeys the request, and needs none.
func replacement(req *llm.Request, calls []llm.ToolCall) (t script.Turn, obeys bool) {
	for _, c := range calls {
		if !permits(req, c.Name) {
			return script.Say("I cannot call " + c.Name + "."), false
		}
	}
	demanded := req.Choice.Mode == llm.ToolRequired || req.Choice.Mode == llm.ToolNamed
	if demanded && len(calls) == 0 && len(req.Tools) > 0 {
		names := append(slices.Clone(req.Choice.Names), req.Tools[0].Name)
		return script.Call(names[0], `{}`), false
	}
	return script.Turn{}, true
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
