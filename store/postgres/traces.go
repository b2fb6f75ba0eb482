package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// scanJSON reads a column of JSON.
func scanJSON[T any](r pgx.Rows) (v T, err error) {
	var body string
	if err = r.Scan(&body); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(body), &v)
}

const ofRun = " from runs where tenant = $1 and userid = $2 and thread = $3 and id = $4"

// PutRun stores the head of a run.
func (db *DB) PutRun(ctx context.Context, s store.Scope, r store.Run) error {
	if err := valid(s, r.ID); err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = db.pool.Exec(ctx, `insert into runs (tenant, userid, thread, id, started, body) values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant, userid, thread, id) do update set started = excluded.started, body = excluded.body`, s.Tenant, s.User, s.Thread, r.ID, stamp(r.Started), string(body))
	return err
}

// Run returns the head of a run.
func (db *DB) Run(ctx context.Context, s store.Scope, id string) (store.Run, error) {
	if err := valid(s, id); err != nil {
		return store.Run{}, err
	}
	return one(ctx, db.pool, "run "+id, scanJSON[store.Run], "select body"+ofRun, s.Tenant, s.User, s.Thread, id)
}

// Runs lists runs, the latest start first.
func (db *DB) Runs(ctx context.Context, s store.Scope, p store.Page) ([]store.Run, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	const all = "select body from runs where tenant = $1 and userid = $2 and thread = $3"
	if p.After == "" {
		return list(ctx, db.pool, scanJSON[store.Run], all+" order by started desc, id limit $4", s.Tenant, s.User, s.Thread, p.Size())
	}
	last, err := db.Run(ctx, s, p.After)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return list(ctx, db.pool, scanJSON[store.Run], all+" and (started < $4 or started = $4 and id > $5) order by started desc, id limit $6", s.Tenant, s.User, s.Thread, stamp(last.Started), p.After, p.Size())
}

// AppendEvents appends events to a run's trace.
func (db *DB) AppendEvents(ctx context.Context, s store.Scope, run string, events ...pawl.Event) error {
	if err := valid(s, run); err != nil {
		return err
	}
	seqs, bodies := make([]int64, len(events)), make([]string, len(events))
	for i := range events {
		b, err := json.Marshal(events[i])
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		seqs[i], bodies[i] = events[i].Seq, string(b)
	}
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		n, err := one(ctx, tx, "run "+run, value[int64], "select n"+ofRun+" for key share", s.Tenant, s.User, s.Thread, run)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "insert into events (run, seq, body) select $1, seq, body from unnest($2::bigint[], $3::text[]) as x (seq, body) on conflict do nothing", n, seqs, bodies)
		return err
	})
}

// Events returns events of a run, in order.
func (db *DB) Events(ctx context.Context, s store.Scope, run string, after int64, limit int) ([]pawl.Event, error) {
	if _, err := db.Run(ctx, s, run); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanJSON[pawl.Event], "select e.body from events e where e.run = (select n"+ofRun+") and e.seq > $5 order by e.seq limit $6", s.Tenant, s.User, s.Thread, run, after, rowsOf(limit))
}

// DeleteRun deletes a run with its events.
func (db *DB) DeleteRun(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.remove(ctx, "run "+id, "delete"+ofRun, s.Tenant, s.User, s.Thread, id)
}
