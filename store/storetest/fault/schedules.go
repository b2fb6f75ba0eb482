package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Schedules returns the faults that storetest.TestSchedules finds.
func Schedules() []mutant.Mutant[store.Schedules] {
	return []mutant.Mutant[store.Schedules]{
		ofSchedules("drops the zone", "life", func(f *schedules) {
			next := f.onPutSchedule
			f.onPutSchedule = func(ctx context.Context, sc store.Scope, v store.Schedule) (store.Schedule, error) {
				v.Zone = ""
				return next(ctx, sc, v)
			}
		}),
		ofSchedules("changes any version", "life", func(f *schedules) {
			next, db := f.onPutSchedule, f.scheduleStore
			f.onPutSchedule = func(ctx context.Context, sc store.Scope, v store.Schedule) (store.Schedule, error) {
				if old, err := db.Schedule(ctx, sc, v.ID); err == nil {
					v.Version = old.Version
				}
				return next(ctx, sc, v)
			}
		}),
		ofSchedules("does not count versions", "life", func(f *schedules) {
			next := f.onPutSchedule
			f.onPutSchedule = func(ctx context.Context, sc store.Scope, v store.Schedule) (store.Schedule, error) {
				stored, err := next(ctx, sc, v)
				stored.Version = 1
				return stored, err
			}
		}),
		ofSchedules("deletes nothing", "life", func(f *schedules) {

			f.onDeleteSchedule = func(ctx context.Context, sc store.Scope, id string) error {
				return nil
			}
		}),
		ofSchedules("lists the due in reverse", "life", func(f *schedules) {
			next := f.onDueSchedules
			f.onDueSchedules = func(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
				due, err := next(ctx, now, limit)
				slices.Reverse(due)
				return due, err
			}
		}),
		ofSchedules("lets two claim an occurrence", "occurrences", func(f *schedules) {
			next := f.onClaimOccurrence
			f.onClaimOccurrence = func(ctx context.Context, sc store.Scope, id string, due time.Time,
				owner string, now, until time.Time) (store.Claim, error) {
				c, err := next(ctx, sc, id, due, owner, now, until)
				if errors.Is(err, store.ErrConflict) {
					return next(ctx, sc, id, due, owner, until.Add(time.Hour), until.Add(2*time.Hour))
				}
				return c, err
			}
		}),
		ofSchedules("claims what has ended", "occurrences", func(f *schedules) {
			next := f.onClaimOccurrence
			f.onClaimOccurrence = func(ctx context.Context, sc store.Scope, id string, due time.Time,
				owner string, now, until time.Time) (store.Claim, error) {
				c, err := next(ctx, sc, id, due, owner, now, until)
				if errors.Is(err, store.ErrOver) {
					return c, nil
				}
				return c, err
			}
		}),
		ofSchedules("begins under any claim", "occurrences", func(f *schedules) {
			next := f.onBeginOccurrence
			f.onBeginOccurrence = func(ctx context.Context, c store.Claim, now time.Time) error {
				if err := next(ctx, c, now); !errors.Is(err, store.ErrConflict) {
					return err
				}
				return nil
			}
		}),
		ofSchedules("renews any claim", "occurrences", func(f *schedules) {
			next := f.onRenewClaim
			f.onRenewClaim = func(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error) {
				renewed, err := next(ctx, c, until)
				if errors.Is(err, store.ErrConflict) {
					return c, nil
				}
				return renewed, err
			}
		}),
		ofSchedules("renews nothing", "occurrences", func(f *schedules) {
			next := f.onRenewClaim
			f.onRenewClaim = func(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error) {
				renewed, err := next(ctx, c, c.Until)
				renewed.Until = until
				return renewed, err
			}
		}),
		ofSchedules("finishes under any claim", "occurrences", func(f *schedules) {
			next := f.onFinishOccurrence
			f.onFinishOccurrence = func(ctx context.Context, c store.Claim, o store.Occurrence,
				nextTime time.Time, enabled bool) error {
				if err := next(ctx, c, o, nextTime, enabled); !errors.Is(err, store.ErrConflict) {
					return err
				}
				return nil
			}
		}),
		ofSchedules("drops the run of an occurrence", "occurrences", func(f *schedules) {
			next := f.onFinishOccurrence
			f.onFinishOccurrence = func(ctx context.Context, c store.Claim, o store.Occurrence,
				nextTime time.Time, enabled bool) error {
				o.Run = ""
				return next(ctx, c, o, nextTime, enabled)
			}
		}),
		ofSchedules("takes any state", "occurrences", func(f *schedules) {
			next := f.onFinishOccurrence
			f.onFinishOccurrence = func(ctx context.Context, c store.Claim, o store.Occurrence,
				nextTime time.Time, enabled bool) error {
				if o.State == "happy" {
					o.State = store.OccurrenceDone
				}
				return next(ctx, c, o, nextTime, enabled)
			}
		}),
		ofSchedules("does not move the schedule", "occurrences", func(f *schedules) {
			next, db := f.onFinishOccurrence, f.scheduleStore
			f.onFinishOccurrence = func(ctx context.Context, c store.Claim, o store.Occurrence,
				nextTime time.Time, enabled bool) error {
				v, err := db.Schedule(ctx, c.Scope, c.Schedule)
				if err != nil {
					return err
				}
				return next(ctx, c, o, v.Next, v.Enabled)
			}
		}),
		ofSchedules("lists occurrences in reverse", "occurrences", func(f *schedules) {
			next := f.onOccurrences
			f.onOccurrences = func(ctx context.Context, sc store.Scope, id string,
				limit int) ([]store.Occurrence, error) {
				all, err := next(ctx, sc, id, limit)
				slices.Reverse(all)
				return all, err
			}
		}),
		ofSchedules("moves a schedule that is not due", "occurrences", func(f *schedules) {
			next := f.onMoveSchedule
			f.onMoveSchedule = func(ctx context.Context, sc store.Scope, id string, due, to time.Time,
				enabled bool) error {
				return next(ctx, sc, id, due.Add(1000*time.Hour), to, enabled)
			}
		}),
		ofSchedules("gives an occurrence to several", "race", func(f *schedules) {
			next := f.onClaimOccurrence
			f.onClaimOccurrence = func(ctx context.Context, sc store.Scope, id string, due time.Time,
				owner string, now, until time.Time) (store.Claim, error) {
				c, err := next(ctx, sc, id, due, owner, now, until)
				if errors.Is(err, store.ErrConflict) {
					return c, nil
				}
				return c, err
			}
		}),
		ofSchedules("executes what is turned off", "due", func(f *schedules) {
			next := f.onPutSchedule
			f.onPutSchedule = func(ctx context.Context, sc store.Scope, v store.Schedule) (store.Schedule, error) {
				v.Enabled = true
				return next(ctx, sc, v)
			}
		}),
		ofSchedules("ignores the limit of the due", "due", func(f *schedules) {
			next := f.onDueSchedules
			f.onDueSchedules = func(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
				return next(ctx, now, 0)
			}
		}),
		ofSchedules("is early", "due", func(f *schedules) {
			next := f.onDueSchedules
			f.onDueSchedules = func(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
				return next(ctx, now.Add(time.Minute), limit)
			}
		}),
		ofSchedules("ignores the user in lists", "scopes", func(f *schedules) {
			next := f.onSchedules
			f.onSchedules = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Schedule, error) {
				own, err := next(ctx, sc, p)
				if err != nil || sc.User == "" {
					return own, err
				}
				more, err := next(ctx, wider(sc), p)
				return append(own, more...), err
			}
		}),
		ofSchedules("deletes schedules of other users", "property", func(f *schedules) {
			next := f.onDeleteSchedule
			f.onDeleteSchedule = func(ctx context.Context, sc store.Scope, id string) error {
				err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return err
			}
		}),
		ofSchedules("takes a claim without an owner", "bad input", func(f *schedules) {
			next := f.onClaimOccurrence
			f.onClaimOccurrence = func(ctx context.Context, sc store.Scope, id string, due time.Time,
				owner string, now, until time.Time) (store.Claim, error) {
				if owner == "" {
					owner = "none"
				}
				return next(ctx, sc, id, due, owner, now, until)
			}
		}),
	}
}

func ofSchedules(name, part string, replace func(f *schedules)) mutant.Mutant[store.Schedules] {
	return mutant.Mutant[store.Schedules]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Schedules) store.Schedules { return plantSchedules(db, replace) },
	}
}
