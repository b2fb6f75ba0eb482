package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

// The values of Misfire: what happens to missed times.
const (
	MisfireOnce = "once" // the last missed time runs late; the default
	MisfireSkip = "skip" // no missed time runs
	MisfireAll  = "all"  // every missed time runs, up to 100
)

// Runner executes schedules at their times. Several runners, in several processes, may share one
// store: each occurrence is executed by one of them and never a second time.
type Runner struct {
	DB store.Schedules // where schedules, claims and occurrences are stored
	// Do executes one occurrence. ctx carries the schedule's scope and ends when the claim to the
	// occurrence is lost. The result is stored with the occurrence. An error is stored as well and
	// marks the occurrence as failed. Work.Do is an implementation.
	Do func(ctx context.Context, d store.Due, at time.Time) (Done, error)

	Owner string        // unique name of this runner; empty means a random name
	Lease time.Duration // how long a claim lasts without renewal; 0 means 1 minute
	Late  time.Duration // delay from which a time counts as missed; 0 means 1 minute
	Poll  time.Duration // interval between checks; 0 means 10 s
	// Stop ends the runner gracefully when it is closed: running occurrences finish, no other
	// occurrence starts, and Run returns nil. Nil means that there is no graceful stop.
	Stop <-chan struct{}
	// Report receives errors that belong to no occurrence, such as a store that cannot be read. Nil
	// means that they are dropped.
	Report func(error)
}

// Done is the result of an occurrence.
type Done struct {
	Text string // for a person
	Run  string // ID of the run that was stored; empty means none
}

// Run executes schedules until ctx ends, and returns its cause. Running occurrences are cancelled
// then. Use Stop for an end that waits for them.
func (r *Runner) Run(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(max(r.Poll, 0), 10*time.Second))
	defer tick.Stop()
	for {
		if err := r.Tick(ctx, time.Now()); err != nil && ctx.Err() == nil && r.Report != nil {
			r.Report(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.Stop:
			return nil
		case <-tick.C:
		}
	}
}

// Tick executes the occurrences that are due at now and returns when they have ended. The error
// joins the errors of the store. The error of an occurrence is stored with it instead.
func (r *Runner) Tick(ctx context.Context, now time.Time) error {
	due, err := r.DB.DueSchedules(ctx, now, 100)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range due {
		if r.ended(ctx) {
			break
		}
		errs = append(errs, r.catchUp(ctx, d, now))
	}
	return errors.Join(errs...)
}

// ended reports whether no further occurrence may start.
func (r *Runner) ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-r.Stop:
		return true
	default:
		return false
	}
}

// catchUp executes the times of one schedule up to now.
func (r *Runner) catchUp(ctx context.Context, d store.Due, now time.Time) error {
	v := &d.Schedule
	when, err := ParseWhen(v.When, v.Zone)
	if err != nil { // it was stored by another version, or by another program
		off := fmt.Errorf("schedule %s is turned off: %w", v.ID, err)
		return errors.Join(off, r.DB.MoveSchedule(ctx, d.Scope, v.ID, v.Next, time.Time{}, false))
	}

	late := now.Add(-cmp.Or(max(r.Late, 0), time.Minute)) // times before it were missed
	for at := v.Next; !at.IsZero() && !at.After(now) && !r.ended(ctx); {
		next := when.Next(at)
		if at.Before(late) && skips(v.Misfire, next, now) {
			// Skip to the last missed time, or past all of them.
			for !next.IsZero() && next.Before(late) {
				after := when.Next(next)
				if !skips(v.Misfire, after, now) {
					break
				}
				next = after
			}
			if err := r.DB.MoveSchedule(ctx, d.Scope, v.ID, at, next, !next.IsZero()); err != nil {
				return err
			}
			at = next
			continue
		}

		ours, err := r.occurrence(ctx, d, at, now, next)
		if err != nil || !ours {
			return err
		}
		at = next
	}
	return nil
}

// skips reports whether a missed time that next follows is skipped: all are, or all but the last.
func skips(misfire string, next, now time.Time) bool {
	switch misfire {
	case MisfireSkip:
		return true
	case MisfireAll:
		return false
	}
	return !next.IsZero() && !next.After(now)
}

// occurrence executes one time of a schedule. ours is false if another runner has claimed it.
func (r *Runner) occurrence(ctx context.Context, d store.Due, at, now, next time.Time) (ours bool, err error) {
	lease := cmp.Or(max(r.Lease, 0), time.Minute)
	r.Owner = cmp.Or(r.Owner, rand.Text()[:16])
	claim, err := r.DB.ClaimOccurrence(ctx, d.Scope, d.Schedule.ID, at, r.Owner, now, now.Add(lease))
	switch {
	// Another runner has completed it, and ended before it moved the schedule.
	case errors.Is(err, store.ErrOver):
		return true, r.DB.MoveSchedule(ctx, d.Scope, d.Schedule.ID, at, next, !next.IsZero())
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	// Recorded before the work: if this process ends now, the next runner knows that it may have
	// happened.
	err = r.DB.BeginOccurrence(ctx, claim, now)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	o := store.Occurrence{State: store.OccurrenceDone}
	done, err := r.work(ctx, d, at, claim, lease)
	o.Text = done.Text
	o.Run = done.Run
	o.Ended = now
	if end := time.Now(); end.After(now) {
		o.Ended = end
	}
	if err != nil {
		o.State = store.OccurrenceFailed
		o.Text = err.Error()
		// The work was cancelled at an unknown point, and is not repeated without a person's
		// decision.
		if ctx.Err() != nil {
			o.State = store.OccurrenceUnknown
			o.Text = "interrupted: it may have happened"
		}
	}

	err = r.DB.FinishOccurrence(context.WithoutCancel(ctx), claim, o, next, !next.IsZero())
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return false, nil // the schedule was deleted in the meantime
	}
	return true, err
}

// work calls Do and renews the claim meanwhile.
func (r *Runner) work(ctx context.Context, d store.Due, at time.Time, claim store.Claim,
	lease time.Duration) (done Done, err error) {
	ctx, cancel := context.WithCancelCause(store.WithScope(ctx, d.Scope))
	defer cancel(nil)

	over := make(chan struct{})
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		// A claim that is lost belongs to another runner. Both must not work.
		if err := r.renew(ctx, claim, lease, over); err != nil {
			cancel(err)
		}
	}()
	defer func() {
		close(over)
		<-renewed
		// One task that panics must not end all others.
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return r.Do(ctx, d, at)
}

// renew renews a claim until over is closed. The error says that another runner has claimed it.
func (r *Runner) renew(ctx context.Context, claim store.Claim, lease time.Duration, over chan struct{}) error {
	tick := time.NewTicker(lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-tick.C:
			_, err := r.DB.RenewClaim(ctx, claim, time.Now().Add(lease))
			if errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("the claim was lost: %w", err)
			}
		}
	}
}
