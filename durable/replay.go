package durable

// replay.go: runs as they were, without effects.

import (
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Played is the result of Replay.
type Played struct {
	// Requests is the number of requests that were compared by their digests.
	Requests int
	// Bytes is the number of requests that were compared byte for byte: see Transport.
	Bytes int
	// Calls is the number of ended calls.
	Calls int
	// Result is the end of the run. Nil means that the records end before the run does.
	Result *pawl.Result
}

// Replay replays a run offline: it sends no request, executes no call and stores nothing. It
// compares each request of r with the stored one. The error is ErrChanged for the first difference,
// and names it. Requests of models that send through Transport are built again as bytes, and the
// error for the first difference is a *Mismatch.
func (e *Engine) Replay(ctx context.Context, id string, r pawl.Runner) (p Played, err error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return Played{}, err
	}
	p.Calls = len(h.Outcomes)
	for _, b := range h.Replies {
		if b.Messages != "" { // it was not copied from another run
			p.Requests++
		}
	}
	in, err := inputOf(h)
	if err != nil {
		return p, err
	}

	s, ctx := e.start(ctx, store.Lease{Scope: scope(ctx), Run: id}, h)
	defer s.close()
	s.comparesBytes = true
	defer func() { p.Bytes = s.bytesCompared }()

	for ev, err := range in.stream(ctx, r) {
		err = s.cause(err)
		switch {
		case errors.Is(err, errOver):
			return p, nil
		case errorOf(err) == "":
		case errors.Is(err, ErrChanged), h.End == nil, h.End.Stop != pawl.StopFailed:
			return p, err // it is not the failure with which the stored run ended
		}
		if ev.Kind == pawl.EventRunEnded && ev.Run == "run" && s.failed() == nil {
			p.Result = ev.Result
		}
	}
	return p, nil
}

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
func (e *Engine) ReplayEvents(id string, r pawl.Runner) pawl.Runner {
	return &story{engine: e, id: id, runner: r}
}

// FollowEvents is ReplayEvents for one reader that repeats Stream while another process works on
// the run: each Stream reads only the records that are new. It is not safe for concurrent use.
func (e *Engine) FollowEvents(id string, r pawl.Runner) pawl.Runner {
	return &story{engine: e, id: id, runner: r, keeps: true}
}

// story is a Runner that yields the events of a stored run.
type story struct {
	engine *Engine
	id     string
	runner pawl.Runner

	keeps bool            // the records are kept for the next Stream
	kept  *record.History // nil before the first Stream
}

// Stream yields the events of the run.
func (t *story) Stream(ctx context.Context, _ ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		h, in, err := t.load(ctx)
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}

		s, ctx := t.engine.start(ctx, store.Lease{Scope: scope(ctx), Run: t.id}, h)
		defer s.close()
		s.eventsOnly = true
		if !yield(s.attempt(), nil) {
			return
		}

		for ev, err := range in.stream(ctx, t.runner) {
			why := s.failed()
			ended := ev.Kind == pawl.EventRunEnded && ev.Run == "run"
			switch {
			case why == nil: // a stored event

			case !errors.Is(why, errOver):
				yield(pawl.Event{}, why)
				return

			// The records have ended. The run ends here only if it had stopped here.
			case h.End != nil && h.End.FailedAt(ev):
				ev = h.End.FailedStep(ev)
				err = nil
			case h.End == nil || !ended:
				continue
			default:
				yieldEnd(h.End, ev, yield)
				return
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// load reads the run and its input.
func (t *story) load(ctx context.Context) (*record.History, input, error) {
	e := t.engine
	head, err := e.Journal.JournalRun(ctx, scope(ctx), t.id)
	if err != nil {
		return nil, input{}, err
	}
	h, err := t.history(ctx)
	if err != nil {
		return nil, input{}, err
	}
	if head.State == store.JournalOpen {
		h.End = nil // an end before a resume
	}
	in, err := inputOf(h)
	return h, in, err
}

// history returns the records of the run so far.
func (t *story) history(ctx context.Context) (*record.History, error) {
	e := t.engine
	if t.kept == nil {
		h, err := e.history(ctx, scope(ctx), t.id)
		if err != nil || !t.keeps {
			return h, err
		}
		t.kept = h
		return h.Copy(), nil
	}

	if err := t.kept.Extend(ctx, e.Journal, scope(ctx), t.id); err != nil {
		t.kept = nil // it may have a part of them
		return nil, err
	}
	t.kept.Expire(e.clock())
	return t.kept.Copy(), nil
}

// yieldEnd yields run_ended e as it was when the run stopped, and then the error of the run.
func yieldEnd(end *record.End, e pawl.Event, yield func(pawl.Event, error) bool) {
	e = end.RunEnded(e)
	if !yield(e, nil) {
		return
	}
	if err := end.Err(e.Result); err != nil {
		yield(pawl.Event{}, err)
	}
}
