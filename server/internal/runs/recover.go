package runs

// recover.go: resumes the runs that no process executes.

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
			if ok, _ := h.breakerOf(modelName(j.agent)).allow(time.Now()); !ok {
				continue // its provider is still away
			}
		}
		if err == nil {
			_, _, err = h.run(ctx, p, j, nil)
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
