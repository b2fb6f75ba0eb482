package relational

// journal.go: durable runs, in the tables journals, records and bodies. The table runs holds
// traces; see traces.go.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pawl-go/pawl/store"
)

// largeBody is the size from which a body is stored in a separate table, so that scanning a run's
// records stays cheap.
const largeBody = 16 << 10

const (
	journalColumns = "tenant, USER, thread, id, agent, task, state, summary, owner, fence, until, " +
		"records, head, created, updated, seal"
	ofJournal = " from journals where tenant = ? and USER = ? and thread = ? and id = ?"

	selectRow    = "select " + journalColumns + ", n" + ofJournal
	insertRecord = `insert into records (journal, seq, key, kind, fence, at, elapsed, body, digest, hash, signature)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (journal, key) do nothing returning seq`
	updateHead = `update journals set state = ?, summary = ?, owner = ?, fence = ?, until = ?, records = ?, head = ?,
		updated = ?, seal = ? where n = ?`
)

// Frequent lists the statements of every append, which a backend may prepare once.
var Frequent = []string{selectRow, insertRecord, updateHead}

func scanJournal(r Row) (v store.JournalRun, err error) {
	err = scanHead(r, &v)
	return v, err
}

// scanHead reads the columns of a head, and more columns after them.
func scanHead(r Row, v *store.JournalRun, more ...any) error {
	return r.Scan(append([]any{&v.Scope.Tenant, &v.Scope.User, &v.Scope.Thread, &v.ID, &v.Agent, &v.Task, &v.State,
		(*jsonField)(&v.Summary), &v.Owner, &v.Fence, (*timeField)(&v.Until), &v.Records, &v.Head,
		(*timeField)(&v.Created), (*timeField)(&v.Updated), &v.Seal}, more...)...)
}

// changeJournal calls fn with a run in a transaction. fn changes the head, and returns statements
// that are executed before the head is stored.
func (db *DB) changeJournal(ctx context.Context, s store.Scope, id string,
	fn func(r *journalRow) ([]Statement, error)) (r journalRow, err error) {
	err = db.backend.Change(ctx, Item{"journal", s, id}, func(tx Conn) (err error) {
		r, err = journalOf(ctx, tx, s, id)
		if err != nil {
			return err
		}
		batch, err := fn(&r)
		if err != nil {
			return err
		}
		return db.putHead(ctx, tx, &r, batch)
	})
	return r, err
}

// putHead executes statements, and stores the sealed head.
func (db *DB) putHead(ctx context.Context, tx Conn, r *journalRow, batch []Statement) (err error) {
	r.Seal, err = db.ledger.Seal(r.JournalRun)
	if err != nil {
		return err
	}
	var summary *string
	if r.Summary != nil {
		summary = new(string(r.Summary))
	}
	if err := tx.Batch(ctx, append(batch, Statement{Text: updateHead, Args: []any{r.State, summary, r.Owner, r.Fence,
		stamp(r.Until), r.Records, r.Head, stamp(r.Updated), r.Seal, r.n}})); err != nil {
		return err
	}
	for _, rec := range r.added {
		if rec.stored == 0 {
			return fmt.Errorf("run %s: record %s exists: %w", r.ID, rec.key, store.ErrConflict)
		}
	}
	return nil
}

// checkRecords returns an error for a record that cannot be stored unchanged, because the content
// of a chain is not replaced.
func (db *DB) checkRecords(records []store.Record) error {
	for _, r := range records {
		for _, text := range []string{r.Key, r.Kind, string(r.Body)} {
			if db.backend.Plain(text) != text {
				return fmt.Errorf("record %q is not UTF-8 or has a NUL, which the database does not store", r.Key)
			}
		}
	}
	return store.CheckRecords(records)
}

// BeginJournal creates a run.
func (db *DB) BeginJournal(ctx context.Context, s store.Scope, r store.JournalRun, owner string, until time.Time,
	first ...store.Record) (store.Lease, error) {
	l := store.Lease{Scope: s, Run: r.ID, Owner: owner, Until: until}
	if owner != "" {
		l.Fence = 1
	}
	if err := errors.Join(valid(s, r.ID), db.checkRecords(first)); err != nil {
		return l, err
	}
	summary, err := db.jsonValue("summary", r.Summary)
	if err != nil {
		return l, err
	}
	db.plain(&r.Agent, &r.Task, &owner)
	row := journalRow{JournalRun: store.JournalRun{Scope: s, ID: r.ID, Agent: r.Agent, Task: r.Task, State: r.State,
		Summary: summary, Owner: owner, Fence: l.Fence, Until: until, Created: db.now()}}
	err = db.backend.Change(ctx, Item{"journal", s, r.ID}, func(tx Conn) (err error) {
		row.n, err = number(ctx, tx, "run", "insert into journals ("+journalColumns+`)
			values (?, ?, ?, ?, ?, ?, ?, null, ?, ?, ?, 0, '', ?, 0, '') on conflict do nothing returning n`,
			s.Tenant, s.User, s.Thread, r.ID, r.Agent, r.Task, r.State, owner, l.Fence, stamp(until),
			stamp(row.Created))
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("run %s exists: %w", r.ID, store.ErrConflict)
		}
		if err != nil {
			return err
		}
		batch, err := db.addRecords(&row, l.Fence, nil, first)
		if err != nil {
			return err
		}
		return db.putHead(ctx, tx, &row, batch)
	})
	if err == nil {
		err = db.ledger.Store(ctx, row.JournalRun, false)
	}
	return l, err
}

// journalRow is a head in a transaction that changes it.
type journalRow struct {
	store.JournalRun
	n     int64
	added []*addedRecord
}

// addedRecord is a record in a batch.
type addedRecord struct {
	key    string
	stored int64 // its sequence number; 0 if the key exists
}

func journalOf(ctx context.Context, tx Conn, s store.Scope, id string) (journalRow, error) {
	r, err := one(ctx, tx, "run "+id, func(row Row) (r journalRow, err error) {
		err = scanHead(row, &r.JournalRun, &r.n)
		return r, err
	}, selectRow, s.Tenant, s.User, s.Thread, id)
	if err == nil {
		err = r.CheckSeal()
	}
	return r, err
}

// leased returns an error if the lease of a run was lost.
func (r *journalRow) leased(l store.Lease) error {
	if r.Fence != l.Fence || r.Owner != l.Owner {
		return fmt.Errorf("the lease of run %s was lost: %w", l.Run, store.ErrConflict)
	}
	return nil
}

// addRecords appends records, changes the head, and returns the statements that store the records.
func (db *DB) addRecords(r *journalRow, fence int64, c *store.JournalChange,
	records []store.Record) (batch []Statement, err error) {
	before := r.Records
	for _, rec := range records {
		rec.Fence = fence
		statements, err := db.addRecord(r, rec)
		if err != nil {
			return nil, err
		}
		batch = append(batch, statements...)
	}
	r.Updated = db.now()
	if c == nil {
		return batch, nil
	}

	r.State = c.StateAfter(before)
	if c.Summary != nil {
		r.Summary, err = db.jsonValue("summary", c.Summary)
		if err != nil {
			return nil, err
		}
	}
	if c.Release {
		r.Owner = ""
		r.Until = time.Time{}
	}
	return batch, nil
}

// addRecord makes a record the last of the run's chain, and returns the statements that store it.
func (db *DB) addRecord(r *journalRow, rec store.Record) (batch []Statement, err error) {
	rec.Seq = r.Records + 1
	rec.At = moment(stamp(rec.At))
	rec.Hash = rec.Chain(r.ID, r.Head)
	rec.Signature, err = db.ledger.SignRecord(rec)
	if err != nil {
		return nil, err
	}
	r.Records = rec.Seq
	r.Head = rec.Hash

	body := new(string(rec.Body))
	var digest *string
	if len(rec.Body) >= largeBody {
		sum := sha256.Sum256(rec.Body)
		digest = new(hex.EncodeToString(sum[:]))
		batch = append(batch, Statement{
			Text: "insert into bodies (journal, digest, body) values (?, ?, ?) on conflict do nothing",
			Args: []any{r.n, digest, body},
		})
		body = nil
	}

	added := &addedRecord{key: rec.Key}
	r.added = append(r.added, added)
	return append(batch, Statement{
		Text: insertRecord,
		Args: []any{r.n, rec.Seq, rec.Key, rec.Kind, rec.Fence, stamp(rec.At), int64(rec.Elapsed),
			body, digest, rec.Hash, rec.Signature},
		Number: &added.stored,
	}), nil
}

// JournalRun returns the head of a run.
func (db *DB) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	return item(ctx, db, s, "run", id, scanJournal, "select "+journalColumns+ofJournal)
}

// JournalRuns lists heads by ID.
func (db *DB) JournalRuns(ctx context.Context, s store.Scope, state string, p store.Page) ([]store.JournalRun, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scanJournal, "select "+journalColumns+` from journals
		where tenant = ? and USER = ? and thread = ? and id > ? and (? = '' or state = ?) order by id limit ?`,
		s.Tenant, s.User, s.Thread, db.backend.Plain(p.After), state, state, p.Size())
}

// AbandonedRuns lists open runs whose lease has expired.
func (db *DB) AbandonedRuns(ctx context.Context, now time.Time, limit int) ([]store.JournalRun, error) {
	return List(ctx, db.backend.Read(), scanJournal, "select "+journalColumns+` from journals
		where state = 'open' and until <= ? order by updated limit ?`, stamp(now), store.Page{Limit: limit}.Size())
}

// UnendedRuns yields the runs of all scopes that are not over.
func (db *DB) UnendedRuns(ctx context.Context) iter.Seq2[store.JournalRun, error] {
	return func(yield func(store.JournalRun, error) bool) {
		const page = 100
		last := int64(0)
		scan := func(r Row) (v store.JournalRun, err error) {
			err = scanHead(r, &v, &last)
			return v, err
		}
		for {
			runs, err := List(ctx, db.backend.Read(), scan, "select "+journalColumns+
				", n from journals where n > ? and state <> 'over' order by n limit ?", last, page)
			if err != nil {
				yield(store.JournalRun{}, err)
				return
			}
			for _, r := range runs {
				if !yield(r, nil) {
					return
				}
			}
			if len(runs) < page {
				return
			}
		}
	}
}

// ClaimJournal acquires the lease of a run.
func (db *DB) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now, until time.Time) (store.Lease,
	error) {
	l := store.Lease{Scope: s, Run: id, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return l, err
	}
	r, err := db.changeJournal(ctx, s, id, func(r *journalRow) ([]Statement, error) {
		if r.Owner != "" && stamp(r.Until) > stamp(now) {
			return nil, fmt.Errorf("run %s is %s's: %w", id, r.Owner, store.ErrConflict)
		}
		r.Owner, r.Fence, r.Until = owner, r.Fence+1, until
		return nil, nil
	})
	l.Fence = r.Fence
	if err == nil {
		err = db.ledger.Store(ctx, r.JournalRun, false)
	}
	return l, err
}

// RenewJournal changes the end of a lease, or releases the lease.
func (db *DB) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (head store.JournalRun, err error) {
	if err := valid(l.Scope, l.Run); err != nil {
		return head, err
	}
	r, err := db.changeJournal(ctx, l.Scope, l.Run, func(r *journalRow) ([]Statement, error) {
		if err := r.leased(l); err != nil {
			return nil, err
		}
		r.Until = until
		if until.IsZero() {
			r.Owner = ""
		}
		return nil, nil
	})
	return r.JournalRun, err
}

// AppendJournal appends records under a lease.
func (db *DB) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (last int64, err error) {
	if err := errors.Join(valid(l.Scope, l.Run), db.checkRecords(records)); err != nil {
		return 0, err
	}
	r, err := db.changeJournal(ctx, l.Scope, l.Run, func(r *journalRow) ([]Statement, error) {
		if err := r.leased(l); err != nil {
			return nil, err
		}
		return db.addRecords(r, l.Fence, c, records)
	})
	if err != nil {
		return 0, err
	}
	return r.Records, db.ledger.Store(ctx, r.JournalRun, false)
}

// AppendOutside appends records without a lease.
func (db *DB) AppendOutside(ctx context.Context, s store.Scope, id, state string, records ...store.Record) error {
	if err := errors.Join(valid(s, id), db.checkRecords(records)); err != nil {
		return err
	}
	r, err := db.changeJournal(ctx, s, id, func(r *journalRow) ([]Statement, error) {
		var c *store.JournalChange
		switch {
		case r.State == store.JournalOver:
			return nil, fmt.Errorf("run %s is over: %w", id, store.ErrConflict)
		case r.State == store.JournalWaiting && state != "":
			c = &store.JournalChange{State: state}
		}
		return db.addRecords(r, 0, c, records)
	})
	if err != nil {
		return err
	}
	return db.ledger.Store(ctx, r.JournalRun, false)
}

// JournalRecords returns the records of a run.
func (db *DB) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	if _, err := db.JournalRun(ctx, s, id); err != nil {
		return nil, err
	}
	scan := func(r Row) (v store.Record, err error) {
		var twice bool
		err = r.Scan(&v.Seq, &v.Key, &v.Kind, &v.Fence, (*timeField)(&v.At), (*int64)(&v.Elapsed),
			(*jsonField)(&v.Body), &v.Hash, &v.Signature, &twice)
		switch {
		case err != nil:
		case v.Body == nil:
			err = fmt.Errorf("run %s: %w: the body of record %d is not there", id, store.ErrCorrupt, v.Seq)
		case twice:
			err = fmt.Errorf("run %s: %w: record %d has a body and the digest of another", id, store.ErrCorrupt, v.Seq)
		}
		return v, err
	}
	return List(ctx, db.backend.Read(), scan, `select r.seq, r.key, r.kind, r.fence, r.at, r.elapsed,
		coalesce(r.body, b.body), r.hash, r.signature,
		r.digest is not null and r.body is not null
		from records r left join bodies b on b.journal = r.journal and b.digest = r.digest
		where r.journal = (select n`+ofJournal+`) and r.seq > ? order by r.seq`, s.Tenant, s.User, s.Thread, id, after)
}

// EndedRuns lists the runs of all scopes in a state that no process executes and that were last
// updated before a time, the oldest first. A tenant or a user that is not empty restricts the list.
func (db *DB) EndedRuns(ctx context.Context, state, tenant, user string,
	before, now time.Time) ([]store.JournalRun, error) {
	return List(ctx, db.backend.Read(), scanJournal, "select "+journalColumns+` from journals where state = ? and updated < ?
		and (owner = '' or until <= ?) and (? = '' or tenant = ?) and (? = '' or USER = ?) order by updated, n limit 1000`,
		state, stamp(before), stamp(now), tenant, tenant, user, user)
}

// DeleteJournal deletes a run with its records, its artifacts and its trace.
func (db *DB) DeleteJournal(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	var head store.JournalRun
	err := db.backend.Change(ctx, Item{"journal", s, id}, func(tx Conn) error {
		r, err := one(ctx, tx, "run "+id, scanJournal, "select "+journalColumns+ofJournal,
			s.Tenant, s.User, s.Thread, id)
		head = r
		if err != nil {
			return err
		}
		for _, of := range []string{ofArtifacts, ofRun, ofJournal} {
			if _, err := tx.Exec(ctx, "delete"+of, s.Tenant, s.User, s.Thread, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return db.ledger.Store(ctx, head, true)
}
