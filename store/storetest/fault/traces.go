package fault

import (
	"context"
	"errors"
	"html"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Traces returns the faults that storetest.TestTraces finds.
func Traces() []mutant.Mutant[store.Traces] {
	return []mutant.Mutant[store.Traces]{
		ofTraces("keeps the first head of a run", "life", func(f *traces) {
			next, db := f.onPutRun, f.traceStore
			f.onPutRun = func(ctx context.Context, sc store.Scope, r store.Run) error {
				if _, err := db.Run(ctx, sc, r.ID); err == nil {
					return nil
				}
				return next(ctx, sc, r)
			}
		}),
		ofTraces("drops what was spent", "life", func(f *traces) {
			next := f.onPutRun
			f.onPutRun = func(ctx context.Context, sc store.Scope, r store.Run) error {
				r.Spent = pawl.Spent{}
				return next(ctx, sc, r)
			}
		}),
		ofTraces("drops the stop", "life", func(f *traces) {
			next := f.onPutRun
			f.onPutRun = func(ctx context.Context, sc store.Scope, r store.Run) error {
				r.Stop = ""
				return next(ctx, sc, r)
			}
		}),
		ofTraces("lists the earliest first", "life", func(f *traces) {
			next := f.onRuns
			f.onRuns = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Run, error) {
				all, err := next(ctx, sc, store.Page{})
				slices.Reverse(all)
				i := slices.IndexFunc(all, func(r store.Run) bool { return r.ID == p.After }) + 1
				return all[i:min(i+p.Size(), len(all))], err
			}
		}),
		ofTraces("stores events twice", "life", func(f *traces) {
			next := f.onAppendEvents
			f.onAppendEvents = func(ctx context.Context, sc store.Scope, run string, events ...pawl.Event) error {
				kept := slices.Clone(events)
				for i := range kept {
					kept[i].Seq += int64(len(events)-2) * 10
				}
				return next(ctx, sc, run, kept...)
			}
		}),
		ofTraces("drops the last event", "life", func(f *traces) {
			next := f.onAppendEvents
			f.onAppendEvents = func(ctx context.Context, sc store.Scope, run string, events ...pawl.Event) error {
				return next(ctx, sc, run, events[:max(1, len(events)-1)]...)
			}
		}),
		ofTraces("escapes texts", "life", func(f *traces) {
			next := f.onAppendEvents
			f.onAppendEvents = func(ctx context.Context, sc store.Scope, run string, events ...pawl.Event) error {
				kept := slices.Clone(events)
				for i := range kept {
					kept[i].Text = html.EscapeString(kept[i].Text)
				}
				return next(ctx, sc, run, kept...)
			}
		}),
		ofTraces("ignores the limit of events", "life", func(f *traces) {
			next := f.onEvents
			f.onEvents = func(ctx context.Context, sc store.Scope, run string, after int64,
				limit int) ([]pawl.Event, error) {
				return next(ctx, sc, run, after, 0)
			}
		}),
		ofTraces("begins with the event itself", "life", func(f *traces) {
			next := f.onEvents
			f.onEvents = func(ctx context.Context, sc store.Scope, run string, after int64,
				limit int) ([]pawl.Event, error) {
				return next(ctx, sc, run, after-1, limit)
			}
		}),
		ofTraces("ignores the user in lists", "scopes", func(f *traces) {
			next := f.onRuns
			f.onRuns = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Run, error) {
				own, err := next(ctx, sc, p)
				if err != nil || sc.User == "" {
					return own, err
				}
				more, err := next(ctx, wider(sc), p)
				return append(own, more...), err
			}
		}),
		ofTraces("keeps a deleted run", "scopes", func(f *traces) {
			db := f.traceStore
			f.onDeleteRun = func(ctx context.Context, sc store.Scope, id string) error {
				_, err := db.Run(ctx, sc, id)
				return err
			}
		}),
		ofTraces("deletes runs of other users", "property", func(f *traces) {
			next := f.onDeleteRun
			f.onDeleteRun = func(ctx context.Context, sc store.Scope, id string) error {
				err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return err
			}
		}),
		ofTraces("takes events of no run", "bad input", func(f *traces) {
			next := f.onAppendEvents
			f.onAppendEvents = func(ctx context.Context, sc store.Scope, run string, events ...pawl.Event) error {
				err := next(ctx, sc, run, events...)
				if errors.Is(err, store.ErrNotFound) {
					return nil
				}
				return err
			}
		}),
	}
}

func ofTraces(name, part string, replace func(f *traces)) mutant.Mutant[store.Traces] {
	return mutant.Mutant[store.Traces]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Traces) store.Traces { return plantTraces(db, replace) },
	}
}
