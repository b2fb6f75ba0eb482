package runs

// work.go: the goroutine of a run.

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"runtime/debug"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// work executes a run until it stops. msgs begin a new run.
func (h *hub) work(l *Live, msgs []llm.Message) {
	ctx := l.ctx
	defer l.cancel(nil)
	waited := isClosed(l.begun)
	if waited && !h.isOurs(ctx, l) {
		h.rest(l, true)
		return
	}

	// A run that waited was announced when it was stored.
	p := progress{waited: waited, begun: waited}
	hidden := redact.Runner(h.runner(l), h.service.options.Secrets)
	for e, err := range h.guarded(l, hidden.Stream(ctx, msgs...)) {
		first := !p.begun
		what := p.next(signal{
			event:    e,
			err:      err,
			stopping: context.Cause(ctx) == errParked,
			draining: isClosed(h.drained),
		})
		h.do(l, e, err, what)
		if first {
			close(l.begun)
			h.notify(l.place)
		}
	}
	if !p.begun {
		close(l.begun)
	}

	// A run that failed to continue would fail again at once.
	if !l.job.replay && p.broken(context.Cause(ctx) != nil) {
		h.delay(l.place)
	}
	h.rest(l, p.parked)
	h.notify(l.place)

	// An answer may have arrived in the meantime.
	if l.Pending() && !l.job.replay {
		h.wake()
	}
}

// runner returns the Runner that executes or replays a run.
func (h *hub) runner(l *Live) pawl.Runner {
	if l.job.follow {
		return &follower{engine: h.service.engine, scope: l.scope, id: l.id, agent: l.job.agent}
	}
	if l.job.replay {
		return h.service.engine.ReplayEvents(l.id, l.job.agent)
	}
	r := h.service.engine.Runner(l.id, l.job.agent)
	r.Meta = l.job.meta
	r.From = l.job.from
	r.Gate = l.gate.wait
	if h.service.options.Around != nil {
		return h.service.options.Around(l.id, BaseName(l.Agent()), r)
	}
	return r
}

// do does what progress has decided about an item of the stream.
func (h *hub) do(l *Live, e pawl.Event, err error, what action) {
	switch what {
	case actionRefuse:
		l.startErr = err
		h.remove(l) // before its callers know, because they may then follow it

	case actionFail:
		h.fail(l, err)

	case actionEnd:
		l.pending.Store(e.Result != nil && e.Result.Stop.Class() == pawl.ClassWaiting)
		l.ended.Store(true)
		if l.job.forget { // before its client knows the end
			h.erase(l)
		}
		l.feed.append(e)

	case actionPublish:
		l.feed.append(e)
		if isStep(e) {
			l.spent.Store(e.Spent)
			h.notify(l.place)
		}
	}
}

// errUnexpected is the error of a run that panicked: clients read nothing of the program.
var errUnexpected = errors.New("the run failed unexpectedly; the server's log has the reason")

// panicked logs a panic within a run.
func (h *hub) panicked(l *Live, v any, stack []byte) {
	h.service.options.Log.Error("a run panicked", "run", l.id, "panic", v, "stack", string(stack))
}

// withoutPanics yields the events of a run. If its model panicked, errUnexpected takes the place of
// the end of the run.
func (h *hub) withoutPanics(l *Live, events iter.Seq2[pawl.Event, error]) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		var end *pawl.Event // of a run that failed; its error follows
		for e, err := range events {
			if p, ok := errors.AsType[*pawl.PanicError](err); ok {
				h.panicked(l, p.Value, p.Stack)
				yield(pawl.Event{}, errUnexpected)
				return
			}

			if end != nil && !yield(*end, nil) {
				return
			}
			end = nil
			failed := e.Result != nil && e.Result.Stop == pawl.StopFailed
			if isEnd(e) && failed {
				end = &e
				continue
			}
			if !yield(e, err) {
				return
			}
		}
		if end != nil {
			yield(*end, nil)
		}
	}
}

// guarded yields the events of a run. A panic in it becomes the error of the run, with the stack in
// the log, since the process serves other runs too. A panic of the consumer passes through.
func (h *hub) guarded(l *Live, events iter.Seq2[pawl.Event, error]) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		ours := true
		defer func() {
			if !ours {
				return
			}
			if v := recover(); v != nil {
				h.panicked(l, v, debug.Stack())
				yield(pawl.Event{}, errUnexpected)
			}
		}()

		for e, err := range h.withoutPanics(l, events) {
			ours = false
			if !yield(e, err) {
				return
			}
			ours = true
		}
	}
}

// fail sends readers the reason why the run could not continue.
func (h *hub) fail(l *Live, err error) {
	e := *ToError(err)
	if e.Cause != nil {
		h.service.options.Log.Error("a run cannot be stored", "run", l.id, "error", e.Cause)
	}
	e.Message = h.service.options.Secrets.String(e.Message)
	data, _ := json.Marshal(map[string]*api.Error{"error": &e}) // text always marshals
	l.feed.add(kindError, data)
}

// erase deletes a run that has ended, for a client that wanted nothing stored.
func (h *hub) erase(l *Live) {
	ctx := context.WithoutCancel(l.ctx)
	head, err := h.service.options.Journal.JournalRun(ctx, l.scope, l.id)
	if err == nil && isOver(head) {
		err = h.service.options.Journal.DeleteJournal(ctx, l.scope, l.id)
		h.drop(l.place)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		h.service.options.Log.Error("a run that must not be stored", "run", l.id, "error", err)
	}
}
