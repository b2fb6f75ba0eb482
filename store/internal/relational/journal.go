package relational

// journal.go: durable runs, in the tables journals, records and bodies. The table runs holds
// traces; see traces.go.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

// largeBody is the size from which a body is stored in a separate table, so that scanning a run's
// records stays cheap.
const largeBody = 16 << 10

const (
	journalColumns = "tenant, USER, thread, id, agent, task, state, summary, owner, fence, until, " +
		"records, head, created, updated, seal, next, lapses"
	ofJournal = " from journals where tenant = ? and USER = ? and thread = ? and id = ?"

	selectRow    = "select " + journalColumns + ", n" + ofJournal
	insertRecord = `insert into records (journal, seq, key, kind, fence, at, elapsed, body, digest, hash, signature)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`
	insertHead = "insert into journals (" + journalColumns + `)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning n`
	insertBody = "insert into bodies (journal, digest, body) values (?, ?, ?) on conflict do nothing"

	// updateHead changes a head that is the known one.
	updateHead = `update journals set state = ?, summary = ?, owner = ?, fence = ?, until = ?, records = ?, head = ?,
		updated = ?, seal = ?, next = ?, lapses = ? where n = ? and state = ? and coalesce(summary, '') = ? and
		owner = ? and fence = ? and until = ? and records = ? and head = ? and updated = ? and seal = ?`
)

// Frequent lists the statements of every append, which a backend may prepare once.
var Frequent = []string{selectRow, insertHead, insertRecord, updateHead}

func scanJournal(r Row) (v store.JournalRun, err error) {
	err = scanHead(r, &v)
	return v, err
}

// scanHead reads the columns of a head, and more columns after them.
func scanHead(r Row, v *store.JournalRun, more ...any) error {
	return r.Scan(append([]any{&v.Scope.Tenant, &v.Scope.User, &v.Scope.Thread, &v.ID, &v.Agent, &v.Task, &v.State,
		(*jsonField)(&v.Summary), &v.Owner, &v.Fence, (*timeField)(&v.Until), &v.Records, &v.Head,
		(*timeField)(&v.Created), (*timeField)(&v.Updated), &v.Seal, (*timeField)(&v.Next), &v.Lapses}, more...)...)
}

// journalRow is a head in a transaction that changes it.
type journalRow struct {
	store.JournalRun
	number int64
	was    store.JournalRun // the known head, before the change
	added  []store.Record   // to store with it
}

// changeJournal calls fn with a run in a transaction. fn changes the head and adds records.
func (db *DB) changeJournal(ctx context.Context, s store.Scope, id string,
	fn func(r *journalRow) error) (r journalRow, err error) {
	err = db.backend.Change(ctx, Item{"journal", s, id}, func(tx Conn) (err error) {
		r, err = journalOf(ctx, tx, s, id)
		if err != nil {
			return err
		}
		return db.changeRow(ctx, tx, &r, fn)
	})
	return r, err
}

// changeHeld is changeJournal for the holder of a lease, who knows the head since its last change
// and does not read it again, unless it was changed since.
func (db *DB) changeHeld(ctx context.Context, l store.Lease, fn func(r *journalRow) error) (r journalRow, err error) {
	leased := func(r *journalRow) error {
		if err := r.leased(l); err != nil {
			return err
		}
		return fn(r)
	}

	known, isKnown := db.heads.of(l)
	err = errOtherHead
	if isKnown {
		err = db.backend.Change(ctx, Item{"journal", l.Scope, l.Run}, func(tx Conn) error {
			r = known
			return db.changeRow(ctx, tx, &r, leased)
		})
	}
	if errors.Is(err, errOtherHead) {
		r, err = db.changeJournal(ctx, l.Scope, l.Run, leased)
	}

	if err != nil || r.Owner != l.Owner {
		db.heads.forget(l)
	} else {
		db.heads.learn(l, r)
	}
	return r, err
}

// changeRow calls fn with the head r, and stores what fn changes.
func (db *DB) changeRow(ctx context.Context, tx Conn, r *journalRow, fn func(r *journalRow) error) (err error) {
	r.was = r.JournalRun
	r.added = nil
	if err := fn(r); err != nil {
		return err
	}
	r.Seal, err = db.ledger.Seal(r.JournalRun)
	if err != nil {
		return err
	}

	// The statement compares all columns, and changes no row if another process has changed the
	// head since it was read.
	is, was := r.JournalRun, r.was
	var updated int64
	update := Statement{
		Text: updateHead,
		Args: []any{
			is.State, textOf(is.Summary), is.Owner, is.Fence, stamp(is.Until), is.Records, is.Head,
			stamp(is.Updated), is.Seal, stamp(is.Next), is.Lapses, r.number,
			was.State, string(was.Summary), was.Owner, was.Fence, stamp(was.Until), was.Records, was.Head,
			stamp(was.Updated), was.Seal,
		},
		Changed: &updated,
	}

	stored := make([]int64, len(r.added))
	err = tx.Batch(ctx, append([]Statement{update}, r.inserts(stored)...))
	switch {
	case err != nil:
		return err
	case updated == 0:
		return fmt.Errorf("run %s: %w", r.ID, errOtherHead)
	}
	return r.checkStored(stored)
}

// textOf returns the stored form of a JSON value. Nil is null.
func textOf(b json.RawMessage) *string {
	if b == nil {
		return nil
	}
	return new(string(b))
}

// errOtherHead means that a head in the database is not the known one.
var errOtherHead = errors.New("its head was changed meanwhile")

// inserts returns the statements that store the added records. They set the elements of stored; 0
// means that the key exists.
func (r *journalRow) inserts(stored []int64) (all []Statement) {
	for i, rec := range r.added {
		body := new(string(rec.Body))
		var digest *string
		if len(rec.Body) >= largeBody {
			// Equal large bodies of a run are stored once.
			sum := sha256.Sum256(rec.Body)
			digest = new(hex.EncodeToString(sum[:]))
			all = append(all, Statement{Text: insertBody, Args: []any{r.number, digest, body}})
			body = nil
		}
		all = append(all, Statement{
			Text: insertRecord,
			Args: []any{r.number, rec.Seq, rec.Key, rec.Kind, rec.Fence, stamp(rec.At), int64(rec.Elapsed),
				body, digest, rec.Hash, rec.Signature},
			Changed: &stored[i],
		})
	}
	return all
}

// checkStored returns an error if the key of an added record existed.
func (r *journalRow) checkStored(stored []int64) error {
	for i, rec := range r.added {
		if stored[i] == 0 {
			return fmt.Errorf("run %s: record %s exists: %w", r.ID, rec.Key, store.ErrConflict)
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
		Summary: summary, Owner: owner, Fence: l.Fence, Until: db.onClock(until), Next: db.onClock(r.Next),
		Created: db.now()}}
	if err := db.addRecords(&row, l.Fence, nil, first); err != nil {
		return l, err
	}
	row.Seal, err = db.ledger.Seal(row.JournalRun)
	if err != nil {
		return l, err
	}

	err = db.backend.Change(ctx, Item{"journal", s, r.ID}, func(tx Conn) (err error) {
		row.number, err = number(ctx, tx, "run", insertHead,
			s.Tenant, s.User, s.Thread, r.ID, r.Agent, r.Task, r.State, textOf(summary), owner, l.Fence,
			stamp(row.Until), row.Records, row.Head, stamp(row.Created), stamp(row.Updated), row.Seal, stamp(row.Next),
			row.Lapses)
		switch {
		// The insertion did nothing, and returned no number.
		case errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("run %s exists: %w", r.ID, store.ErrConflict)
		case err != nil:
			return err
		}
		stored := make([]int64, len(row.added))
		if err := tx.Batch(ctx, row.inserts(stored)); err != nil {
			return err
		}
		return row.checkStored(stored)
	})
	if err != nil {
		return l, err
	}
	if owner != "" {
		db.heads.learn(l, row)
	}
	return l, db.ledger.Store(ctx, row.JournalRun, false)
}

func journalOf(ctx context.Context, tx Conn, s store.Scope, id string) (journalRow, error) {
	r, err := one(ctx, tx, "run "+id, func(row Row) (r journalRow, err error) {
		err = scanHead(row, &r.JournalRun, &r.number)
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

// addRecords appends records, and changes the head.
func (db *DB) addRecords(r *journalRow, fence int64, c *store.JournalChange, records []store.Record) (err error) {
	before := r.Records
	for _, rec := range records {
		rec.Fence = fence
		if err := db.addRecord(r, rec); err != nil {
			return err
		}
	}
	r.Updated = db.now()
	if fence != 0 && len(records) > 0 {
		r.Lapses = 0
	}
	if c == nil {
		return nil
	}

	r.State = c.StateAfter(before)
	r.Next = moment(stamp(db.onClock(c.Next)))
	if c.Summary != nil {
		r.Summary, err = db.jsonValue("summary", c.Summary)
		if err != nil {
			return err
		}
	}
	if c.Release {
		r.Owner = ""
		r.Until = time.Time{}
	}
	return nil
}

// addRecord makes a record the last of the run's chain.
func (db *DB) addRecord(r *journalRow, rec store.Record) (err error) {
	rec.Seq = r.Records + 1
	rec.At = moment(stamp(rec.At))
	rec.Hash = rec.Chain(r.ID, r.Head)
	rec.Signature, err = db.ledger.SignRecord(rec)
	if err != nil {
		return err
	}
	r.Records = rec.Seq
	r.Head = rec.Hash
	r.added = append(r.added, rec)
	return nil
}

// JournalRun returns the head of a run.
func (db *DB) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	return item(ctx, db, s, "run", id, scanJournal, "select "+journalColumns+ofJournal)
}

// ClaimJournal acquires the lease of a run.
func (db *DB) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now, until time.Time) (store.Lease,
	error) {
	l := store.Lease{Scope: s, Run: id, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return l, err
	}
	lasts := until.Sub(now)
	now, err := db.backend.Clock(ctx, db.backend.Read(), now)
	if err != nil {
		return l, err
	}
	until = now.Add(lasts)
	l.Until = until
	r, err := db.changeJournal(ctx, s, id, func(r *journalRow) error {
		if r.Owner != "" && stamp(r.Until) > stamp(now) {
			return fmt.Errorf("run %s is %s's: %w", id, r.Owner, store.ErrConflict)
		}
		if r.Owner != "" { // its lease was not released
			r.Lapses++
		}
		r.Owner = owner
		r.Fence++
		r.Until = until
		return nil
	})
	l.Fence = r.Fence
	l.Lapses = r.Lapses
	if err != nil {
		return l, err
	}
	db.heads.learn(l, r)
	return l, db.ledger.Store(ctx, r.JournalRun, false)
}

// onClock converts a time of this process to the clock by which leases hold.
func (db *DB) onClock(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(db.backend.Ahead())
}

// RenewJournal changes the end of a lease, or releases the lease.
func (db *DB) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (head store.JournalRun, err error) {
	if err := valid(l.Scope, l.Run); err != nil {
		return head, err
	}
	r, err := db.changeHeld(ctx, l, func(r *journalRow) error {
		r.Until = db.onClock(until)
		if until.IsZero() {
			r.Owner = ""
		}
		return nil
	})
	return r.JournalRun, err
}

// AppendJournal appends records under a lease.
func (db *DB) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (last int64, err error) {
	if err := errors.Join(valid(l.Scope, l.Run), db.checkRecords(records)); err != nil {
		return 0, err
	}
	r, err := db.changeHeld(ctx, l, func(r *journalRow) error { return db.addRecords(r, l.Fence, c, records) })
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
	r, err := db.changeJournal(ctx, s, id, func(r *journalRow) error {
		var c *store.JournalChange
		switch {
		case r.State == store.JournalOver:
			return fmt.Errorf("run %s is over: %w", id, store.ErrConflict)
		case r.State == store.JournalWaiting && state != "":
			c = &store.JournalChange{State: state}
		}
		r.Next = time.Time{}
		return db.addRecords(r, 0, c, records)
	})
	if err != nil {
		return err
	}
	return db.ledger.Store(ctx, r.JournalRun, false)
}

// JournalRecords returns the records of a run.
func (db *DB) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	// A run without new records is not a run that does not exist.
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
