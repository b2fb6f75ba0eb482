package fault

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/store"
)

// scheduleStore has a name that is no method of the interface, unlike Schedules.
type scheduleStore = store.Schedules

// schedules is a store.Schedules whose methods a fault replaces.
type schedules struct {
	scheduleStore
	onPutSchedule     func(ctx context.Context, sc store.Scope, v store.Schedule) (store.Schedule, error)
	onSchedule        func(ctx context.Context, sc store.Scope, id string) (store.Schedule, error)
	onSchedules       func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Schedule, error)
	onDeleteSchedule  func(ctx context.Context, sc store.Scope, id string) error
	onOccurrences     func(ctx context.Context, sc store.Scope, id string, limit int) ([]store.Occurrence, error)
	onDueSchedules    func(ctx context.Context, now time.Time, limit int) ([]store.Due, error)
	onClaimOccurrence func(ctx context.Context, sc store.Scope, id string, due time.Time, owner string, now,
		until time.Time) (store.Claim, error)
	onBeginOccurrence  func(ctx context.Context, c store.Claim, now time.Time) error
	onRenewClaim       func(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error)
	onFinishOccurrence func(ctx context.Context, c store.Claim, o store.Occurrence, next time.Time,
		enabled bool) error
	onMoveSchedule func(ctx context.Context, sc store.Scope, id string, due, next time.Time, enabled bool) error
}

// plantSchedules returns db with a fault. replace sets the methods that have it.
func plantSchedules(db store.Schedules, replace func(f *schedules)) store.Schedules {
	f := &schedules{
		scheduleStore:      db,
		onPutSchedule:      db.PutSchedule,
		onSchedule:         db.Schedule,
		onSchedules:        db.Schedules,
		onDeleteSchedule:   db.DeleteSchedule,
		onOccurrences:      db.Occurrences,
		onDueSchedules:     db.DueSchedules,
		onClaimOccurrence:  db.ClaimOccurrence,
		onBeginOccurrence:  db.BeginOccurrence,
		onRenewClaim:       db.RenewClaim,
		onFinishOccurrence: db.FinishOccurrence,
		onMoveSchedule:     db.MoveSchedule,
	}
	replace(f)
	return f
}

func (f *schedules) PutSchedule(ctx context.Context, sc store.Scope, v store.Schedule) (store.Schedule, error) {
	return f.onPutSchedule(ctx, sc, v)
}

func (f *schedules) Schedule(ctx context.Context, sc store.Scope, id string) (store.Schedule, error) {
	return f.onSchedule(ctx, sc, id)
}

func (f *schedules) Schedules(ctx context.Context, sc store.Scope, p store.Page) ([]store.Schedule, error) {
	return f.onSchedules(ctx, sc, p)
}

func (f *schedules) DeleteSchedule(ctx context.Context, sc store.Scope, id string) error {
	return f.onDeleteSchedule(ctx, sc, id)
}

func (f *schedules) Occurrences(ctx context.Context, sc store.Scope, id string,
	limit int) ([]store.Occurrence, error) {
	return f.onOccurrences(ctx, sc, id, limit)
}

func (f *schedules) DueSchedules(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
	return f.onDueSchedules(ctx, now, limit)
}

func (f *schedules) ClaimOccurrence(ctx context.Context, sc store.Scope, id string, due time.Time,
	owner string, now, until time.Time) (store.Claim, error) {
	return f.onClaimOccurrence(ctx, sc, id, due, owner, now, until)
}

func (f *schedules) BeginOccurrence(ctx context.Context, c store.Claim, now time.Time) error {
	return f.onBeginOccurrence(ctx, c, now)
}

func (f *schedules) RenewClaim(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error) {
	return f.onRenewClaim(ctx, c, until)
}

func (f *schedules) FinishOccurrence(ctx context.Context, c store.Claim, o store.Occurrence, next time.Time,
	enabled bool) error {
	return f.onFinishOccurrence(ctx, c, o, next, enabled)
}

func (f *schedules) MoveSchedule(ctx context.Context, sc store.Scope, id string, due, next time.Time,
	enabled bool) error {
	return f.onMoveSchedule(ctx, sc, id, due, next, enabled)
}
