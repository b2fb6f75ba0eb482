package relational

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

const (
	scheduleColumns = "id, name, description, spec, zone, task, misfire, enabled, next, version, created, updated"
	ofSchedule      = " from schedules where tenant = ? and USER = ? and thread = ? and id = ?"
)

func scanSchedule(r Row) (store.Schedule, error) {
	var v store.Schedule
	return v, r.Scan(scheduleFields(&v)...)
}

// scheduleFields returns the destinations of the columns of a schedule.
func scheduleFields(v *store.Schedule) []any {
	return []any{&v.ID, &v.Name, &v.Description, &v.When, &v.Zone, (*jsonField)(&v.Task), &v.Misfire, &v.Enabled,
		(*timeField)(&v.Next), &v.Version, (*timeField)(&v.Created), (*timeField)(&v.Updated)}
}

func (db *DB) changeSchedule(ctx context.Context, s store.Scope, id string, fn func(tx Conn) error) error {
	return db.backend.Change(ctx, Item{"schedule", s, id}, fn)
}

// PutSchedule stores a new schedule, or a change to the current version.
func (db *DB) PutSchedule(ctx context.Context, s store.Scope, v store.Schedule) (store.Schedule, error) {
	if v.ID == "" && v.Version == 0 {
		v.ID = rand.Text()[:12]
	}
	if err := valid(s, v.ID); err != nil {
		return v, err
	}
	task, err := db.jsonText("task", v.Task)
	if err != nil {
		return v, err
	}
	now := stamp(db.backend.Now())
	db.plain(&v.Name, &v.Description, &v.When, &v.Zone, &v.Misfire)
	err = db.changeSchedule(ctx, s, v.ID, func(tx Conn) error {
		old, err := one(ctx, tx, "schedule "+v.ID, scanSchedule, "select "+scheduleColumns+ofSchedule,
			s.Tenant, s.User, s.Thread, v.ID)
		switch {
		case errors.Is(err, store.ErrNotFound) && v.Version == 0:
			old.Created = moment(now)
		case err != nil:
			return err
		case old.Version != v.Version:
			return fmt.Errorf("schedule %s has version %d, not %d: %w", v.ID, old.Version, v.Version, store.ErrConflict)
		}

		v.Version = old.Version + 1
		v.Created = old.Created
		v.Updated = moment(now)
		_, err = tx.Exec(ctx, `insert into schedules (tenant, USER, thread, id, name, description, spec, zone, task,
				misfire, enabled, next, version, created, updated)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			on conflict (tenant, USER, thread, id) do update set name = excluded.name,
				description = excluded.description, spec = excluded.spec, zone = excluded.zone,
				task = excluded.task, misfire = excluded.misfire, enabled = excluded.enabled,
				next = excluded.next, version = excluded.version, updated = excluded.updated`,
			s.Tenant, s.User, s.Thread, v.ID, v.Name, v.Description, v.When, v.Zone, task, v.Misfire, v.Enabled,
			stamp(v.Next), v.Version, stamp(v.Created), now)
		return err
	})
	return v, err
}

// Schedule returns a schedule.
func (db *DB) Schedule(ctx context.Context, s store.Scope, id string) (store.Schedule, error) {
	return item(ctx, db, s, "schedule", id, scanSchedule, "select "+scheduleColumns+ofSchedule)
}

// Schedules lists schedules by ID.
func (db *DB) Schedules(ctx context.Context, s store.Scope, p store.Page) ([]store.Schedule, error) {
	return page(ctx, db, s, p, scanSchedule, "select "+scheduleColumns+
		" from schedules where tenant = ? and USER = ? and thread = ? and id > ? order by id limit ?")
}

// DeleteSchedule deletes a schedule with its occurrences.
func (db *DB) DeleteSchedule(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.changeSchedule(ctx, s, id, func(tx Conn) error {
		return remove(ctx, tx, "schedule "+id, "delete"+ofSchedule, s.Tenant, s.User, s.Thread, id)
	})
}

// DueSchedules lists the enabled schedules of all scopes that are due.
func (db *DB) DueSchedules(ctx context.Context, now time.Time, limit int) ([]store.Due, error) {
	scan := func(r Row) (d store.Due, err error) {
		err = r.Scan(append([]any{&d.Scope.Tenant, &d.Scope.User, &d.Scope.Thread}, scheduleFields(&d.Schedule)...)...)
		return d, err
	}
	return List(ctx, db.backend.Read(), scan, "select tenant, USER, thread, "+scheduleColumns+` from schedules
		where ENABLED and next > 0 and next <= ? order by next, n limit ?`,
		stamp(now), store.Page{Limit: limit}.Size())
}

// MoveSchedule sets the next time of a schedule that is due.
func (db *DB) MoveSchedule(ctx context.Context, s store.Scope, id string, due, next time.Time, enabled bool) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.changeSchedule(ctx, s, id, func(tx Conn) error {
		return db.move(ctx, tx, s, id, due, next, enabled)
	})
}

func (db *DB) move(ctx context.Context, tx Conn, s store.Scope, id string, due, next time.Time, enabled bool) error {
	_, err := tx.Exec(ctx, `update schedules set next = ?, enabled = enabled and ?, version = version + 1, updated = ?
		where tenant = ? and USER = ? and thread = ? and id = ? and next <= ?`,
		stamp(next), enabled, stamp(db.backend.Now()), s.Tenant, s.User, s.Thread, id, stamp(due))
	return err
}
