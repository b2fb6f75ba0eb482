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
	Scope store.Scope `json:"scope,omitzero"`
	Run   string      `json:"run"`
	State string      `json:"state"` // as JournalRun.State
	Why   string      `json:"why"`
	Since time.Time   `json:"since"`
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
		return "", since, nil
	}
	since = r.Updated
	if r.Until.After(since) {
		since = r.Until
	}

	switch r.State {
	case store.JournalOpen:
		if !r.Queued() && now.Sub(since) > e.lease() {
			why = "it was interrupted, and no process resumes it"
		}
	case store.JournalFailed:
		var s Summary
		if err := json.Unmarshal(r.Summary, &s); err != nil || s.Cause == "" {
			why = "it failed without a reason"
		}
	case store.JournalWaiting:
		h, err := e.history(store.WithScope(ctx, r.Scope), r.Scope, r.ID)
		switch {
		case errors.Is(err, store.ErrNotFound): // deleted since
		case errors.Is(err, ErrCorrupt):
			why = err.Error()
		case err != nil:
			return "", since, err
		case !slices.ContainsFunc(h.OpenQuestions(), func(q record.Question) bool { return q.Answer == nil }):
			why = "it waits for an answer, and no question is open"
		}
	}
	return why, since, nil
}
