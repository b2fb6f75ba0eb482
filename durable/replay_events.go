package durable

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// ReplayEvents returns a Runner that yields the events of a stored run and has no effects: it sends
// no request, executes no call, stores nothing and takes no lease. It may therefore serve any
// reader, also while a process works on the run. r is the argument of Engine.Runner. Messages are
// ignored.
//
// The events equal the events of a resumed run, from the notice "attempt" on. run_ended follows
// where the run stopped, also for a stop with pending calls, and after it the error with which the
// run failed. The events of an active run end with its last record, without run_ended.
//
// The error is ErrChanged if the run was made with another r, and store.ErrNotFound if there is no
// run.
func (e *Engine) ReplayEvents(id string, r pawl.Runner) pawl.Runner { return &story{e, id, r} }

type story struct {
	engine *Engine
	id     string
	runner pawl.Runner
}

// Stream yields the events of the run.
func (t *story) Stream(ctx context.Context, _ ...llm.Message) iter.Seq2[pawl.Event, error] {
	e, id, r := t.engine, t.id, t.runner
	return func(yield func(pawl.Event, error) bool) {
		head, err := e.Journal.JournalRun(ctx, scope(ctx), id)
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}
		h, err := e.history(ctx, scope(ctx), id)
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}
		if head.State == store.JournalOpen {
			h.end = nil // an end before a resume
		}
		in, err := h.begin.input()
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}
		s, ctx := e.start(ctx, store.Lease{Scope: scope(ctx), Run: id}, h)
		defer s.close()
		s.story = true
		if !yield(s.attempt(), nil) {
			return
		}
		for ev, err := range in.stream(ctx, r) {
			why := s.failed()
			switch {
			case why == nil:
			case !errors.Is(why, errOver):
				yield(pawl.Event{}, why)
				return
			case h.end != nil && h.end.failed(ev):
				ev, err = h.end.atFailure(ev), nil
			case h.end == nil || ev.Kind != pawl.EventRunEnded || ev.Run != "run":
				continue // it did not happen: the records have ended
			default:
				ev = h.end.atEnd(ev)
				if yield(ev, nil) {
					if err := h.end.err(ev.Result); err != nil {
						yield(pawl.Event{}, err)
					}
				}
				return
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// atEnd returns run_ended e as it was when the run stopped.
func (b *endBody) atEnd(e pawl.Event) pawl.Event {
	res := *e.Result
	res.Stop, res.Limit, res.Cause, res.Spent, res.Pending = b.Stop, b.Limit, b.Cause, b.Spent, b.Pending
	res.Values, res.Output = b.Values, b.Output
	if n := len(res.Steps); n > 0 && res.Steps[n-1].Error != "" {
		res.Steps = append(slices.Clone(res.Steps[:n-1]), b.failure(res.Steps[n-1]))
	}
	e.Result, e.Error = &res, b.Error
	return e
}

// failed reports whether e is the step of the request with which the run failed.
func (b *endBody) failed(e pawl.Event) bool {
	return b.Stop == pawl.StopFailed && e.Kind == pawl.EventStep && e.Run == "run" && e.Error != ""
}

// atFailure returns the step e of a failed request as it was. The records do not have the part of
// the reply that had arrived.
func (b *endBody) atFailure(e pawl.Event) pawl.Event {
	step := b.failure(*e.Completed)
	spent := b.Spent
	e.Completed, e.Spent, e.Error = &step, &spent, step.Error
	return e
}

// failure returns the step of a request that got no stored reply, with the error of the run.
func (b *endBody) failure(step pawl.Step) pawl.Step {
	step.Error = strings.TrimPrefix(cmp.Or(b.Error, b.Cause), string(step.Request.Key)+": ")
	return step
}

// err returns the error of the run that ended with res.
func (b *endBody) err(res *pawl.Result) error {
	if b.Stop == pawl.StopFailed {
		return errors.New(b.Error)
	}
	return res.Err()
}

// askedOf returns the open calls of tasks at the time of the stop with their questions, or nil if
// none had a question. A call without one was held by a call with one.
func (h *history) askedOf(tasks []pawl.Task) []pawl.Execution {
	if h.end == nil || h.end.Stop != pawl.StopPending {
		return nil
	}
	out := make([]pawl.Execution, 0, len(tasks))
	asked := false
	for _, t := range tasks {
		x := pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomePending}
		for _, w := range h.end.Pending {
			if w.Key == t.Key || strings.HasPrefix(string(w.Key), string(t.Key)+"/") {
				x.Pending = append(x.Pending, w)
			}
		}
		if len(x.Pending) > 0 && x.Pending[0].Key == t.Key {
			x.Outcome = x.Pending[0].Outcome
		}
		asked = asked || len(x.Pending) > 0
		out = append(out, t.Replayed(t.Call, x))
	}
	if !asked {
		return nil
	}
	return out
}
