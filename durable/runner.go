package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Runner is a run in a journal: see Engine.Runner. It may be used concurrently, and from several processes; one at a time works on the run, the others get
// ErrLost.
type Runner struct {
	ID   string
	Meta json.RawMessage // kept when the run begins, for whoever resumes it: see Engine.Meta. Nil: nothing

	engine *Engine
	runner pawl.Runner
}

var _ pawl.Runner = (*Runner)(nil)

// Stream begins the run with msgs, or goes on with it, and tells what happens. What was kept is told again from the beginning, whole, without fragments; before it
// comes a notice with the code "attempt" and the number of this attempt, so that who watches can drop what he had.
//
// For a run that is there, msgs may be none, or the messages that it was begun with, or Decisions on its open calls and results of passive ones. A run that is over
// is played back, to the result it had. ErrLost: another process works on it; ErrChanged: agent or tools are not what they were; store.ErrNotFound: there is
// none, and no message to begin it with; store.ErrConflict: it was begun with other messages, or decided otherwise.
func (r *Runner) Stream(ctx context.Context, msgs ...pawl.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		s, ctx, input, err := r.open(ctx, msgs)
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}
		defer s.close()
		if s.lease.Fence > 1 || s.only {
			if !yield(s.attempt(), nil) {
				return
			}
		}
		for e, err := range r.runner.Stream(ctx, input...) {
			if err != nil {
				err = s.cause(err)
			} else if e.Kind == pawl.EventRunEnded && e.Run == "run" && e.Result != nil {
				if kept := s.end(e.Result, e.Error); kept != nil {
					yield(pawl.Event{}, kept) // it is not the end if nobody will know of it
					return
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Run is Stream without the telling. Replies are asked for whole where the run is an Agent's. The Result is there with an error too, unless nothing was begun.
func (r *Runner) Run(ctx context.Context, msgs ...pawl.Message) (*pawl.Result, error) {
	a, ok := r.runner.(*pawl.Agent)
	if !ok {
		var res *pawl.Result
		for e, err := range r.Stream(ctx, msgs...) {
			if err != nil {
				return res, err
			}
			if e.Kind == pawl.EventRunEnded && e.Run == "run" {
				res = e.Result
			}
		}
		return res, nil
	}
	s, ctx, input, err := r.open(ctx, msgs)
	if err != nil {
		return nil, err
	}
	defer s.close()
	res, err := a.Run(ctx, input...)
	if res == nil {
		return nil, s.cause(err)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if kept := s.end(res, text); kept != nil {
		return res, kept
	}
	return res, s.cause(err)
}

// cause is err, or why nothing could be kept, which is behind it.
func (s *session) cause(err error) error {
	if why := s.failed(); why != nil && err != nil {
		return why
	}
	return err
}

// attempt tells who watches that what he may have seen of the run is told again.
func (s *session) attempt() pawl.Event {
	n := s.lease.Fence
	if s.only {
		n = int64(len(s.h.spent))
	}
	data, _ := json.Marshal(struct { // numbers
		Attempt int64 `json:"attempt"`
		Kept    int   `json:"kept"`
	}{n, len(s.h.records)})
	return pawl.Event{Kind: pawl.EventNotice, Run: "run", Code: "attempt", Data: data, Text: fmt.Sprintf("attempt %d: what was kept is told again", n)}
}

// open begins the run, or takes it up. input is what it was begun with.
func (r *Runner) open(ctx context.Context, msgs []pawl.Message) (*session, context.Context, []pawl.Message, error) {
	e, j, who := r.engine, r.engine.Journal, scope(ctx)
	if j == nil {
		return nil, nil, nil, errors.New("durable.Engine has no Journal")
	}
	head, err := j.JournalRun(ctx, who, r.ID)
	if errors.Is(err, store.ErrNotFound) && len(msgs) > 0 {
		return r.begin(ctx, who, msgs)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	l := store.Lease{Scope: who, Run: r.ID}
	if head.State != store.JournalOver {
		if l, err = j.ClaimJournal(ctx, who, r.ID, newOwner(), e.clock(), e.clock().Add(e.lease())); err != nil {
			if errors.Is(err, store.ErrConflict) {
				err = fmt.Errorf("%w: %w", ErrLost, err)
			}
			return nil, nil, nil, err
		}
	}
	release := func(err error) (*session, context.Context, []pawl.Message, error) {
		if l.Fence > 0 {
			_, lost := j.RenewJournal(context.WithoutCancel(ctx), l, zeroTime)
			err = errors.Join(err, lost)
		}
		return nil, nil, nil, err
	}
	h, err := e.history(ctx, who, r.ID)
	if err != nil {
		return release(err)
	}
	if err := r.answer(ctx, who, h, msgs); err != nil {
		return release(err)
	}
	if len(msgs) > 0 { // with the answers
		if h, err = e.history(ctx, who, r.ID); err != nil {
			return release(err)
		}
	}
	s, ctx := e.start(ctx, l, h)
	return s, ctx, inputOf(h), nil
}

// inputOf is what the run was begun with.
func inputOf(h *history) (input []pawl.Message) {
	_ = json.Unmarshal(h.begin.Messages, &input) // it was written by encoding/json, and its hash is right
	return input
}

// history reads what was kept of a run.
func (e *Engine) history(ctx context.Context, who store.Scope, id string) (*history, error) {
	records, err := e.Journal.JournalRecords(ctx, who, id, 0)
	if err != nil {
		return nil, err
	}
	return read(id, records)
}

func (r *Runner) begin(ctx context.Context, who store.Scope, msgs []pawl.Message) (*session, context.Context, []pawl.Message, error) {
	e := r.engine
	agent := ""
	if a, ok := r.runner.(*pawl.Agent); ok {
		agent = a.Name
	}
	given, err := json.Marshal(msgs)
	if err != nil {
		return nil, nil, nil, err
	}
	var input []pawl.Message // as it will be read when the run is resumed
	if err := json.Unmarshal(given, &input); err != nil {
		return nil, nil, nil, err
	}
	body, err := json.Marshal(beginBody{State: stateVersion, Agent: agent, Messages: given, Meta: r.Meta})
	if err != nil {
		return nil, nil, nil, err
	}
	now := e.clock()
	first := store.Record{Key: kindBegin, Kind: kindBegin, At: now, Body: body}
	l, err := e.Journal.BeginJournal(ctx, who, store.JournalRun{ID: r.ID, Agent: agent, Task: taskOf(msgs), State: store.JournalOpen}, newOwner(), now.Add(e.lease()), first)
	if err != nil {
		return nil, nil, nil, err
	}
	h, err := e.history(ctx, who, r.ID)
	if err != nil {
		return nil, nil, nil, err
	}
	s, ctx := e.start(ctx, l, h)
	return s, ctx, input, nil
}

// answer keeps what msgs say of the open calls of a run that is there.
func (r *Runner) answer(ctx context.Context, who store.Scope, h *history, msgs []pawl.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	if same, err := json.Marshal(msgs); err == nil && bytes.Equal(same, h.begin.Messages) {
		return nil // it is begun once more
	}
	var ds []pawl.Decision
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case pawl.Decision:
				ds = append(ds, p)
			case pawl.ToolResult:
				d, err := answerOf(h, p)
				if err != nil {
					return err
				}
				ds = append(ds, d)
			default:
				return fmt.Errorf("run %s was begun with other messages; go on with none, with decisions or with results of its open calls: %w", r.ID, store.ErrConflict)
			}
		}
	}
	return r.engine.decide(ctx, who, r.ID, h, ds)
}

// answerOf is the decision that gives an open call its result.
func answerOf(h *history, res pawl.ToolResult) (pawl.Decision, error) {
	open := h.waiting()
	i := slices.IndexFunc(open, func(q question) bool { return q.waiting.Call.ID == res.CallID })
	if i < 0 {
		return pawl.Decision{}, fmt.Errorf("the result answers the call %q, which does not wait: %w", res.CallID, store.ErrConflict)
	}
	return open[i].waiting.Answer("caller", res), nil
}
