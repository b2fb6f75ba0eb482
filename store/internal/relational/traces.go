package relational

// traces.go: traces of runs, in the tables runs and events. Durable runs are in the table journals;
// see journal.go.

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

const ofRun = " from runs where tenant = ? and USER = ? and thread = ? and id = ?"

// PutRun stores the head of a run.
func (db *DB) PutRun(ctx context.Context, s store.Scope, r store.Run) error {
	if err := valid(s, r.ID); err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = db.backend.Write().Exec(ctx, `insert into runs (tenant, USER, thread, id, started, body) values (?, ?, ?, ?, ?, ?)
		on conflict (tenant, USER, thread, id) do update set started = excluded.started, body = excluded.body`,
		s.Tenant, s.User, s.Thread, r.ID, stamp(r.Started), string(body))
	return err
}

// Run returns the head of a run.
func (db *DB) Run(ctx context.Context, s store.Scope, id string) (store.Run, error) {
	return item(ctx, db, s, "run", id, scanJSON[store.Run], "select body"+ofRun)
}

// Runs lists runs, the latest start first.
func (db *DB) Runs(ctx context.Context, s store.Scope, p store.Page) ([]store.Run, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	const all = "select body from runs where tenant = ? and USER = ? and thread = ?"
	if p.After == "" {
		return List(ctx, db.backend.Read(), scanJSON[store.Run], all+" order by started desc, id limit ?",
			s.Tenant, s.User, s.Thread, p.Size())
	}
	last, err := db.Run(ctx, s, p.After)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	at := stamp(last.Started)
	return List(ctx, db.backend.Read(), scanJSON[store.Run],
		all+" and (started < ? or started = ? and id > ?) order by started desc, id limit ?",
		s.Tenant, s.User, s.Thread, at, at, p.After, p.Size())
}

// AppendEvents appends events to a run's trace.
func (db *DB) AppendEvents(ctx context.Context, s store.Scope, run string, events ...pawl.Event) error {
	if err := valid(s, run); err != nil {
		return err
	}
	bodies, err := encoded("event", events)
	if err != nil {
		return err
	}
	return db.backend.Change(ctx, Item{"run", s, run}, func(tx Conn) error {
		n, err := number(ctx, tx, "run "+run, "select n"+ofRun+" KEYSHARE", s.Tenant, s.User, s.Thread, run)
		if err != nil {
			return err
		}
		batch := make([]Statement, len(events))
		for i := range events {
			batch[i] = Statement{
				Text: "insert into events (run, seq, body) values (?, ?, ?) on conflict do nothing",
				Args: []any{n, events[i].Seq, bodies[i]},
			}
		}
		return tx.Batch(ctx, batch)
	})
}

// Events returns events of a run, in order.
func (db *DB) Events(ctx context.Context, s store.Scope, run string, after int64, limit int) ([]pawl.Event, error) {
	if _, err := db.Run(ctx, s, run); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scanJSON[pawl.Event],
		"select e.body from events e where e.run = (select n"+ofRun+") and e.seq > ? order by e.seq limit ?",
		s.Tenant, s.User, s.Thread, run, after, rowsOf(limit))
}

// DeleteRun deletes a run with its events.
func (db *DB) DeleteRun(ctx context.Context, s store.Scope, id string) error {
	return db.drop(ctx, s, "run", id, ofRun)
}
