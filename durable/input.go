package durable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// input is the start of a run, read from the journal. It is therefore the same for the process that
// starts the run and for the processes that resume it.
type input struct {
	from  *pawl.Result // nil means that there was no Result before
	msgs  []llm.Message
	agent *pawl.Agent // the agent with the tools that were checked; nil means the Runner's own
}

// given returns the journal form of the start of r.
func (r *Runner) given(msgs []llm.Message) (body beginBody, err error) {
	body = beginBody{State: stateVersion, Meta: r.Meta}
	if a, ok := r.runner.(*pawl.Agent); ok {
		body.Agent = a.Name
	} else if r.From != nil {
		return body, errors.New("durable: only an Agent can continue a Result (Runner.From)")
	}
	body.Messages, err = json.Marshal(append([]llm.Message{}, msgs...))
	if err != nil {
		return body, err
	}
	body.Answered = r.From == nil && opens(msgs)
	if r.From != nil {
		f := &pawl.Result{Messages: r.From.Messages, Spent: r.From.Spent, Values: r.From.Values,
			Pending: r.From.Pending, Stop: r.From.Stop}
		if f.Stop == pawl.StopLimit { // what Agent.Resume needs under a raised limit
			f.Limit, f.Cause, f.Output = r.From.Limit, r.From.Cause, r.From.Output
		}
		body.From, err = json.Marshal(f)
	}
	return body, err
}

// begunWith reports whether the run started with msgs and r.From. It returns an error if the run
// started from another Result.
func (h *history) begunWith(r *Runner, msgs []llm.Message) (bool, error) {
	now, err := r.given(msgs)
	if err != nil {
		return false, err
	}
	if r.From != nil && !bytes.Equal(now.From, h.begin.From) {
		return false, fmt.Errorf("run %s was begun from another transcript: %w", r.ID, store.ErrConflict)
	}
	return bytes.Equal(now.Messages, h.begin.Messages) && bytes.Equal(now.From, h.begin.From), nil
}

// input decodes the start of a run.
func (b *beginBody) input() (in input, err error) {
	if err = json.Unmarshal(b.Messages, &in.msgs); err == nil && b.From != nil {
		in.from = new(pawl.Result)
		err = json.Unmarshal(b.From, in.from)
	}
	if err != nil {
		err = fmt.Errorf("%w: its beginning: %v", ErrCorrupt, err)
	}
	if in.from == nil && !b.Answered && opens(in.msgs) {
		in.from, in.msgs = &pawl.Result{Messages: in.msgs}, nil
	}
	return in, err
}

// opens reports whether the last reply in msgs has open calls.
func opens(msgs []llm.Message) bool { return len((&pawl.Result{Messages: msgs}).Calls()) > 0 }

// all returns the messages that the run starts with.
func (in input) all() []llm.Message {
	if in.from == nil {
		return in.msgs
	}
	return append(in.from.Messages[:len(in.from.Messages):len(in.from.Messages)], in.msgs...)
}

// stream starts r with the input.
func (in input) stream(ctx context.Context, r pawl.Runner) iter.Seq2[pawl.Event, error] {
	if in.agent != nil {
		r = in.agent
	}
	if in.from == nil {
		return r.Stream(ctx, in.msgs...)
	}
	if a, ok := r.(*pawl.Agent); ok {
		return a.ResumeStream(ctx, in.from, in.msgs...)
	}
	return func(yield func(pawl.Event, error) bool) {
		yield(pawl.Event{}, fmt.Errorf("%w: it was begun from a Result, by an Agent, and this is none", ErrChanged))
	}
}

// run is stream for an Agent, without fragments of replies.
func (in input) run(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
	a = cmp.Or(in.agent, a)
	if in.from == nil {
		return a.Run(ctx, in.msgs...)
	}
	return a.Resume(ctx, in.from, in.msgs...)
}
