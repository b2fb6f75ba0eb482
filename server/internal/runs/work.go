package runs

// work.go: the goroutine of a run.

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"runtime/debug"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// work executes a run until it stops. msgs begin a new run.
func (h *hub) work(l *Live, msgs []llm.Message) {
	ctx := l.ctx
	waited := isClosed(l.begun)
	again := l.published.begun
	if waited && !again && !h.isOurs(ctx, l) {
		l.cancel(nil)
		h.rest(l, true)
		return
	}

	// A run that waited was announced when it was stored.
	p := progress{waited: waited, begun: waited}
	repeated := repetition{before: l.published}
	hidden := redact.Runner(h.runner(l), h.service.options.Secrets)
	for e, err := range h.guarded(l, hidden.Stream(ctx, msgs...)) {
		if err == nil && !repeated.isNew(&e) {
			continue
		}
		first := !p.begun
		what := p.next(signal{
			event:    e,
			err:      err,
			stopping: context.Cause(ctx) == errParked,
			draining: isClosed(h.drained),
			follows:  l.replays(),
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

	h.acquit(l.place)
	switch {
	case p.waits:
		h.suspend(l, l.away.Load().Next)
		h.notify(l.place)
		return
	case again && p.parked && !isClosed(h.drained): // another process was faster
		h.suspend(l, time.Now().Add(lostAfter))
		return
	}
	defer l.cancel(nil)

	// A run that failed to continue would fail again at once.
	if !l.replays() && p.broken(context.Cause(ctx) != nil) {
		h.delay(l.place)
	}
	h.rest(l, p.parked)
	h.notify(l.place)

	// An answer may have arrived in the meantime.
	if l.Pending() && !l.replays() {
		h.wake()
	}
}

// runner returns the Runner that executes or replays a run.
func (h *hub) runner(l *Live) pawl.Runner {
	if l.job.follow || l.follows.Load() {
		return &follower{engine: h.service.engine, scope: l.scope, id: l.id, agent: l.job.agent}
	}
	if l.job.replay {
		return h.service.engine.ReplayEvents(l.id, l.job.agent)
	}
	r := h.service.engine.Runner(l.id, h.breakers.guard(l.job.agent))
	r.Meta = l.job.meta
	r.From = l.job.from
	r.Gate = func(ctx context.Context) error {
		l.executes.Store(true)
		return l.gate.wait(ctx)
	}
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
		if e.Result != nil && e.Result.Stop.Class() == pawl.ClassWaiting {
			h.markPending(l)
		}
		l.ended.Store(true)
		if l.job.forget { // before its client knows the end
			h.erase(l)
		}
		h.publish(l, e)

	case actionWait, actionPublish:
		h.publish(l, e)
		if isStep(e) {
			l.spent.Store(e.Spent)
			if l.executes.Load() { // it is no repeated step
				h.acquit(l.place)
			}
			h.notify(l.place)
		}
	}
}

// markPending records that a run has stopped with questions, and which attempt asked them. An
// unknown attempt counts as another one: Service.Refresh then replays the run.
func (h *hub) markPending(l *Live) {
	head, err := h.service.options.Journal.JournalRun(l.ctx, l.scope, l.id)
	if err == nil {
		l.fence.Store(head.Fence)
	}
	l.pending.Store(true)
}

// publish gives readers an event.
func (h *hub) publish(l *Live, e pawl.Event) {
	l.published.add(&e)
	l.observe(e)
	l.feed.append(e)
}

// errUnexpected is the error of a run that panicked: clients read nothing of the program.
var errUnexpected = errors.New("the run failed unexpectedly; the server's log has the reason")

// panicked logs a panic within a run.
func (h *hub) panicked(l *Live, v any, stack []byte) {
	h.service.options.Log.Error("a run panicked", "run", l.id, "panic", v, "stack", string(stack))
}

// settled yields the events of a run. It holds the end of a run that failed, and the step in which
// it failed, until the reason is known: errUnexpected takes the place of a panic of its model, and
// a notice the place of the end of a run that waits for its provider.
func (h *hub) settled(l *Live, events iter.Seq2[pawl.Event, error]) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		var held []pawl.Event
		release := func() bool {
			for _, e := range held {
				if !yield(e, nil) {
					return false
				}
			}
			held = nil
			return true
		}

		for e, err := range events {
			if p, ok := errors.AsType[*pawl.PanicError](err); ok {
				h.panicked(l, p.Value, p.Stack)
				yield(pawl.Event{}, errUnexpected)
				return
			}

			failed := isEnd(e) && e.Result != nil && e.Result.Stop == pawl.StopFailed
			if failed && !l.replays() {
				if w := h.outageOf(l); w != nil {
					sayOutage(w, held, e.Seq, yield)
					return
				}
			}
			if failed || isStep(e) && e.Error != "" {
				held = append(held, e)
				continue
			}
			if !release() || !yield(e, err) {
				return
			}
		}
		release()
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

		for e, err := range h.settled(l, events) {
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

// outageOf returns for what a run waits that has just stopped. Nil means that it does not.
func (h *hub) outageOf(l *Live) *durable.Waiting {
	head, err := h.service.options.Journal.JournalRun(l.ctx, l.scope, l.id)
	if err != nil {
		return nil
	}
	return outageIn(head)
}
