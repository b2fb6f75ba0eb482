// Package journal reads a run from its journal, without executing it and without its agent: what it
// did (Export), when (Timeline), with which effects (LedgerEntry), and how two runs differ (Diff).
// What is shown passes through a redact.Redactor, which a run completes with the arguments that its
// tools mark as secret.
//
//	run, err := journal.Read(ctx, db, "invoice-7", time.Now())
//	…
//	x, err := run.Export()
//	form, err := x.Redacted(run.Redactor(hide)).JSON()
//
// The methods of durable.Engine with the same names do it in one call. An Export is equal for every
// engine, and so is CheckAnswer, with which an engine refuses an answer to an open call.
package journal

// run.go: Run, the records of a run as its readers get them.

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// Run is the records of a run at the time when they were read.
type Run struct{ history *record.History }

// Read reads the records of the run id and checks their chain. The store.Scope of ctx is the owner
// of the run. An approval that has expired at the time now does not count. The error is
// store.ErrNotFound if there is no such run, and store.ErrCorrupt if the records are not what was
// written.
func Read(ctx context.Context, j store.Journal, id string, now time.Time) (*Run, error) {
	owner, _ := store.ScopeFrom(ctx)
	h, err := record.Load(ctx, j, owner, id, now)
	if err != nil {
		return nil, err
	}
	return &Run{h}, nil
}

// Export returns the run without times and attempts.
func (r *Run) Export() (*Export, error) { return export(r.history) }

// Timeline returns the times of the steps of the run.
func (r *Run) Timeline() *Timeline { return timeline(r.history) }

// Effects returns the ledger of the run: each call of a tool that started or is pending, in the
// order of their keys, including nested calls. alive means that a process has the lease of the run,
// so that a call without an outcome is in progress.
func (r *Run) Effects(alive bool) []LedgerEntry { return effects(r.history, alive) }

// Redactor returns a copy of hide that also hides the arguments that the tools of the run mark as
// secret ("writeOnly" or "x-secret" in their schemas), and the values of these arguments wherever
// they occur. A nil hide hides nothing else. Older journals have no marks.
func (r *Run) Redactor(hide *redact.Redactor) *redact.Redactor { return redactor(r.history, hide) }
