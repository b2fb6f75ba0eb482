package durable

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Story returns a Runner that tells a run from what was kept of it, and does nothing else: nothing is asked, run or kept, and no lease is taken, so that it may be told to
// whoever may look, also while a process works on the run. r is what Engine.Runner would take; messages are not looked at. The events are those of a run that is resumed, from the
// notice "attempt" on; run_ended comes where the run had stopped, be it to wait for an answer, and after that the error by which it failed. A run under way is told as far as it
// was kept, and has no end.
//
// ErrChanged: r is not what the run was made with; store.ErrNotFound: there is none.
func (e *Engine) Story(id string, r pawl.Runner) pawl.Runner { return &story{e, id, r} }

type story struct {
	engine *Engine
	id     string
	runner pawl.Runner
}

// Stream tells it.
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
			h.end = nil // that was before it went on
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
			case h.end == nil || ev.Kind != pawl.EventRunEnded || ev.Run != "run":
				continue // it did not happen: the record has ended
			default:
				ev, err = h.end.told(ev), nil
			}
			if !yield(ev, err) || err != nil {
				return
			}
			if why != nil {
				break
			}
		}
		if h.end != nil && h.end.Stop == pawl.StopFailed && ctx.Err() != nil {
			yield(pawl.Event{}, errors.New(h.end.Error))
		}
	}
}

// told is the run_ended e as it was when the run stopped.
func (b *endBody) told(e pawl.Event) pawl.Event {
	res := *e.Result
	res.Stop, res.Cause, res.Spent, res.Pending, res.Values, res.Output = b.Stop, b.Cause, b.Spent, b.Pending, b.Values, b.Output
	e.Result, e.Error = &res, b.Error
	return e
}

// askedOf returns how tasks waited when the run stopped; nil: not all of them did.
func (h *history) askedOf(tasks []pawl.Task) []pawl.Execution {
	if h.end == nil || h.end.Stop != pawl.StopPending {
		return nil
	}
	out := make([]pawl.Execution, 0, len(tasks))
	for _, t := range tasks {
		x := pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomePending}
		for _, w := range h.end.Pending {
			if w.Key == t.Key || strings.HasPrefix(string(w.Key), string(t.Key)+"/") {
				x.Waiting = append(x.Waiting, w)
			}
		}
		if len(x.Waiting) == 0 {
			return nil
		}
		if x.Waiting[0].Key == t.Key {
			x.Outcome = x.Waiting[0].Outcome
		}
		out = append(out, t.Replayed(t.Call, x))
	}
	return out
}
