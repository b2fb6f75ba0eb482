package runs

// recover.go: resumes the runs that no process executes, and the runs that wait here for the
// provider of their model. The engine stops such a run and leaves it open (durable.Engine.Outage).
// Its Live stays here without a goroutine, and its readers with it:
//
//	work ──▶ suspend: the provider is away ──▶ retry: its time has come ──▶ work
//	             └──▶ dismiss: the memory is needed, or the server stops; a scan finds the run

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

const (
	mostScanned = 1000             // runs of one scan
	longestWait = 10 * time.Minute // between attempts to resume a run

	// lapsesOfSuspect is the number of processes that have died in a row while they executed a run,
	// without a new record, from which on the run is resumed alone: see suspects.
	lapsesOfSuspect = 2

	// resumedByAnswer is the number of waiting runs that begin with each answer of a provider that
	// is back.
	resumedByAnswer = 2
	// lostAfter is the time after which a run that another process was faster to claim is looked at
	// again.
	lostAfter = time.Second
)

// backoff delays the next attempt to resume a run.
type backoff struct {
	at   time.Time
	wait time.Duration
}

// recover resumes runs without a process until ctx ends.
func (h *hub) recover(ctx context.Context) {
	tick := time.NewTicker(h.service.options.Recover)
	defer tick.Stop()
	for {
		h.scan(ctx)
		select {
		case <-tick.C:
		case <-h.kick:
		case <-ctx.Done():
			return
		}
	}
}

// wake makes recover scan at once.
func (h *hub) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// scan resumes the runs that the journal has without a process. It ends early when there is no room
// for another one.
func (h *hub) scan(ctx context.Context) {
	runs, err := h.service.engine.Abandoned(ctx, mostScanned)
	if err != nil {
		if ctx.Err() == nil {
			h.service.options.Log.Error("looking for abandoned runs", "error", err)
		}
		return
	}
	h.keepTries(runs)

	for _, run := range runs {
		p := place{run.Scope, run.ID}
		failed, due := h.isDue(p)
		if !due {
			continue
		}

		// An empty name would mean the only agent: "?" is the name of none.
		j, err := h.service.jobOf(ctx, p, cmp.Or(run.Agent, "?"))
		if err == nil && outageIn(run) != nil {
			if ok, _ := h.breakers.forAgent(j.agent).allow(time.Now()); !ok {
				continue // its provider is still away
			}
		}
		if err == nil {
			err = h.resumeFound(ctx, run, p, j)
		}
		switch {
		case isBusy(err) || ctx.Err() != nil:
			return
		case err == nil:
			continue
		}

		h.delay(p)
		if !failed && !errors.Is(err, durable.ErrLost) { // another process was faster
			h.service.options.Log.Warn("a run cannot be resumed", "run", run.ID, "error", err.Error())
		}
	}
}

// resumeFound resumes a run of a scan. Of the suspects, one begins at a time: a run that takes down
// its process dies alone then, and the other runs are not suspected any longer.
func (h *hub) resumeFound(ctx context.Context, run store.JournalRun, p place, j job) error {
	suspect := isSuspect(run)
	if suspect && !h.suspect.CompareAndSwap(nil, &p) {
		return nil // a later scan finds it
	}
	l, started, err := h.run(ctx, p, j, nil)
	begins := err == nil && started && l.works() // or it has stopped already
	if suspect && !begins {
		h.acquit(p)
	}
	return err
}

// isSuspect reports whether several processes have died while they executed the run. A run that was
// given up for that, and opened again, is a suspect too.
func isSuspect(run store.JournalRun) bool {
	if sum, _ := summaryOf(run); sum.Code == durable.CodeCrashed {
		return true
	}
	lapses := run.Lapses
	if run.Owner != "" { // the lease has expired, or the run would not be due
		lapses++
	}
	return lapses >= lapsesOfSuspect
}

// acquit ends the suspicion of a run that has stored a step, or has stopped. The next one may
// begin.
func (h *hub) acquit(p place) {
	now := h.suspect.Load()
	if now != nil && *now == p && h.suspect.CompareAndSwap(now, nil) {
		h.wake()
	}
}

// isDue reports whether a run may be resumed now. failed means that an attempt has failed before.
func (h *hub) isDue(p place) (failed, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs[p].works() {
		return false, false
	}
	try, failed := h.tries[p]
	return failed, !failed || !h.service.options.Now().Before(try.at)
}

// isBusy reports whether err says that there is no room for a run.
func isBusy(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == "busy"
}

// keepTries drops the records of attempts for runs that no longer need them.
func (h *hub) keepTries(runs []store.JournalRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.tries
	h.tries = make(map[place]backoff, len(old))
	for _, run := range runs {
		p := place{run.Scope, run.ID}
		if try, ok := old[p]; ok {
			h.tries[p] = try
		}
	}
}

// delay postpones the next attempt for a run, longer each time.
func (h *hub) delay(p place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := min(max(2*h.tries[p].wait, h.service.options.Recover), longestWait)
	h.tries[p] = backoff{at: h.service.options.Now().Add(wait), wait: wait}
}

// suspend ends an attempt of a run whose provider is away. Another one begins at that time.
func (h *hub) suspend(l *Live, at time.Time) {
	l.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(l, -1)
	defer h.dispatch() // there is room for another one

	l.suspended.Store(true)
	if h.runs[l.place] != l || isClosed(h.drained) {
		h.forget(l)
		return
	}
	l.next = at
	if probe, isOpen := h.breakers.forAgent(l.job.agent).nextProbe(); isOpen && probe.Before(at) {
		at = probe
	}
	l.timer = time.AfterFunc(time.Until(at), func() { h.retry(l, retryDue) })
	h.retain(l)
}

// reason is why a suspended run is executed again.
type reason int

const (
	retryDue       reason = iota // its time has come, or the time of a probe
	retryAnswered                // its provider has answered another run
	retryAsked                   // a person does not wait for its time
	retryCancelled               // it stores its end, and needs neither room nor its provider
)

// mayRetry reports whether a suspended run may ask its provider, and if not, when to ask again.
func (h *hub) mayRetry(l *Live, why reason) (ok bool, next time.Time) {
	if why != retryDue {
		return true, next
	}
	now := time.Now()
	b := h.breakers.forAgent(l.job.agent)
	_, isOpen := b.nextProbe()
	if !isOpen && now.Before(l.next) {
		return false, l.next // the time of a probe has brought it here
	}
	return b.allow(now)
}

// retry executes a suspended run again, or lets it wait for room. If another process has executed
// it since then, the run is followed there.
func (h *hub) retry(l *Live, why reason) {
	h.mu.Lock()
	if !l.isSuspended() { // it must not take a probe from the runs that are
		h.mu.Unlock()
		return
	}
	ok, next := h.mayRetry(l, why)
	if !ok {
		l.timer.Reset(time.Until(next))
	}
	h.mu.Unlock()
	if !ok {
		return
	}

	head, err := h.service.options.Journal.JournalRun(l.ctx, l.scope, l.id)
	elsewhere := err == nil && (head.State != store.JournalOpen || isLeased(head, time.Now()))

	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.suspended.Load() || isClosed(h.drained) {
		return
	}
	l.timer.Stop()
	h.unrest(l)
	l.suspended.Store(false)

	switch {
	case elsewhere:
		l.follows.Store(true)
	case why != retryCancelled && !h.hasRoom(l.scope.Tenant, false):
		h.queue.reserve(l.scope.Tenant)
		l.queued.Store(true)
		h.queue.push(l)
		h.dispatch()
		return
	}
	h.start(l, nil)
}

// answered lets runs begin that wait for a model whose provider has answered, the longest waiting
// first.
func (h *hub) answered(model string) {
	var next []*Live
	h.mu.Lock()
	for _, l := range h.rested {
		if l.isSuspended() && modelName(l.job.agent) == model {
			next = append(next, l)
		}
		if len(next) == resumedByAnswer {
			break
		}
	}
	h.mu.Unlock()

	if len(next) == 0 {
		h.breakers.named(model).close()
	}
	for _, l := range next {
		h.retry(l, retryAnswered)
	}
}
