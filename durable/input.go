package durable

// input.go: what a run starts with.

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
)

// input is the start of a run.
type input struct {
	record.Input
	agent *pawl.Agent // the agent with the tools that were checked; nil means the Runner's own
}

// inputOf decodes the start of the run h.
func inputOf(h *record.History) (input, error) {
	in, err := h.Begin.Input()
	return input{Input: in}, err
}

// stream starts r with the input.
func (in input) stream(ctx context.Context, r pawl.Runner) iter.Seq2[pawl.Event, error] {
	if in.agent != nil {
		r = in.agent
	}
	if in.From == nil {
		return r.Stream(ctx, in.Messages...)
	}
	if a, ok := r.(*pawl.Agent); ok {
		return a.ResumeStream(ctx, in.From, in.Messages...)
	}
	return func(yield func(pawl.Event, error) bool) {
		yield(pawl.Event{}, fmt.Errorf("%w: it was begun from a Result, by an Agent, and this is none", ErrChanged))
	}
}

// run is stream for an Agent, without fragments of replies.
func (in input) run(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
	a = cmp.Or(in.agent, a)
	if in.From == nil {
		return a.Run(ctx, in.Messages...)
	}
	return a.Resume(ctx, in.From, in.Messages...)
}
