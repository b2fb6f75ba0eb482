package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

var _ store.Journal = (*DB)(nil)

// largeBody is the size from which a body is stored in a separate table, so that scanning a run's
// records stays cheap.
const largeBody = 16 << 10

const (
	journalColumns = "tenant, user, thread, id, agent, task, state, summary, owner, fence, until, records, head, created, updated"
	ofJournal      = " from journals where tenant = ? and user = ? and thread = ? and id = ?"
)

func scanJournal(r *sql.Rows) (v store.JournalRun, err error) {
	var summary sql.NullString
	err = r.Scan(&v.Scope.Tenant, &v.Scope.User, &v.Scope.Thread, &v.ID, &v.Agent, &v.Task, &v.State, &summary, &v.Owner, &v.Fence, (*timeField)(&v.Until), &v.Records, &v.Head,
		(*timeField)(&v.Created), (*timeField)(&v.Updated))
	v.Summary = raw(summary)
	return v, err
}

// BeginJournal creates a run.
func (db *DB) BeginJournal(ctx context.Context, s store.Scope, r store.JournalRun, owner string, until time.Time, first ...store.Record) (store.Lease, error) {
	l := store.Lease{Scope: s, Run: r.ID, Owner: owner, Fence: 1, Until: until}
	if err := errors.Join(valid(s, r.ID), store.CheckRecords(first)); err != nil {
		return l, err
	}
	summary, err := jsonText("summary", r.Summary)
	if err != nil {
		return l, err
	}
	now := stamp(db.now())
	return l, db.changeTogether(ctx, func(tx *sql.Tx) error {
		var n int64
		err := tx.QueryRowContext(ctx, "insert into journals ("+journalColumns+") values (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 0, '', ?, ?) on conflict do nothing returning n",
			s.Tenant, s.User, s.Thread, r.ID, r.Agent, r.Task, r.State, summary, owner, stamp(until), now, now).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("run %s exists: %w", r.ID, store.ErrConflict)
		}
		if err != nil {
			return err
		}
		_, err = db.addRecords(ctx, tx, journalRow{n: n, id: r.ID}, 1, nil, first)
		return err
	})
}

// journalRow holds the columns of a run that an append needs.
type journalRow struct {
	n, records, fence int64
	id, head          string
	owner, state      string
}

// prepared holds the statements of every append, so that they are parsed once.
type prepared struct{ journal, record, head *sql.Stmt }

func (p *prepared) prepare(db *sql.DB) error {
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&p.journal, "select n, records, head, owner, fence, state" + ofJournal},
		{&p.record, "insert into records (journal, seq, key, kind, fence, at, elapsed, body, digest, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (journal, key) do nothing"},
		{&p.head, "update journals set records = ?, head = ?, updated = ? where n = ?"},
	} {
		var err error
		if *s.stmt, err = db.Prepare(s.text); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) journalOf(ctx context.Context, tx *sql.Tx, s store.Scope, id string) (journalRow, error) {
	r := journalRow{id: id}
	err := tx.StmtContext(ctx, db.prepared.journal).QueryRowContext(ctx, s.Tenant, s.User, s.Thread, id).Scan(&r.n, &r.records, &r.head, &r.owner, &r.fence, &r.state)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("run %s: %w", id, store.ErrNotFound)
	}
	return r, err
}

// leased returns the run of a lease. It returns an error if the lease was lost.
func (db *DB) leased(ctx context.Context, tx *sql.Tx, l store.Lease) (journalRow, error) {
	r, err := db.journalOf(ctx, tx, l.Scope, l.Run)
	if err == nil && (r.fence != l.Fence || r.owner != l.Owner) {
		err = fmt.Errorf("the lease of run %s was lost: %w", l.Run, store.ErrConflict)
	}
	return r, err
}

// addRecords appends records and changes the head.
func (db *DB) addRecords(ctx context.Context, tx *sql.Tx, r journalRow, fence int64, c *store.JournalChange, records []store.Record) (int64, error) {
	insert := tx.StmtContext(ctx, db.prepared.record)
	for _, rec := range records {
		rec.Seq, rec.Fence, rec.At = r.records+1, fence, moment(stamp(rec.At))
		rec.Hash = rec.Chain(r.id, r.head)
		r.records, r.head = rec.Seq, rec.Hash
		var body, digest any = string(rec.Body), nil
		if len(rec.Body) >= largeBody {
			sum := sha256.Sum256(rec.Body)
			d := hex.EncodeToString(sum[:])
			if _, err := tx.ExecContext(ctx, "insert into bodies (journal, digest, body) values (?, ?, ?) on conflict do nothing", r.n, d, body); err != nil {
				return 0, err
			}
			body, digest = nil, d
		}
		res, err := insert.ExecContext(ctx, r.n, rec.Seq, rec.Key, rec.Kind, fence, stamp(rec.At), int64(rec.Elapsed), body, digest, rec.Hash)
		if err = changed(res, err, ""); errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("run %s: record %s exists: %w", r.id, rec.Key, store.ErrConflict)
		}
		if err != nil {
			return 0, err
		}
	}
	now := stamp(db.now())
	if c == nil {
		_, err := tx.StmtContext(ctx, db.prepared.head).ExecContext(ctx, r.records, r.head, now, r.n)
		return r.records, err
	}
	summary, err := jsonText("summary", c.Summary)
	if err != nil {
		return 0, err
	}
	set := "records = ?, head = ?, updated = ?, state = ?, summary = coalesce(?, summary)"
	if c.Release {
		set += ", owner = '', until = 0"
	}
	_, err = tx.ExecContext(ctx, "update journals set "+set+" where n = ?", r.records, r.head, now, c.State, summary, r.n)
	return r.records, err
}

// JournalRun returns the head of a run.
func (db *DB) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	if err := valid(s, id); err != nil {
		return store.JournalRun{}, err
	}
	return one(ctx, db.read, "run "+id, scanJournal, "select "+journalColumns+ofJournal, s.Tenant, s.User, s.Thread, id)
}

// JournalRuns lists heads by ID.
func (db *DB) JournalRuns(ctx context.Context, s store.Scope, state string, p store.Page) ([]store.JournalRun, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.read, scanJournal, "select "+journalColumns+" from journals where tenant = ? and user = ? and thread = ? and id > ? and (? = '' or state = ?) order by id limit ?",
		s.Tenant, s.User, s.Thread, p.After, state, state, p.Size())
}

// AbandonedRuns lists open runs whose lease has expired.
func (db *DB) AbandonedRuns(ctx context.Context, now time.Time, limit int) ([]store.JournalRun, error) {
	return list(ctx, db.read, scanJournal, "select "+journalColumns+" from journals where state = 'open' and until <= ? order by updated limit ?", stamp(now), store.Page{Limit: limit}.Size())
}

// ClaimJournal acquires the lease of a run.
func (db *DB) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now, until time.Time) (store.Lease, error) {
	l := store.Lease{Scope: s, Run: id, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return l, err
	}
	return l, db.changeTogether(ctx, func(tx *sql.Tx) error {
		r, err := db.journalOf(ctx, tx, s, id)
		if err != nil {
			return err
		}
		l.Fence = r.fence + 1
		res, err := tx.ExecContext(ctx, "update journals set owner = ?, fence = ?, until = ? where n = ? and (owner = '' or until <= ?)", owner, l.Fence, stamp(until), r.n, stamp(now))
		if err = changed(res, err, ""); errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("run %s is %s's: %w", id, r.owner, store.ErrConflict)
		}
		return err
	})
}

// RenewJournal changes the end of a lease, or releases the lease.
func (db *DB) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
	if err := valid(l.Scope, l.Run); err != nil {
		return store.JournalRun{}, err
	}
	owner := l.Owner
	if until.IsZero() {
		owner = ""
	}
	var head store.JournalRun
	err := db.changeTogether(ctx, func(tx *sql.Tx) error {
		r, err := db.leased(ctx, tx, l)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "update journals set owner = ?, until = ? where n = ?", owner, stamp(until), r.n); err != nil {
			return err
		}
		head, err = one(ctx, tx, "run "+l.Run, scanJournal, "select "+journalColumns+" from journals where n = ?", r.n)
		return err
	})
	return head, err
}

// AppendJournal appends records under a lease.
func (db *DB) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange, records ...store.Record) (last int64, err error) {
	if err := errors.Join(valid(l.Scope, l.Run), store.CheckRecords(records)); err != nil {
		return 0, err
	}
	err = db.changeTogether(ctx, func(tx *sql.Tx) error {
		r, err := db.leased(ctx, tx, l)
		if err != nil {
			return err
		}
		last, err = db.addRecords(ctx, tx, r, l.Fence, c, records)
		return err
	})
	return last, err
}

// AppendOutside appends records without a lease.
func (db *DB) AppendOutside(ctx context.Context, s store.Scope, id, state string, records ...store.Record) error {
	if err := errors.Join(valid(s, id), store.CheckRecords(records)); err != nil {
		return err
	}
	return db.changeTogether(ctx, func(tx *sql.Tx) error {
		r, err := db.journalOf(ctx, tx, s, id)
		var c *store.JournalChange
		switch {
		case err != nil:
			return err
		case r.state == store.JournalOver:
			return fmt.Errorf("run %s is over: %w", id, store.ErrConflict)
		case r.state == store.JournalWaiting && state != "":
			c = &store.JournalChange{State: state}
		}
		_, err = db.addRecords(ctx, tx, r, 0, c, records)
		return err
	})
}

// JournalRecords returns the records of a run.
func (db *DB) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	if _, err := db.JournalRun(ctx, s, id); err != nil {
		return nil, err
	}
	scan := func(r *sql.Rows) (v store.Record, err error) {
		var body sql.NullString
		err = r.Scan(&v.Seq, &v.Key, &v.Kind, &v.Fence, (*timeField)(&v.At), (*int64)(&v.Elapsed), &body, &v.Hash)
		if v.Body = raw(body); v.Body == nil && err == nil {
			err = fmt.Errorf("run %s: the body of record %d is not there", id, v.Seq)
		}
		return v, err
	}
	return list(ctx, db.read, scan, `select r.seq, r.key, r.kind, r.fence, r.at, r.elapsed, coalesce(r.body, b.body), r.hash from records r left join bodies b on b.journal = r.journal and b.digest = r.digest
		where r.journal = (select n`+ofJournal+`) and r.seq > ? order by r.seq`, s.Tenant, s.User, s.Thread, id, after)
}

// DeleteJournal deletes a run with its records.
func (db *DB) DeleteJournal(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete"+ofJournal, s.Tenant, s.User, s.Thread, id)
	return changed(res, err, "run "+id)
}
