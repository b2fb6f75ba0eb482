package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

const scheduleColumns = "id, name, description, spec, zone, task, misfire, enabled, next, version, created, updated"

func scanSchedule(r *sql.Rows) (store.Schedule, error) {
	var v store.Schedule
	return v, r.Scan(scheduleFields(&v)...)
}

// scheduleFields returns the destinations of the columns of a schedule.
func scheduleFields(v *store.Schedule) []any {
	return []any{&v.ID, &v.Name, &v.Description, &v.When, &v.Zone, (*jsonField)(&v.Task), &v.Misfire, &v.Enabled, (*timeField)(&v.Next), &v.Version, (*timeField)(&v.Created), (*timeField)(&v.Updated)}
}

type (
	jsonField []byte
	timeField time.Time
)

// Scan reads a JSON value. Null gives nil.
func (f *jsonField) Scan(v any) error {
	if s, ok := v.(string); ok {
		*f = jsonField(s)
	}
	return nil
}

// Scan reads a time.
func (f *timeField) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%v is no time", v)
	}
	*f = timeField(moment(n))
	return nil
}

const ofSchedule = " from schedules where tenant = ? and user = ? and thread = ? and id = ?"

// PutSchedule stores a new schedule, or a change to the current version.
func (db *DB) PutSchedule(ctx context.Context, s store.Scope, v store.Schedule) (store.Schedule, error) {
	if v.ID == "" && v.Version == 0 {
		v.ID = rand.Text()[:12]
	}
	if err := valid(s, v.ID); err != nil {
		return v, err
	}
	task, err := jsonText("task", v.Task)
	if err != nil {
		return v, err
	}
	now := stamp(db.now())
	err = db.change(ctx, func(tx *sql.Tx) error {
		var have, created int64
		err := tx.QueryRowContext(ctx, "select version, created"+ofSchedule, s.Tenant, s.User, s.Thread, v.ID).Scan(&have, &created)
		switch {
		case errors.Is(err, sql.ErrNoRows) && v.Version == 0:
			created = now
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("schedule %s: %w", v.ID, store.ErrNotFound)
		case err != nil:
			return err
		case have != v.Version:
			return fmt.Errorf("schedule %s has version %d, not %d: %w", v.ID, have, v.Version, store.ErrConflict)
		}
		_, err = tx.ExecContext(ctx, `insert into schedules (tenant, user, thread, id, name, description, spec, zone, task, misfire, enabled, next, version, created, updated)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (tenant, user, thread, id) do update set name = excluded.name, description = excluded.description, spec = excluded.spec,
			zone = excluded.zone, task = excluded.task, misfire = excluded.misfire, enabled = excluded.enabled, next = excluded.next, version = excluded.version, updated = excluded.updated`,
			s.Tenant, s.User, s.Thread, v.ID, v.Name, v.Description, v.When, v.Zone, task, v.Misfire, v.Enabled, stamp(v.Next), have+1, created, now)
		v.Version, v.Created, v.Updated = have+1, moment(created), moment(now)
		return err
	})
	return v, err
}

// Schedule returns a schedule.
func (db *DB) Schedule(ctx context.Context, s store.Scope, id string) (store.Schedule, error) {
	if err := valid(s, id); err != nil {
		return store.Schedule{}, err
	}
	return one(ctx, db.read, "schedule "+id, scanSchedule, "select "+scheduleColumns+ofSchedule, s.Tenant, s.User, s.Thread, id)
}

// Schedules lists schedules by ID.
func (db *DB) Schedules(ctx context.Context, s store.Scope, p store.Page) ([]store.Schedule, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.read, scanSchedule, "select "+scheduleColumns+" from schedules where tenant = ? and user = ? and thread = ? and id > ? order by id limit ?",
		s.Tenant, s.User, s.Thread, p.After, p.Size())
}

// DeleteSchedule deletes a schedule with its occurrences.
func (db *DB) DeleteSchedule(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete"+ofSchedule, s.Tenant, s.User, s.Thread, id)
	return changed(res, err, "schedule "+id)
}

func scanOccurrence(r *sql.Rows) (o store.Occurrence, err error) {
	err = r.Scan(&o.Schedule, (*timeField)(&o.Due), &o.Owner, &o.State, &o.Run, &o.Text, (*timeField)(&o.Began), (*timeField)(&o.Ended))
	return o, err
}

// Occurrences lists the occurrences of a schedule, the newest first.
func (db *DB) Occurrences(ctx context.Context, s store.Scope, id string, limit int) ([]store.Occurrence, error) {
	if _, err := db.Schedule(ctx, s, id); err != nil {
		return nil, err
	}
	return list(ctx, db.read, scanOccurrence, `select v.id, o.due, o.owner, o.state, o.run, o.text, o.began, o.ended from occurrences o join schedules v on v.n = o.schedule
		where v.tenant = ? and v.user = ? and v.thread = ? and v.id = ? order by o.due desc limit ?`, s.Tenant, s.User, s.Thread, id, store.Page{Limit: limit}.Size())
}

// DueSchedules lists the enabled schedules of all scopes that are due.
func (db *DB) DueSchedules(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
	scan := func(r *sql.Rows) (d store.Due, err error) {
		err = r.Scan(append([]any{&d.Scope.Tenant, &d.Scope.User, &d.Scope.Thread}, scheduleFields(&d.Schedule)...)...)
		return d, err
	}
	return list(ctx, db.read, scan, "select tenant, user, thread, "+scheduleColumns+" from schedules where enabled = 1 and next > 0 and next <= ? order by next, n limit ?",
		stamp(now), store.Page{Limit: limit}.Size())
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
	err := db.change(ctx, func(tx *sql.Tx) error {
		var n, ends int64
		var state string
		if err := tx.QueryRowContext(ctx, "select n"+ofSchedule, s.Tenant, s.User, s.Thread, id).Scan(&n); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = fmt.Errorf("schedule %s: %w", id, store.ErrNotFound)
			}
			return err
		}
		err := tx.QueryRowContext(ctx, "select fence, until, state from occurrences where schedule = ? and due = ?", n, stamp(due)).Scan(&c.Fence, &ends, &state)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			c.Fence = 1
			_, err = tx.ExecContext(ctx, "insert into occurrences (schedule, due, owner, fence, until, state) values (?, ?, ?, 1, ?, ?)", n, stamp(due), owner, stamp(until), store.OccurrenceClaimed)
			return err
		case err != nil:
			return err
		case state != store.OccurrenceClaimed && state != store.OccurrenceBegun:
			return over
		case ends > stamp(now):
			return fmt.Errorf("schedule %s at %s is claimed by another runner: %w", id, at, store.ErrConflict)
		case state == store.OccurrenceBegun:
			lost = over
			_, err = tx.ExecContext(ctx, "update occurrences set state = ?, text = ? where schedule = ? and due = ?", store.OccurrenceUnknown, "its runner disappeared after it had begun: it may have happened", n, stamp(due))
			return err
		}
		c.Fence++
		_, err = tx.ExecContext(ctx, "update occurrences set owner = ?, fence = ?, until = ? where schedule = ? and due = ?", owner, c.Fence, stamp(until), n, stamp(due))
		return err
	})
	if err == nil {
		err = lost
	}
	return c, err
}

// held changes the occurrence of a claim if the claim is valid. set and its arguments define the
// change.
func held(ctx context.Context, tx *sql.Tx, c store.Claim, set, state string, args ...any) error {
	where := ` where due = ? and owner = ? and fence = ? and state in (` + state + `) and schedule = (select n from schedules where tenant = ? and user = ? and thread = ? and id = ?)`
	res, err := tx.ExecContext(ctx, "update occurrences set "+set+where, append(args, stamp(c.Due), c.Owner, c.Fence, c.Scope.Tenant, c.Scope.User, c.Scope.Thread, c.Schedule)...)
	if err = changed(res, err, ""); errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("the claim to schedule %s at %s was lost: %w", c.Schedule, c.Due.UTC().Format(time.RFC3339), store.ErrConflict)
	}
	return err
}

// BeginOccurrence records that the execution starts now.
func (db *DB) BeginOccurrence(ctx context.Context, c store.Claim, now time.Time) error {
	return db.change(ctx, func(tx *sql.Tx) error {
		return held(ctx, tx, c, "state = '"+store.OccurrenceBegun+"', began = ?", "'"+store.OccurrenceClaimed+"'", stamp(now))
	})
}

// RenewClaim changes the end of a claim.
func (db *DB) RenewClaim(ctx context.Context, c store.Claim, until time.Time) (store.Claim, error) {
	c.Until = until
	return c, db.change(ctx, func(tx *sql.Tx) error {
		return held(ctx, tx, c, "until = ?", "'"+store.OccurrenceClaimed+"', '"+store.OccurrenceBegun+"'", stamp(until))
	})
}

// FinishOccurrence stores the result of an occurrence and sets the schedule's next time.
func (db *DB) FinishOccurrence(ctx context.Context, c store.Claim, o store.Occurrence, next time.Time, enabled bool) error {
	switch o.State {
	case store.OccurrenceDone, store.OccurrenceFailed, store.OccurrenceSkipped, store.OccurrenceUnknown:
	default:
		return fmt.Errorf("an occurrence does not end as %q", o.State)
	}
	return db.change(ctx, func(tx *sql.Tx) error {
		if err := held(ctx, tx, c, "state = ?, run = ?, text = ?, ended = ?", "'"+store.OccurrenceClaimed+"', '"+store.OccurrenceBegun+"', '"+store.OccurrenceUnknown+"'", o.State, o.Run, o.Text, stamp(o.Ended)); err != nil {
			return err
		}
		return db.move(ctx, tx, c.Scope, c.Schedule, c.Due, next, enabled)
	})
}

// MoveSchedule sets the next time of a schedule that is due.
func (db *DB) MoveSchedule(ctx context.Context, s store.Scope, id string, due, next time.Time, enabled bool) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.change(ctx, func(tx *sql.Tx) error { return db.move(ctx, tx, s, id, due, next, enabled) })
}

func (db *DB) move(ctx context.Context, tx *sql.Tx, s store.Scope, id string, due, next time.Time, enabled bool) error {
	_, err := tx.ExecContext(ctx, "update schedules set next = ?, enabled = enabled and ?, version = version + 1, updated = ? where tenant = ? and user = ? and thread = ? and id = ? and next <= ?",
		stamp(next), enabled, stamp(db.now()), s.Tenant, s.User, s.Thread, id, stamp(due))
	return err
}
