package durable

// liveness.go: finds runs that break the guarantee R9.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/store"
)

// StuckRun is a run that breaks the guarantee R9: see Engine.CheckLiveness.
type StuckRun struct {
	// Scope is the owner of the run.
	Scope store.Scope `json:"scope,omitzero"`
	// Run is the ID of the run.
	Run string `json:"run"`
	// State is JournalRun.State.
	State string `json:"state"`
	// Why says what is wrong.
	Why string `json:"why"`
	// Since is the last time at which the run was in order.
	Since time.Time `json:"since"`
}

// CheckLiveness returns the runs of all scopes that break R9: runs that are not over and that
// neither work, nor wait for an answer to an open question, nor have failed with a reason. A run
// that no process has taken up for the time of a lease does not work, unless it is queued.
func (e *Engine) CheckLiveness(ctx context.Context) ([]StuckRun, error) {
	out := []StuckRun{}
	for r, err := range e.Journal.UnendedRuns(ctx) {
		if err != nil {
			return nil, err
		}
		why, since, err := e.stuck(ctx, r)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, StuckRun{r.Scope, r.ID, r.State, why, since})
		}
	}
	return out, nil
}

// stuck returns why r breaks R9, and since when. Empty means that it does not.
func (e *Engine) stuck(ctx context.Context, r store.JournalRun) (why string, since time.Time, err error) {
	now := e.clock()
	if r.Owner != "" && r.Until.After(now) {
		return "", since, nil // it works
	}
	since = r.Updated
	if r.DueFrom().After(since) {
		since = r.DueFrom() // the end of the lease, which is no update, or of a wait
	}

	switch r.State {
	case store.JournalOpen:
		if e.waitsForProvider(r) {
			return "", since, nil
		}
		if !r.Queued() && now.Sub(since) > e.lease() {
			why = "it was interrupted, and no process resumes it"
		}
	case store.JournalFailed:
		var s Summary
		if err := json.Unmarshal(r.Summary, &s); err != nil || s.Cause == "" {
			why = "it failed without a reason"
		}
	case store.JournalWaiting:
		why, err = e.waitsInVain(ctx, r)
	}
	return why, since, err
}

// waitsForProvider reports whether an open run waits for the provider of its model, and may do so
// for some time: a server lets one run ask on behalf of all.
func (e *Engine) waitsForProvider(r store.JournalRun) bool {
	var s Summary
	if json.Unmarshal(r.Summary, &s) != nil || s.Waiting == nil {
		return false
	}
	return e.clock().Before(s.Waiting.Since.Add(e.outage() + e.lease()))
}

// waitsInVain returns why an answer can not let the waiting run r continue. Empty means that a
// question of it is open.
func (e *Engine) waitsInVain(ctx context.Context, r store.JournalRun) (why string, err error) {
	h, err := e.history(store.WithScope(ctx, r.Scope), r.Scope, r.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil // it was deleted since
	case errors.Is(err, ErrCorrupt):
		return err.Error(), nil
	case err != nil:
		return "", err
	}

	asks := func(q record.Question) bool { return q.Answer == nil }
	if slices.ContainsFunc(h.OpenQuestions(), asks) {
		return "", nil
	}
	return "it waits for an answer, and no question is open", nil
}
