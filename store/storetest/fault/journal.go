package fault

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Journals returns the faults that storetest.TestJournal finds.
func Journals() []mutant.Mutant[store.Journal] {
	return []mutant.Mutant[store.Journal]{
		ofJournal("drops the task", "life", func(f *journal) {
			next := f.onBeginJournal
			f.onBeginJournal = func(ctx context.Context, sc store.Scope, r store.JournalRun, owner string,
				until time.Time, first ...store.Record) (store.Lease, error) {
				r.Task = ""
				return next(ctx, sc, r, owner, until, first...)
			}
		}),
		ofJournal("drops the summary", "life", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				if c != nil {
					change := *c
					change.Summary = nil
					c = &change
				}
				return next(ctx, l, c, records...)
			}
		}),
		ofJournal("drops the last record of several", "life", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				return next(ctx, l, c, records[:max(min(1, len(records)), len(records)-1)]...)
			}
		}),
		ofJournal("writes records anew", "life", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				kept := slices.Clone(records)
				for i := range kept {
					kept[i].Body = bytes.ReplaceAll(kept[i].Body, []byte(", "), []byte(","))
				}
				return next(ctx, l, c, kept...)
			}
		}),
		ofJournal("drops the time of records", "life", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				kept := slices.Clone(records)
				for i := range kept {
					kept[i].Elapsed = 0
				}
				return next(ctx, l, c, kept...)
			}
		}),
		ofJournal("does not release a lease", "life", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				if c != nil {
					change := *c
					change.Release = false
					c = &change
				}
				return next(ctx, l, c, records...)
			}
		}),
		ofJournal("returns records from the first", "life", func(f *journal) {
			next := f.onJournalRecords
			f.onJournalRecords = func(ctx context.Context, sc store.Scope, id string,
				after int64) ([]store.Record, error) {
				return next(ctx, sc, id, 0)
			}
		}),
		ofJournal("keeps a deleted run", "life", func(f *journal) {
			db := f.journalStore
			f.onDeleteJournal = func(ctx context.Context, sc store.Scope, id string) error {
				_, err := db.JournalRun(ctx, sc, id)
				return err
			}
		}),
		ofJournal("exchanges two records", "chain", func(f *journal) {
			next := f.onJournalRecords
			f.onJournalRecords = func(ctx context.Context, sc store.Scope, id string,
				after int64) ([]store.Record, error) {
				all, err := next(ctx, sc, id, after)
				if len(all) > 2 {
					all[1], all[2] = all[2], all[1]
				}
				return all, err
			}
		}),
		ofJournal("changes a record", "chain", func(f *journal) {
			next := f.onJournalRecords
			f.onJournalRecords = func(ctx context.Context, sc store.Scope, id string,
				after int64) ([]store.Record, error) {
				all, err := next(ctx, sc, id, after)
				if len(all) > 1 {
					all[1].Body = json.RawMessage(`7`)
				}
				return all, err
			}
		}),
		ofJournal("gives a lease without an owner", "leases", func(f *journal) {
			next := f.onBeginJournal
			f.onBeginJournal = func(ctx context.Context, sc store.Scope, r store.JournalRun, owner string,
				until time.Time, first ...store.Record) (store.Lease, error) {
				if owner == "" {
					owner, until = "nobody", r.Created.Add(time.Hour)
				}
				return next(ctx, sc, r, owner, until, first...)
			}
		}),
		ofJournal("lets two hold a lease", "leases", func(f *journal) {
			next := f.onClaimJournal
			f.onClaimJournal = func(ctx context.Context, sc store.Scope, id, owner string, now,
				until time.Time) (store.Lease, error) {
				l, err := next(ctx, sc, id, owner, now, until)
				if errors.Is(err, store.ErrConflict) {
					return next(ctx, sc, id, owner, now.Add(1000*time.Hour), until)
				}
				return l, err
			}
		}),
		ofJournal("takes records under a lost lease", "leases", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				last, err := next(ctx, l, c, records...)
				if errors.Is(err, store.ErrConflict) {
					return last, nil
				}
				return last, err
			}
		}),
		ofJournal("renews a lost lease", "leases", func(f *journal) {
			next := f.onRenewJournal
			f.onRenewJournal = func(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
				head, err := next(ctx, l, until)
				if errors.Is(err, store.ErrConflict) {
					return head, nil
				}
				return head, err
			}
		}),
		ofJournal("renews nothing", "leases", func(f *journal) {
			next := f.onRenewJournal
			f.onRenewJournal = func(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
				if until.IsZero() {
					return next(ctx, l, until)
				}
				return next(ctx, l, l.Until)
			}
		}),
		ofJournal("begins a run twice", "leases", func(f *journal) {
			next := f.onBeginJournal
			f.onBeginJournal = func(ctx context.Context, sc store.Scope, r store.JournalRun, owner string,
				until time.Time, first ...store.Record) (store.Lease, error) {
				l, err := next(ctx, sc, r, owner, until, first...)
				if errors.Is(err, store.ErrConflict) {
					return l, nil
				}
				return l, err
			}
		}),
		ofJournal("does not wake a waiting run", "outside", func(f *journal) {
			next := f.onAppendOutside
			f.onAppendOutside = func(ctx context.Context, sc store.Scope, id, state string,
				records ...store.Record) error {
				return next(ctx, sc, id, "", records...)
			}
		}),
		ofJournal("takes a record twice", "outside", func(f *journal) {
			next := f.onAppendOutside
			f.onAppendOutside = func(ctx context.Context, sc store.Scope, id, state string,
				records ...store.Record) error {
				err := next(ctx, sc, id, state, records...)
				if errors.Is(err, store.ErrConflict) {
					return nil
				}
				return err
			}
		}),
		ofJournal("loses an answer that came before the run waits", "outside", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				if c != nil {
					change := *c
					change.Seen = 0
					c = &change
				}
				return next(ctx, l, c, records...)
			}
		}),
		ofJournal("stores the first of several", "all or nothing", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				if len(records) < 2 {
					return next(ctx, l, c, records...)
				}
				last, err := next(ctx, l, nil, records[0])
				if err != nil {
					return last, err
				}
				return next(ctx, l, c, records[1:]...)
			}
		}),
		ofJournal("changes the state without the records", "all or nothing", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				last, err := next(ctx, l, nil, records...)
				if c != nil {
					return next(ctx, l, c)
				}
				return last, err
			}
		}),
		ofJournal("ignores the state of a list", "lists", func(f *journal) {
			next := f.onJournalRuns
			f.onJournalRuns = func(ctx context.Context, sc store.Scope, state string,
				p store.Page) ([]store.JournalRun, error) {
				return next(ctx, sc, "", p)
			}
		}),
		ofJournal("ignores the size of a page", "lists", func(f *journal) {
			next := f.onJournalRuns
			f.onJournalRuns = func(ctx context.Context, sc store.Scope, state string,
				p store.Page) ([]store.JournalRun, error) {
				p.Limit = 0
				return next(ctx, sc, state, p)
			}
		}),
		ofJournal("lists runs whose lease is valid as due", "due", func(f *journal) {
			next := f.onDueRuns
			f.onDueRuns = func(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
				d.Now = d.Now.Add(time.Hour)
				return next(ctx, d)
			}
		}),
		ofJournal("ignores the limit of due runs", "due", func(f *journal) {
			next := f.onDueRuns
			f.onDueRuns = func(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
				d.Limit = 0
				return next(ctx, d)
			}
		}),
		ofJournal("ignores the agents of due runs", "due", func(f *journal) {
			next := f.onDueRuns
			f.onDueRuns = func(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
				d.Agents = nil
				return next(ctx, d)
			}
		}),
		ofJournal("lets no tenant take turns", "due", func(f *journal) {
			next := f.onDueRuns
			f.onDueRuns = func(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
				limit := d.Limit
				d.Limit = 1000
				all, err := next(ctx, d)
				slices.SortStableFunc(all, func(a, b store.JournalRun) int { return a.DueFrom().Compare(b.DueFrom()) })
				return all[:min(limit, len(all))], err
			}
		}),
		ofJournal("drops the time from which a run is due", "due", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				if c != nil {
					change := *c
					change.Next = time.Time{}
					c = &change
				}
				return next(ctx, l, c, records...)
			}
		}),
		ofJournal("does not count a lease that lapsed", "lapses", func(f *journal) {
			next := f.onClaimJournal
			f.onClaimJournal = func(ctx context.Context, sc store.Scope, id, owner string, now,
				until time.Time) (store.Lease, error) {
				l, err := next(ctx, sc, id, owner, now, until)
				l.Lapses = 0
				return l, err
			}
		}),
		ofJournal("yields no run that waits", "lists", func(f *journal) {
			next := f.onUnendedRuns
			f.onUnendedRuns = func(ctx context.Context) iter.Seq2[store.JournalRun, error] {
				return func(yield func(store.JournalRun, error) bool) {
					for r, err := range next(ctx) {
						if r.State != store.JournalWaiting && !yield(r, err) {
							return
						}
					}
				}
			}
		}),
		ofJournal("gives a lease to several", "race", func(f *journal) {
			next := f.onClaimJournal
			f.onClaimJournal = func(ctx context.Context, sc store.Scope, id, owner string, now,
				until time.Time) (store.Lease, error) {
				l, err := next(ctx, sc, id, owner, now, until)
				if errors.Is(err, store.ErrConflict) {
					l.Fence = 2
					return l, nil
				}
				return l, err
			}
		}),
		ofJournal("loses records that are appended at once", "race", func(f *journal) {
			next := f.onAppendOutside
			f.onAppendOutside = func(ctx context.Context, sc store.Scope, id, state string,
				records ...store.Record) error {
				if records[0].Key == "o3" {
					return nil
				}
				return next(ctx, sc, id, state, records...)
			}
		}),
		ofJournal("does not seal a renewal", "seals", func(f *journal) {
			next := f.onJournalRun
			f.onJournalRun = func(ctx context.Context, sc store.Scope, id string) (store.JournalRun, error) {
				r, err := next(ctx, sc, id)
				r.Seal = ""
				return r, err
			}
		}),
		ofJournal("changes a head after its seal", "seals", func(f *journal) {
			next := f.onJournalRun
			f.onJournalRun = func(ctx context.Context, sc store.Scope, id string) (store.JournalRun, error) {
				r, err := next(ctx, sc, id)
				r.Agent += "!"
				return r, err
			}
		}),
		ofJournal("ignores the user in lists", "scopes", func(f *journal) {
			next := f.onJournalRuns
			f.onJournalRuns = func(ctx context.Context, sc store.Scope, state string,
				p store.Page) ([]store.JournalRun, error) {
				own, err := next(ctx, sc, state, p)
				if err != nil || sc.User == "" {
					return own, err
				}
				more, err := next(ctx, wider(sc), state, p)
				return append(own, more...), err
			}
		}),
		ofJournal("deletes runs of other users", "property", func(f *journal) {
			next := f.onDeleteJournal
			f.onDeleteJournal = func(ctx context.Context, sc store.Scope, id string) error {
				err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return err
			}
		}),
		ofJournal("takes a record without a kind", "bad input", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				kept := slices.Clone(records)
				for i := range kept {
					kept[i].Kind = cmp.Or(kept[i].Kind, "none")
				}
				return next(ctx, l, c, kept...)
			}
		}),
		ofJournal("appends after the end of the context", "bad input", func(f *journal) {
			next := f.onAppendJournal
			f.onAppendJournal = func(ctx context.Context, l store.Lease, c *store.JournalChange,
				records ...store.Record) (int64, error) {
				return next(context.WithoutCancel(ctx), l, c, records...)
			}
		}),
	}
}

func ofJournal(name, part string, replace func(f *journal)) mutant.Mutant[store.Journal] {
	return mutant.Mutant[store.Journal]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Journal) store.Journal { return plantJournal(db, replace) },
	}
}
