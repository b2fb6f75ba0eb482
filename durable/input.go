package durable

// input.go: what a run starts with.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
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

// beginning returns the journal form of the start of r.
func (r *Runner) beginning(msgs []llm.Message) (body record.Begin, err error) {
	body = record.Begin{State: record.FormVersion, Meta: r.Meta}
	if a, ok := r.runner.(*pawl.Agent); ok {
		body.Agent = a.Name
	} else if r.From != nil {
		return body, errors.New("durable: only an Agent can continue a Result (Runner.From)")
	}
	body.Messages, err = json.Marshal(append([]llm.Message{}, msgs...))
	if err != nil {
		return body, err
	}
	if r.From == nil {
		body.Answered = record.HasOpenCalls(msgs)
		return body, nil
	}

	from := &pawl.Result{
		Messages: r.From.Messages,
		Spent:    r.From.Spent,
		Values:   r.From.Values,
		Pending:  r.From.Pending,
		Stop:     r.From.Stop,
	}
	if from.Stop == pawl.StopLimit { // what Agent.Resume needs under a raised limit
		from.Limit = r.From.Limit
		from.Cause = r.From.Cause
		from.Output = r.From.Output
		from.Answer = r.From.Answer
	}
	body.From, err = json.Marshal(from)
	return body, err
}

// begunWith reports whether the run started with msgs and r.From. It returns an error if the run
// started from another Result.
func (r *Runner) begunWith(h *record.History, msgs []llm.Message) (bool, error) {
	now, err := r.beginning(msgs)
	if err != nil {
		return false, err
	}
	if r.From != nil && !bytes.Equal(now.From, h.Begin.From) {
		return false, fmt.Errorf("run %s was begun from another transcript: %w", r.ID, store.ErrConflict)
	}
	return bytes.Equal(now.Messages, h.Begin.Messages) && bytes.Equal(now.From, h.Begin.From), nil
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
