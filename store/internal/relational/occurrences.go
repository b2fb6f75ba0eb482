package relational

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

func scanOccurrence(r Row) (o store.Occurrence, err error) {
	err = r.Scan(&o.Schedule, (*timeField)(&o.Due), &o.Owner, &o.State, &o.Run, &o.Text, (*timeField)(&o.Began),
		(*timeField)(&o.Ended))
	return o, err
}

// Occurrences lists the occurrences of a schedule, the newest first.
func (db *DB) Occurrences(ctx context.Context, s store.Scope, id string, limit int) ([]store.Occurrence, error) {
	if _, err := db.Schedule(ctx, s, id); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scanOccurrence, `select v.id, o.due, o.owner, o.state, o.run, o.text, o.began, o.ended
		from occurrences o join schedules v on v.n = o.schedule
		where v.tenant = ? and v.USER = ? and v.thread = ? and v.id = ? order by o.due desc limit ?`,
		s.Tenant, s.User, s.Thread, id, store.Page{Limit: limit}.Size())
}

// ClaimOccurrence claims an occurrence.
func (db *DB) ClaimOccurrence(ctx context.Context, s store.Scope, id string, due time.Time, owner string, now,
	until time.Time) (store.Claim, error) {
	c := store.Claim{Scope: s, Schedule: id, Due: due, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return c, err
	}
	at := due.UTC().Format(time.RFC3339)
	over := fmt.Errorf("schedule %s at %s is %w", id, at, store.ErrOver)

	var lost error // returned although the transaction is committed
	err := db.changeSchedule(ctx, s, id, func(tx Conn) error {
		n, err := number(ctx, tx, "schedule "+id, "select n"+ofSchedule, s.Tenant, s.User, s.Thread, id)
		if err != nil {
			return err
		}

		var ends int64
		state, err := one(ctx, tx, "occurrence", func(r Row) (state string, err error) {
			err = r.Scan(&c.Fence, &ends, &state)
			return state, err
		}, "select fence, until, state from occurrences where schedule = ? and due = ?", n, stamp(due))
		switch {
		case errors.Is(err, store.ErrNotFound):
			c.Fence = 1
			_, err = tx.Exec(ctx, `insert into occurrences (schedule, due, owner, fence, until, state)
				values (?, ?, ?, 1, ?, ?)`,
				n, stamp(due), owner, stamp(until), store.OccurrenceClaimed)
			return err
		case err != nil:
			return err
		case state != store.OccurrenceClaimed && state != store.OccurrenceBegun:
			return over
		case ends > stamp(now):
			return fmt.Errorf("schedule %s at %s is claimed by another runner: %w", id, at, store.ErrConflict)
		case state == store.OccurrenceBegun:
			lost = over
			_, err = tx.Exec(ctx, "update occurrences set state = ?, text = ? where schedule = ? and due = ?",
				store.OccurrenceUnknown, "its runner disappeared after it had begun: it may have happened", n, stamp(due))
			return err
		}

		c.Fence++
		_, err = tx.Exec(ctx, "update occurrences set owner = ?, fence = ?, until = ? where schedule = ? and due = ?",
			owner, c.Fence, stamp(until), n, stamp(due))
		return err
	})
	if err == nil {
		err = lost
	}
	return c, err
}

// The states in which the owner of a claim may change an occurrence.
const (
	claimed    = "'" + store.OccurrenceClaimed + "'"
	unfinished = claimed + ", '" + store.OccurrenceBegun + "'"
)

// changeClaimed changes the occurrence of a claim if the claim is valid and the occurrence is in
// one of the states. set and its arguments define the change. After it, then runs in the same
// transaction; nil means nothing.
func (db *DB) changeClaimed(ctx context.Context, c store.Claim, states string, then func(tx Conn) error, set string,
	args ...any) error {
	if err := valid(c.Scope, c.Schedule, c.Owner); err != nil {
		return err
	}
	return db.changeSchedule(ctx, c.Scope, c.Schedule, func(tx Conn) error {
		at := c.Due.UTC().Format(time.RFC3339)
		lost := fmt.Errorf("the claim to schedule %s at %s was lost: %w", c.Schedule, at, store.ErrConflict)
		err := change(ctx, tx, lost, "update occurrences set "+set+`
			where due = ? and owner = ? and fence = ? and state in (`+states+`)
			and schedule = (select n`+ofSchedule+")",
			append(args, stamp(c.Due), c.Owner, c.Fence, c.Scope.Tenant, c.Scope.User, c.Scope.Thread, c.Schedule)...)
		if err != nil || then == nil {
			return err
		}
		return then(tx)
	})
}

// BeginOccurrence records that the execution starts now.
func (db *DB) BeginOccurrence(ctx context.Context, c store.Claim, now time.Time) error {
	return db.changeClaimed(ctx, c, claimed, nil, "state = ?, began = ?", store.OccurrenceBegun, stamp(now))
}

// RenewClaim changes the end of a claim.
func (db *DB) RenewClaim(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error) {
	c.Until = until
	return c, db.changeClaimed(ctx, c, unfinished, nil, "until = ?", stamp(until))
}

// FinishOccurrence stores the result of an occurrence and sets the schedule's next time.
func (db *DB) FinishOccurrence(ctx context.Context, c store.Claim, o store.Occurrence, next time.Time,
	enabled bool) error {
	switch o.State {
	case store.OccurrenceDone, store.OccurrenceFailed, store.OccurrenceSkipped, store.OccurrenceUnknown:
	default:
		return fmt.Errorf("an occurrence does not end as %q", o.State)
	}
	db.plain(&o.Run, &o.Text)
	return db.changeClaimed(ctx, c, unfinished+", '"+store.OccurrenceUnknown+"'", func(tx Conn) error {
		return db.move(ctx, tx, c.Scope, c.Schedule, c.Due, next, enabled)
	}, "state = ?, run = ?, text = ?, ended = ?", o.State, o.Run, o.Text, stamp(o.Ended))
}
