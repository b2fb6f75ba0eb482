package relational

// journal.go: durable runs, in the tables journals, records and bodies. The table runs holds
// traces; see traces.go.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

// largeBody is the size from which a body is stored in a separate table, so that scanning a run's
// records stays cheap.
const largeBody = 16 << 10

const (
	journalColumns = "tenant, USER, thread, id, agent, task, state, summary, owner, fence, until, records, head, created, updated"
	ofJournal      = " from journals where tenant = ? and USER = ? and thread = ? and id = ?"

	selectRow    = "select n, records, head, owner, fence, state" + ofJournal
	insertRecord = `insert into records (journal, seq, key, kind, fence, at, elapsed, body, digest, hash)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (journal, key) do nothing returning seq`
	updateHead = "update journals set records = ?, head = ?, updated = ? where n = ?"
)

// Frequent lists the statements of every append, which a backend may prepare once.
var Frequent = []string{selectRow, insertRecord, updateHead}

func scanJournal(r Row) (v store.JournalRun, err error) {
	err = r.Scan(&v.Scope.Tenant, &v.Scope.User, &v.Scope.Thread, &v.ID, &v.Agent, &v.Task, &v.State,
		(*jsonField)(&v.Summary),
		&v.Owner, &v.Fence, (*timeField)(&v.Until), &v.Records, &v.Head, (*timeField)(&v.Created),
		(*timeField)(&v.Updated))
	return v, err
}

func (db *DB) changeJournal(ctx context.Context, s store.Scope, id string, fn func(tx Conn) error) error {
	return db.b.Change(ctx, Item{"journal", s, id}, fn)
}

// checkRecords returns an error for a record that cannot be stored unchanged, because the content
// of a chain is not replaced.
func (db *DB) checkRecords(records []store.Record) error {
	for _, r := range records {
		for _, text := range []string{r.Key, r.Kind, string(r.Body)} {
			if db.b.Plain(text) != text {
				return fmt.Errorf("record %q is not UTF-8 or has a NUL, which the database does not store", r.Key)
			}
		}
	}
	return store.CheckRecords(records)
}

// BeginJournal creates a run.
func (db *DB) BeginJournal(ctx context.Context, s store.Scope, r store.JournalRun, owner string, until time.Time,
	first ...store.Record) (store.Lease, error) {
	l := store.Lease{Scope: s, Run: r.ID, Owner: owner, Fence: 1, Until: until}
	if err := errors.Join(valid(s, r.ID), db.checkRecords(first)); err != nil {
		return l, err
	}
	summary, err := db.jsonText("summary", r.Summary)
	if err != nil {
		return l, err
	}
	db.plain(&r.Agent, &r.Task, &owner)
	now := stamp(db.b.Now())
	return l, db.changeJournal(ctx, s, r.ID, func(tx Conn) error {
		n, err := number(ctx, tx, "run", "insert into journals ("+journalColumns+`)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 0, '', ?, ?) on conflict do nothing returning n`,
			s.Tenant, s.User, s.Thread, r.ID, r.Agent, r.Task, r.State, summary, owner, stamp(until), now, now)
		if errors.Is(err, store.ErrNotFound) {
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

func journalOf(ctx context.Context, tx Conn, s store.Scope, id string) (journalRow, error) {
	return one(ctx, tx, "run "+id, func(row Row) (journalRow, error) {
		r := journalRow{id: id}
		return r, row.Scan(&r.n, &r.records, &r.head, &r.owner, &r.fence, &r.state)
	}, selectRow, s.Tenant, s.User, s.Thread, id)
}

// leased returns the run of a lease. It returns an error if the lease was lost.
func leased(ctx context.Context, tx Conn, l store.Lease) (journalRow, error) {
	r, err := journalOf(ctx, tx, l.Scope, l.Run)
	if err == nil && (r.fence != l.Fence || r.owner != l.Owner) {
		err = fmt.Errorf("the lease of run %s was lost: %w", l.Run, store.ErrConflict)
	}
	return r, err
}

// addRecords appends records and changes the head.
func (db *DB) addRecords(ctx context.Context, tx Conn, r journalRow, fence int64, c *store.JournalChange,
	records []store.Record) (int64, error) {
	var batch []Statement
	before := r.records
	stored := make([]int64, len(records)) // the sequence numbers of the rows; 0 if the key exists
	for i, rec := range records {
		rec.Seq, rec.Fence, rec.At = r.records+1, fence, moment(stamp(rec.At))
		rec.Hash = rec.Chain(r.id, r.head)
		r.records, r.head = rec.Seq, rec.Hash
		body, digest := new(string(rec.Body)), (*string)(nil)
		if len(rec.Body) >= largeBody {
			sum := sha256.Sum256(rec.Body)
			digest = new(hex.EncodeToString(sum[:]))
			batch = append(batch, Statement{Text: "insert into bodies (journal, digest, body) values (?, ?, ?) on conflict do nothing",
				Args: []any{r.n, digest, body}})
			body = nil
		}
		batch = append(batch, Statement{insertRecord,
			[]any{r.n, rec.Seq, rec.Key, rec.Kind, fence, stamp(rec.At), int64(rec.Elapsed),
				body, digest, rec.Hash}, &stored[i]})
	}
	head := Statement{Text: updateHead, Args: []any{r.records, r.head, stamp(db.b.Now()), r.n}}
	if c != nil {
		summary, err := db.jsonText("summary", c.Summary)
		if err != nil {
			return 0, err
		}
		set := "records = ?, head = ?, updated = ?, state = ?, summary = coalesce(?, summary)"
		if c.Release {
			set += ", owner = '', until = 0"
		}
		head.Text, head.Args = "update journals set "+set+" where n = ?", append(head.Args[:3:3], c.StateAfter(before), summary, r.n)
	}
	if err := tx.Batch(ctx, append(batch, head)); err != nil {
		return 0, err
	}
	for i, n := range stored {
		if n == 0 {
			return 0, fmt.Errorf("run %s: record %s exists: %w", r.id, records[i].Key, store.ErrConflict)
		}
	}
	return r.records, nil
}

// JournalRun returns the head of a run.
func (db *DB) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	if err := valid(s, id); err != nil {
		return store.JournalRun{}, err
	}
	return one(ctx, db.b.Read(), "run "+id, scanJournal, "select "+journalColumns+ofJournal, s.Tenant, s.User, s.Thread, id)
}

// JournalRuns lists heads by ID.
func (db *DB) JournalRuns(ctx context.Context, s store.Scope, state string, p store.Page) ([]store.JournalRun, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return List(ctx, db.b.Read(), scanJournal, "select "+journalColumns+` from journals
		where tenant = ? and USER = ? and thread = ? and id > ? and (? = '' or state = ?) order by id limit ?`,
		s.Tenant, s.User, s.Thread, db.b.Plain(p.After), state, state, p.Size())
}

// AbandonedRuns lists open runs whose lease has expired.
func (db *DB) AbandonedRuns(ctx context.Context, now time.Time, limit int) ([]store.JournalRun, error) {
	return List(ctx, db.b.Read(), scanJournal, "select "+journalColumns+" from journals where state = 'open' and until <= ? order by updated limit ?",
		stamp(now), store.Page{Limit: limit}.Size())
}

// ClaimJournal acquires the lease of a run.
func (db *DB) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now, until time.Time) (store.Lease,
	error) {
	l := store.Lease{Scope: s, Run: id, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return l, err
	}
	return l, db.changeJournal(ctx, s, id, func(tx Conn) error {
		r, err := journalOf(ctx, tx, s, id)
		if err != nil {
			return err
		}
		l.Fence = r.fence + 1
		return change(ctx, tx, fmt.Errorf("run %s is %s's: %w", id, r.owner, store.ErrConflict),
			"update journals set owner = ?, fence = ?, until = ? where n = ? and (owner = '' or until <= ?)",
			owner, l.Fence, stamp(until), r.n, stamp(now))
	})
}

// RenewJournal changes the end of a lease, or releases the lease.
func (db *DB) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (head store.JournalRun, err error) {
	if err := valid(l.Scope, l.Run); err != nil {
		return head, err
	}
	owner := l.Owner
	if until.IsZero() {
		owner = ""
	}
	err = db.changeJournal(ctx, l.Scope, l.Run, func(tx Conn) error {
		r, err := leased(ctx, tx, l)
		if err != nil {
			return err
		}
		head, err = one(ctx, tx, "run "+l.Run, scanJournal, "update journals set owner = ?, until = ? where n = ? returning "+journalColumns, owner, stamp(until), r.n)
		return err
	})
	return head, err
}

// AppendJournal appends records under a lease.
func (db *DB) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (last int64, err error) {
	if err := errors.Join(valid(l.Scope, l.Run), db.checkRecords(records)); err != nil {
		return 0, err
	}
	err = db.changeJournal(ctx, l.Scope, l.Run, func(tx Conn) error {
		r, err := leased(ctx, tx, l)
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
	if err := errors.Join(valid(s, id), db.checkRecords(records)); err != nil {
		return err
	}
	return db.changeJournal(ctx, s, id, func(tx Conn) error {
		r, err := journalOf(ctx, tx, s, id)
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
	scan := func(r Row) (v store.Record, err error) {
		err = r.Scan(&v.Seq, &v.Key, &v.Kind, &v.Fence, (*timeField)(&v.At), (*int64)(&v.Elapsed),
			(*jsonField)(&v.Body), &v.Hash)
		if v.Body == nil && err == nil {
			err = fmt.Errorf("run %s: the body of record %d is not there", id, v.Seq)
		}
		return v, err
	}
	return List(ctx, db.b.Read(), scan, `select r.seq, r.key, r.kind, r.fence, r.at, r.elapsed, coalesce(r.body, b.body), r.hash
		from records r left join bodies b on b.journal = r.journal and b.digest = r.digest
		where r.journal = (select n`+ofJournal+`) and r.seq > ? order by r.seq`, s.Tenant, s.User, s.Thread, id, after)
}

// DeleteJournal deletes a run with its records.
func (db *DB) DeleteJournal(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return remove(ctx, db.b.Write(), "run "+id, "delete"+ofJournal, s.Tenant, s.User, s.Thread, id)
}
