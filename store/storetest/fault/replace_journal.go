package fault

import (
	"context"
	"iter"
	"time"

	"github.com/pawl-go/pawl/store"
)

// journalStore has a name that is no method of the interface, unlike Journal.
type journalStore = store.Journal

// journal is a store.Journal whose methods a fault replaces.
type journal struct {
	journalStore
	onBeginJournal func(ctx context.Context, sc store.Scope, r store.JournalRun, owner string,
		until time.Time, first ...store.Record) (store.Lease, error)
	onJournalRun   func(ctx context.Context, sc store.Scope, id string) (store.JournalRun, error)
	onJournalRuns  func(ctx context.Context, sc store.Scope, state string, p store.Page) ([]store.JournalRun, error)
	onDueRuns      func(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error)
	onUnendedRuns  func(ctx context.Context) iter.Seq2[store.JournalRun, error]
	onClaimJournal func(ctx context.Context, sc store.Scope, id, owner string, now,
		until time.Time) (store.Lease, error)
	onRenewJournal  func(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error)
	onAppendJournal func(ctx context.Context, l store.Lease, c *store.JournalChange,
		records ...store.Record) (int64, error)
	onAppendOutside  func(ctx context.Context, sc store.Scope, id, state string, records ...store.Record) error
	onJournalRecords func(ctx context.Context, sc store.Scope, id string, after int64) ([]store.Record, error)
	onDeleteJournal  func(ctx context.Context, sc store.Scope, id string) error
}

// plantJournal returns db with a fault. replace sets the methods that have it.
func plantJournal(db store.Journal, replace func(f *journal)) store.Journal {
	f := &journal{
		journalStore:     db,
		onBeginJournal:   db.BeginJournal,
		onJournalRun:     db.JournalRun,
		onJournalRuns:    db.JournalRuns,
		onDueRuns:        db.DueRuns,
		onUnendedRuns:    db.UnendedRuns,
		onClaimJournal:   db.ClaimJournal,
		onRenewJournal:   db.RenewJournal,
		onAppendJournal:  db.AppendJournal,
		onAppendOutside:  db.AppendOutside,
		onJournalRecords: db.JournalRecords,
		onDeleteJournal:  db.DeleteJournal,
	}
	replace(f)
	return f
}

func (f *journal) BeginJournal(ctx context.Context, sc store.Scope, r store.JournalRun, owner string,
	until time.Time, first ...store.Record) (store.Lease, error) {
	return f.onBeginJournal(ctx, sc, r, owner, until, first...)
}

func (f *journal) JournalRun(ctx context.Context, sc store.Scope, id string) (store.JournalRun, error) {
	return f.onJournalRun(ctx, sc, id)
}

func (f *journal) JournalRuns(ctx context.Context, sc store.Scope, state string,
	p store.Page) ([]store.JournalRun, error) {
	return f.onJournalRuns(ctx, sc, state, p)
}

func (f *journal) DueRuns(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
	return f.onDueRuns(ctx, d)
}

func (f *journal) UnendedRuns(ctx context.Context) iter.Seq2[store.JournalRun, error] {
	return f.onUnendedRuns(ctx)
}

func (f *journal) ClaimJournal(ctx context.Context, sc store.Scope, id, owner string, now,
	until time.Time) (store.Lease, error) {
	return f.onClaimJournal(ctx, sc, id, owner, now, until)
}

func (f *journal) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
	return f.onRenewJournal(ctx, l, until)
}

func (f *journal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	return f.onAppendJournal(ctx, l, c, records...)
}

func (f *journal) AppendOutside(ctx context.Context, sc store.Scope, id, state string,
	records ...store.Record) error {
	return f.onAppendOutside(ctx, sc, id, state, records...)
}

func (f *journal) JournalRecords(ctx context.Context, sc store.Scope, id string, after int64) ([]store.Record,
	error) {
	return f.onJournalRecords(ctx, sc, id, after)
}

func (f *journal) DeleteJournal(ctx context.Context, sc store.Scope, id string) error {
	return f.onDeleteJournal(ctx, sc, id)
}
