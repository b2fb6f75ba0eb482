package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

const scheduleColumns = "id, name, description, spec, zone, task, misfire, enabled, next, version, created, updated"

func scanSchedule(r pgx.Rows) (store.Schedule, error) {
	d, err := scanDue(r)
	return d.Schedule, err
}

// scanDue reads a schedule after the requested columns of its scope.
func scanDue(r pgx.Rows, scope ...any) (d store.Due, err error) {
	v := &d.Schedule
	var task *string
	var next, created, updated int64
	err = r.Scan(append(scope, &v.ID, &v.Name, &v.Description, &v.When, &v.Zone, &task, &v.Misfire, &v.Enabled, &next, &v.Version, &created, &updated)...)
	v.Task, v.Next, v.Created, v.Updated = raw(task), moment(next), moment(created), moment(updated)
	return d, err
}

const ofSchedule = " from schedules where tenant = $1 and userid = $2 and thread = $3 and id = $4"

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
	v.Name, v.Description, v.When, v.Zone, v.Misfire = plain(v.Name), plain(v.Description), plain(v.When), plain(v.Zone), plain(v.Misfire)
	err = db.change(ctx, lock("schedule", s, v.ID), func(tx pgx.Tx) error {
		var have, created int64
		err := tx.QueryRow(ctx, "select version, created"+ofSchedule, s.Tenant, s.User, s.Thread, v.ID).Scan(&have, &created)
		switch {
		case errors.Is(err, pgx.ErrNoRows) && v.Version == 0:
			created = now
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("schedule %s: %w", v.ID, store.ErrNotFound)
		case err != nil:
			return err
		case have != v.Version:
			return fmt.Errorf("schedule %s has version %d, not %d: %w", v.ID, have, v.Version, store.ErrConflict)
		}
		_, err = tx.Exec(ctx, `insert into schedules (tenant, userid, thread, id, name, description, spec, zone, task, misfire, enabled, next, version, created, updated)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) on conflict (tenant, userid, thread, id) do update set name = excluded.name, description = excluded.description, spec = excluded.spec,
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
	return one(ctx, db.pool, "schedule "+id, scanSchedule, "select "+scheduleColumns+ofSchedule, s.Tenant, s.User, s.Thread, id)
}

// Schedules lists schedules by ID.
func (db *DB) Schedules(ctx context.Context, s store.Scope, p store.Page) ([]store.Schedule, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanSchedule, "select "+scheduleColumns+" from schedules where tenant = $1 and userid = $2 and thread = $3 and id > $4 order by id limit $5",
		s.Tenant, s.User, s.Thread, plain(p.After), p.Size())
}

// DeleteSchedule deletes a schedule with its occurrences.
func (db *DB) DeleteSchedule(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.change(ctx, lock("schedule", s, id), func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "delete"+ofSchedule, s.Tenant, s.User, s.Thread, id)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("schedule %s: %w", id, store.ErrNotFound)
		}
		return err
	})
}

// DueSchedules lists the enabled schedules of all scopes that are due.
func (db *DB) DueSchedules(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
	scan := func(r pgx.Rows) (store.Due, error) {
		var s store.Scope
		d, err := scanDue(r, &s.Tenant, &s.User, &s.Thread)
		d.Scope = s
		return d, err
	}
	return list(ctx, db.pool, scan, "select tenant, userid, thread, "+scheduleColumns+" from schedules where enabled and next > 0 and next <= $1 order by next, n limit $2",
		stamp(now), store.Page{Limit: limit}.Size())
}

// MoveSchedule sets the next time of a schedule that is due.
func (db *DB) MoveSchedule(ctx context.Context, s store.Scope, id string, due, next time.Time, enabled bool) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.change(ctx, lock("schedule", s, id), func(tx pgx.Tx) error { return db.move(ctx, tx, s, id, due, next, enabled) })
}

func (db *DB) move(ctx context.Context, tx pgx.Tx, s store.Scope, id string, due, next time.Time, enabled bool) error {
	_, err := tx.Exec(ctx, "update schedules set next = $5, enabled = enabled and $6, version = version + 1, updated = $7 where tenant = $1 and userid = $2 and thread = $3 and id = $4 and next <= $8",
		s.Tenant, s.User, s.Thread, id, stamp(next), enabled, stamp(db.now()), stamp(due))
	return err
}
