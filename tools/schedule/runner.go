package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

// What is done about times that were missed.
const (
	MisfireOnce = "once" // the last of them is done, late; the default
	MisfireSkip = "skip" // none of them is done
	MisfireAll  = "all"  // each is done, up to 100 of them
)

// Runner does what is due. Several runners, in several processes, may work over one store: each occurrence is done by one of them, and by none a second time.
type Runner struct {
	DB store.Schedules
	// Do does one occurrence. ctx has the schedule's scope, and ends when the claim to the occurrence is lost. What came of it is kept with the occurrence;
	// an error too, which makes it a failed one. Work.Do is one.
	Do func(ctx context.Context, d store.Due, at time.Time) (Done, error)

	Owner string        // who this runner is, unlike any other; "": a random name
	Lease time.Duration // how long a claim holds without a sign of life; 0: 1 minute
	Late  time.Duration // from when on a time counts as missed; 0: 1 minute
	Poll  time.Duration // how often it looks; 0: 10 s
	// Stop, when it is closed, lets the runner end well: what is under way is done, nothing else is begun, and Run returns nil. Nil: it is not stopped so.
	Stop <-chan struct{}
	// Report is told of what went wrong beside the occurrences: a store that cannot be read. Nil: nobody is told.
	Report func(error)
}

// Done is what came of an occurrence.
type Done struct {
	Text string // for a person
	Run  string // the ID of the run that was kept of it; "": none was
}

// Run works until ctx ends, and returns its cause; what is under way then is cancelled. See Stop for an end that waits.
func (r *Runner) Run(ctx context.Context) error {
	poll := r.Poll
	if poll <= 0 {
		poll = 10 * time.Second
	}
	tick := time.NewTicker(poll)
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

// Tick does what is due at now, and returns when it is done. The error joins those of the store; what failed within an occurrence is kept there.
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

// ended reports whether nothing more is to be begun.
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

// catchUp goes through the times of one schedule up to now.
func (r *Runner) catchUp(ctx context.Context, d store.Due, now time.Time) error {
	v := &d.Schedule
	when, err := ParseWhen(v.When, v.Zone)
	if err != nil { // it was kept by another version, or another program
		return errors.Join(fmt.Errorf("schedule %s is turned off: %w", v.ID, err), r.DB.MoveSchedule(ctx, d.Scope, v.ID, v.Next, time.Time{}, false))
	}
	late := r.Late
	if late <= 0 {
		late = time.Minute
	}
	for at := v.Next; !at.IsZero() && !at.After(now) && !r.ended(ctx); {
		next := when.Next(at)
		missed := at.Before(now.Add(-late))
		skip := missed && (v.Misfire == MisfireSkip || v.Misfire != MisfireAll && !next.IsZero() && !next.After(now))
		if skip { // straight on to the last of them, or past all
			for !next.IsZero() && next.Before(now.Add(-late)) {
				if after := when.Next(next); v.Misfire == MisfireSkip || !after.IsZero() && !after.After(now) {
					next = after
				} else {
					break
				}
			}
			if err := r.DB.MoveSchedule(ctx, d.Scope, v.ID, at, next, !next.IsZero()); err != nil {
				return err
			}
		} else if ours, err := r.occurrence(ctx, d, at, now, next); err != nil || !ours {
			return err
		}
		at = next
	}
	return nil
}

// occurrence does one time of a schedule. It is not ours when somebody else is at it.
func (r *Runner) occurrence(ctx context.Context, d store.Due, at, now, next time.Time) (ours bool, err error) {
	lease := r.Lease
	if lease <= 0 {
		lease = time.Minute
	}
	if r.Owner == "" {
		r.Owner = rand.Text()[:16]
	}
	claim, err := r.DB.ClaimOccurrence(ctx, d.Scope, d.Schedule.ID, at, r.Owner, now, now.Add(lease))
	switch {
	case errors.Is(err, store.ErrOver):
		return true, r.DB.MoveSchedule(ctx, d.Scope, d.Schedule.ID, at, next, !next.IsZero())
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := r.DB.BeginOccurrence(ctx, claim, now); errors.Is(err, store.ErrConflict) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	o := store.Occurrence{State: store.OccurrenceDone}
	done, err := r.work(ctx, d, at, claim, lease)
	o.Text, o.Run, o.Ended = done.Text, done.Run, now
	if end := time.Now(); end.After(now) {
		o.Ended = end
	}
	if err != nil {
		o.State, o.Text = store.OccurrenceFailed, err.Error()
		if ctx.Err() != nil {
			o.State, o.Text = store.OccurrenceUnknown, "interrupted: it may have happened"
		}
	}
	err = r.DB.FinishOccurrence(context.WithoutCancel(ctx), claim, o, next, !next.IsZero())
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return false, nil // somebody has deleted the schedule meanwhile
	}
	return true, err
}

// work calls Do, and keeps the claim alive meanwhile.
func (r *Runner) work(ctx context.Context, d store.Due, at time.Time, claim store.Claim, lease time.Duration) (done Done, err error) {
	ctx, cancel := context.WithCancelCause(store.WithScope(ctx, d.Scope))
	defer cancel(nil)
	over := make(chan struct{})
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if _, err := r.DB.RenewClaim(ctx, claim, time.Now().Add(lease)); errors.Is(err, store.ErrConflict) {
					cancel(fmt.Errorf("the claim was lost: %w", err))
					return
				}
			}
		}
	}()
	defer func() {
		close(over)
		<-kept
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return r.Do(ctx, d, at)
}
