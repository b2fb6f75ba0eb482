package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Runner is a run in a journal: see Engine.Runner. It may be used concurrently, and from several processes; one at a time works on the run, the others get
// ErrLost.
type Runner struct {
	ID   string
	Meta json.RawMessage // kept when the run begins, for whoever resumes it: see Engine.Meta. Nil: nothing

	// From is a Result that the run goes on from when it is begun, as Agent.Resume does: messages, values, what was spent and what waits. It is kept, so who resumes the run need not have it.
	// What is run must be an Agent. Nil: the run begins with its messages alone.
	From *pawl.Result

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
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		s, ctx, in, err := r.open(ctx, msgs)
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
		for e, err := range in.stream(ctx, r.runner) {
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
func (r *Runner) Run(ctx context.Context, msgs ...llm.Message) (*pawl.Result, error) {
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
	s, ctx, in, err := r.open(ctx, msgs)
	if err != nil {
		return nil, err
	}
	defer s.close()
	res, err := in.run(ctx, a)
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

// Attempt is the data of the notice "attempt": that the run is told again from its beginning.
type Attempt struct {
	Attempt    int64   `json:"attempt"`              // from 1
	Kept       int     `json:"kept"`                 // records
	Trace      string  `json:"trace,omitzero"`       // where the attempt before stands in a trace, as the W3C writes it; "": it is not known
	ForkedFrom *Origin `json:"forked_from,omitzero"` // nil: the run is no fork
}

// attempt tells who watches that what he may have seen of the run is told again.
func (s *session) attempt() pawl.Event {
	n := s.lease.Fence
	if s.only {
		n = int64(len(s.h.spent))
	}
	data, _ := json.Marshal(Attempt{n, len(s.h.records), s.h.trace, s.h.begin.ForkedFrom}) // numbers and names
	return pawl.Event{Kind: pawl.EventNotice, Run: "run", Code: "attempt", Data: data, Text: fmt.Sprintf("attempt %d: what was kept is told again", n)}
}

// open begins the run, or takes it up, and says what it was begun with.
func (r *Runner) open(ctx context.Context, msgs []llm.Message) (*session, context.Context, input, error) {
	e, j, who := r.engine, r.engine.Journal, scope(ctx)
	if j == nil {
		return nil, nil, input{}, errors.New("durable.Engine has no Journal")
	}
	head, err := j.JournalRun(ctx, who, r.ID)
	if errors.Is(err, store.ErrNotFound) && (len(msgs) > 0 || r.From != nil) {
		return r.begin(ctx, who, msgs)
	}
	if err != nil {
		return nil, nil, input{}, err
	}
	l := store.Lease{Scope: who, Run: r.ID}
	if head.State != store.JournalOver {
		if l, err = j.ClaimJournal(ctx, who, r.ID, newOwner(), e.clock(), e.clock().Add(e.lease())); err != nil {
			if errors.Is(err, store.ErrConflict) {
				err = fmt.Errorf("%w: %w", ErrLost, err)
			}
			return nil, nil, input{}, err
		}
	}
	h, in, err := r.takeUp(ctx, who, msgs)
	if err != nil {
		if l.Fence > 0 {
			_, lost := j.RenewJournal(context.WithoutCancel(ctx), l, zeroTime)
			err = errors.Join(err, lost)
		}
		return nil, nil, input{}, err
	}
	s, ctx := e.start(ctx, l, h)
	return s, ctx, in, nil
}

// takeUp reads a run that is there, and keeps what msgs say of its open calls.
func (r *Runner) takeUp(ctx context.Context, who store.Scope, msgs []llm.Message) (*history, input, error) {
	h, err := r.engine.history(ctx, who, r.ID)
	if err != nil {
		return nil, input{}, err
	}
	if err := r.answer(ctx, who, h, msgs); err != nil {
		return nil, input{}, err
	}
	if len(msgs) > 0 { // with the answers
		if h, err = r.engine.history(ctx, who, r.ID); err != nil {
			return nil, input{}, err
		}
	}
	in, err := h.begin.input()
	return h, in, err
}

// history reads what was kept of a run.
func (e *Engine) history(ctx context.Context, who store.Scope, id string) (*history, error) {
	records, err := e.Journal.JournalRecords(ctx, who, id, 0)
	if err != nil {
		return nil, err
	}
	return read(id, records)
}

func (r *Runner) begin(ctx context.Context, who store.Scope, msgs []llm.Message) (*session, context.Context, input, error) {
	e := r.engine
	given, err := r.given(msgs)
	if err != nil {
		return nil, nil, input{}, err
	}
	in, err := given.input()
	if err != nil {
		return nil, nil, input{}, err
	}
	body, err := json.Marshal(given)
	if err != nil {
		return nil, nil, input{}, err
	}
	now := e.clock()
	first := store.Record{Key: kindBegin, Kind: kindBegin, At: now, Body: body}
	l, err := e.Journal.BeginJournal(ctx, who, store.JournalRun{ID: r.ID, Agent: given.Agent, Task: taskOf(in.all()), State: store.JournalOpen}, newOwner(), now.Add(e.lease()), first)
	if err != nil {
		return nil, nil, input{}, err
	}
	h, err := e.history(ctx, who, r.ID)
	if err != nil {
		return nil, nil, input{}, err
	}
	s, ctx := e.start(ctx, l, h)
	return s, ctx, in, nil
}

// answer keeps what msgs say of the open calls of a run that is there.
func (r *Runner) answer(ctx context.Context, who store.Scope, h *history, msgs []llm.Message) error {
	if same, err := h.begunWith(r, msgs); err != nil || same || len(msgs) == 0 {
		return err // it is begun once more, or gone on with
	}
	var ds []llm.Decision
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Decision:
				ds = append(ds, p)
			case llm.ToolResult:
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
func answerOf(h *history, res llm.ToolResult) (llm.Decision, error) {
	open := h.waiting()
	i := slices.IndexFunc(open, func(q question) bool { return q.waiting.Call.ID == res.CallID })
	if i < 0 {
		return llm.Decision{}, fmt.Errorf("the result answers the call %q, which does not wait: %w", res.CallID, store.ErrConflict)
	}
	return open[i].waiting.Answer("caller", res), nil
}
