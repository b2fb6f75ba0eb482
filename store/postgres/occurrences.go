package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

func scanOccurrence(r pgx.Rows) (o store.Occurrence, err error) {
	var due, began, ended int64
	err = r.Scan(&o.Schedule, &due, &o.Owner, &o.State, &o.Run, &o.Text, &began, &ended)
	o.Due, o.Began, o.Ended = moment(due), moment(began), moment(ended)
	return o, err
}

// Occurrences lists the occurrences of a schedule, the newest first.
func (db *DB) Occurrences(ctx context.Context, s store.Scope, id string, limit int) ([]store.Occurrence, error) {
	if _, err := db.Schedule(ctx, s, id); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanOccurrence, `select v.id, o.due, o.owner, o.state, o.run, o.text, o.began, o.ended from occurrences o join schedules v on v.n = o.schedule
		where v.tenant = $1 and v.userid = $2 and v.thread = $3 and v.id = $4 order by o.due desc limit $5`, s.Tenant, s.User, s.Thread, id, store.Page{Limit: limit}.Size())
}

// ClaimOccurrence claims an occurrence.
func (db *DB) ClaimOccurrence(ctx context.Context, s store.Scope, id string, due time.Time, owner string, now, until time.Time) (store.Claim, error) {
	c := store.Claim{Scope: s, Schedule: id, Due: due, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return c, err
	}
	at := due.UTC().Format(time.RFC3339)
	over := fmt.Errorf("schedule %s at %s is %w", id, at, store.ErrOver)
	var lost error // returned although the transaction is committed
	err := db.change(ctx, lock("schedule", s, id), func(tx pgx.Tx) error {
		n, err := one(ctx, tx, "schedule "+id, value[int64], "select n"+ofSchedule, s.Tenant, s.User, s.Thread, id)
		if err != nil {
			return err
		}
		var ends int64
		var state string
		err = tx.QueryRow(ctx, "select fence, until, state from occurrences where schedule = $1 and due = $2", n, stamp(due)).Scan(&c.Fence, &ends, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			c.Fence = 1
			_, err = tx.Exec(ctx, "insert into occurrences (schedule, due, owner, fence, until, state) values ($1, $2, $3, 1, $4, $5)", n, stamp(due), owner, stamp(until), store.OccurrenceClaimed)
			return err
		case err != nil:
			return err
		case state != store.OccurrenceClaimed && state != store.OccurrenceBegun:
			return over
		case ends > stamp(now):
			return fmt.Errorf("schedule %s at %s is claimed by another runner: %w", id, at, store.ErrConflict)
		case state == store.OccurrenceBegun:
			lost = over
			_, err = tx.Exec(ctx, "update occurrences set state = $3, text = $4 where schedule = $1 and due = $2", n, stamp(due), store.OccurrenceUnknown, "its runner disappeared after it had begun: it may have happened")
			return err
		}
		c.Fence++
		_, err = tx.Exec(ctx, "update occurrences set owner = $3, fence = $4, until = $5 where schedule = $1 and due = $2", n, stamp(due), owner, c.Fence, stamp(until))
		return err
	})
	if err == nil {
		err = lost
	}
	return c, err
}

// held changes the occurrence of a claim if the claim is valid. set and its arguments, from $9 on,
// define the change.
func held(ctx context.Context, tx pgx.Tx, c store.Claim, set string, states []string, args ...any) error {
	if err := valid(c.Scope, c.Schedule, c.Owner); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, "update occurrences set "+set+` where schedule = (select n`+ofSchedule+`) and due = $5 and owner = $6 and fence = $7 and state = any($8)`,
		append([]any{c.Scope.Tenant, c.Scope.User, c.Scope.Thread, c.Schedule, stamp(c.Due), c.Owner, c.Fence, states}, args...)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("the claim to schedule %s at %s was lost: %w", c.Schedule, c.Due.UTC().Format(time.RFC3339), store.ErrConflict)
	}
	return err
}

// BeginOccurrence records that the execution starts now.
func (db *DB) BeginOccurrence(ctx context.Context, c store.Claim, now time.Time) error {
	return db.change(ctx, lock("schedule", c.Scope, c.Schedule), func(tx pgx.Tx) error {
		return held(ctx, tx, c, "state = $9, began = $10", []string{store.OccurrenceClaimed}, store.OccurrenceBegun, stamp(now))
	})
}

// RenewClaim changes the end of a claim.
func (db *DB) RenewClaim(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error) {
	c.Until = until
	return c, db.change(ctx, lock("schedule", c.Scope, c.Schedule), func(tx pgx.Tx) error {
		return held(ctx, tx, c, "until = $9", []string{store.OccurrenceClaimed, store.OccurrenceBegun}, stamp(until))
	})
}

// FinishOccurrence stores the result of an occurrence and sets the schedule's next time.
func (db *DB) FinishOccurrence(ctx context.Context, c store.Claim, o store.Occurrence, next time.Time, enabled bool) error {
	switch o.State {
	case store.OccurrenceDone, store.OccurrenceFailed, store.OccurrenceSkipped, store.OccurrenceUnknown:
	default:
		return fmt.Errorf("an occurrence does not end as %q", o.State)
	}
	return db.change(ctx, lock("schedule", c.Scope, c.Schedule), func(tx pgx.Tx) error {
		if err := held(ctx, tx, c, "state = $9, run = $10, text = $11, ended = $12", []string{store.OccurrenceClaimed, store.OccurrenceBegun, store.OccurrenceUnknown},
			o.State, plain(o.Run), plain(o.Text), stamp(o.Ended)); err != nil {
			return err
		}
		return db.move(ctx, tx, c.Scope, c.Schedule, c.Due, next, enabled)
	})
}
