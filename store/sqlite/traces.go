package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

func scanRun(r *sql.Rows) (v store.Run, err error) {
	var body string
	if err = r.Scan(&body); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(body), &v)
}

const ofRun = " from runs where tenant = ? and user = ? and thread = ? and id = ?"

// PutRun stores the head of a run.
func (db *DB) PutRun(ctx context.Context, s store.Scope, r store.Run) error {
	if err := valid(s, r.ID); err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = db.write.ExecContext(ctx, `insert into runs (tenant, user, thread, id, started, body) values (?, ?, ?, ?, ?, ?)
		on conflict (tenant, user, thread, id) do update set started = excluded.started, body = excluded.body`, s.Tenant, s.User, s.Thread, r.ID, stamp(r.Started), string(body))
	return err
}

// Run returns the head of a run.
func (db *DB) Run(ctx context.Context, s store.Scope, id string) (store.Run, error) {
	if err := valid(s, id); err != nil {
		return store.Run{}, err
	}
	return one(ctx, db.read, "run "+id, scanRun, "select body"+ofRun, s.Tenant, s.User, s.Thread, id)
}

// Runs lists runs, the latest start first.
func (db *DB) Runs(ctx context.Context, s store.Scope, p store.Page) ([]store.Run, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	const all = "select body from runs where tenant = ? and user = ? and thread = ?"
	if p.After == "" {
		return list(ctx, db.read, scanRun, all+" order by started desc, id limit ?", s.Tenant, s.User, s.Thread, p.Size())
	}
	last, err := db.Run(ctx, s, p.After)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	at := stamp(last.Started)
	return list(ctx, db.read, scanRun, all+" and (started < ? or started = ? and id > ?) order by started desc, id limit ?", s.Tenant, s.User, s.Thread, at, at, p.After, p.Size())
}

// AppendEvents appends events to a run's trace.
func (db *DB) AppendEvents(ctx context.Context, s store.Scope, run string, events ...pawl.Event) error {
	if err := valid(s, run); err != nil {
		return err
	}
	bodies := make([]string, len(events))
	for i := range events {
		b, err := json.Marshal(events[i])
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		bodies[i] = string(b)
	}
	return db.change(ctx, func(tx *sql.Tx) error {
		n, err := runNumber(ctx, tx, s, run)
		if err != nil {
			return err
		}
		add, err := tx.PrepareContext(ctx, "insert into events (run, seq, body) values (?, ?, ?) on conflict do nothing")
		if err != nil {
			return err
		}
		defer add.Close()
		for i := range events {
			if _, err := add.ExecContext(ctx, n, events[i].Seq, bodies[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func runNumber(ctx context.Context, tx *sql.Tx, s store.Scope, id string) (n int64, err error) {
	if err = tx.QueryRowContext(ctx, "select n"+ofRun, s.Tenant, s.User, s.Thread, id).Scan(&n); errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("run %s: %w", id, store.ErrNotFound)
	}
	return n, err
}

// Events returns events of a run, in order.
func (db *DB) Events(ctx context.Context, s store.Scope, run string, after int64, limit int) ([]pawl.Event, error) {
	if _, err := db.Run(ctx, s, run); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = -1
	}
	scan := func(r *sql.Rows) (e pawl.Event, err error) {
		var body string
		if err = r.Scan(&body); err != nil {
			return e, err
		}
		return e, json.Unmarshal([]byte(body), &e)
	}
	return list(ctx, db.read, scan, "select e.body from events e where e.run = (select n"+ofRun+") and e.seq > ? order by e.seq limit ?", s.Tenant, s.User, s.Thread, run, after, limit)
}

// DeleteRun deletes a run with its events.
func (db *DB) DeleteRun(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete"+ofRun, s.Tenant, s.User, s.Thread, id)
	return changed(res, err, "run "+id)
}
