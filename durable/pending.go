package durable

// pending.go: the open questions of a tenant.

import (
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// PendingRun is a run that waits for answers.
type PendingRun struct {
	// Scope is the owner of the run. Decide finds the run with it: store.WithScope.
	Scope store.Scope
	// ID is the ID of the run, unique for its owner.
	ID string
	// Agent is the name of the agent. Empty means no name.
	Agent string
	// Task is the beginning of the user's request.
	Task string
	// Calls are the open questions without an answer.
	Calls []pawl.PendingCall
}

// PendingOf yields the waiting runs of all users of a tenant with their open questions, in any
// order: for a person who decides for others.
//
//	for run, err := range engine.PendingOf(ctx, "acme") {
//		…
//		err := engine.Decide(store.WithScope(ctx, run.Scope), run.ID, run.Calls[0].Approve("eve"))
//	}
//
// An error ends it. It reads the heads of the runs of all tenants that have not ended.
func (e *Engine) PendingOf(ctx context.Context, tenant string) iter.Seq2[PendingRun, error] {
	return func(yield func(PendingRun, error) bool) {
		if e.Journal == nil {
			yield(PendingRun{}, errNoJournal)
			return
		}
		for head, err := range e.Journal.UnendedRuns(ctx) {
			if err != nil {
				yield(PendingRun{}, err)
				return
			}
			if head.Scope.Tenant != tenant || head.State != store.JournalWaiting {
				continue
			}

			open, err := e.Pending(store.WithScope(ctx, head.Scope), head.ID)
			gone := errors.Is(err, store.ErrNotFound)
			if gone || err == nil && len(open) == 0 {
				continue // deleted or answered since
			}
			run := PendingRun{Scope: head.Scope, ID: head.ID, Agent: head.Agent, Task: head.Task, Calls: open}
			if !yield(run, err) || err != nil {
				return
			}
		}
	}
}
