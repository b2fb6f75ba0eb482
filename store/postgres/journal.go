package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

// largeBody is the size from which a body is stored in a separate table, so that scanning a run's
// records stays cheap.
const largeBody = 16 << 10

const (
	journalColumns = "tenant, userid, thread, id, agent, task, state, summary, owner, fence, until, records, head, created, updated"
	ofJournal      = " from journals where tenant = $1 and userid = $2 and thread = $3 and id = $4"
)

func scanJournal(r pgx.Rows) (v store.JournalRun, err error) {
	var summary *string
	var until, created, updated int64
	err = r.Scan(&v.Scope.Tenant, &v.Scope.User, &v.Scope.Thread, &v.ID, &v.Agent, &v.Task, &v.State, &summary, &v.Owner, &v.Fence, &until, &v.Records, &v.Head, &created, &updated)
	v.Summary, v.Until, v.Created, v.Updated = raw(summary), moment(until), moment(created), moment(updated)
	return v, err
}

// changeJournal is change for a run.
func (db *DB) changeJournal(ctx context.Context, s store.Scope, id string, fn func(tx pgx.Tx) error) error {
	return db.change(ctx, lock("journal", s, id), fn)
}

// checkRecords returns an error for a record that cannot be stored unchanged, because the content
// of a chain is not replaced.
func checkRecords(records []store.Record) error {
	for _, r := range records {
		if plain(r.Key) != r.Key || plain(r.Kind) != r.Kind || plain(string(r.Body)) != string(r.Body) {
			return fmt.Errorf("record %q is not UTF-8 or has a NUL, which PostgreSQL does not store", r.Key)
		}
	}
	return store.CheckRecords(records)
}

// BeginJournal creates a run.
func (db *DB) BeginJournal(ctx context.Context, s store.Scope, r store.JournalRun, owner string, until time.Time, first ...store.Record) (store.Lease, error) {
	l := store.Lease{Scope: s, Run: r.ID, Owner: owner, Fence: 1, Until: until}
	if err := errors.Join(valid(s, r.ID), checkRecords(first)); err != nil {
		return l, err
	}
	summary, err := jsonText("summary", r.Summary)
	if err != nil {
		return l, err
	}
	now := stamp(db.now())
	return l, db.changeJournal(ctx, s, r.ID, func(tx pgx.Tx) error {
		n, err := one(ctx, tx, "run", value[int64], "insert into journals ("+journalColumns+") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, 0, '', $11, $11) on conflict do nothing returning n",
			s.Tenant, s.User, s.Thread, r.ID, plain(r.Agent), plain(r.Task), r.State, summary, plain(owner), stamp(until), now)
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

func journalOf(ctx context.Context, tx pgx.Tx, s store.Scope, id string) (journalRow, error) {
	return one(ctx, tx, "run "+id, func(rows pgx.Rows) (journalRow, error) {
		r := journalRow{id: id}
		return r, rows.Scan(&r.n, &r.records, &r.head, &r.owner, &r.fence, &r.state)
	}, "select n, records, head, owner, fence, state"+ofJournal, s.Tenant, s.User, s.Thread, id)
}

// leased returns the run of a lease. It returns an error if the lease was lost.
func leased(ctx context.Context, tx pgx.Tx, l store.Lease) (journalRow, error) {
	r, err := journalOf(ctx, tx, l.Scope, l.Run)
	if err == nil && (r.fence != l.Fence || r.owner != l.Owner) {
		err = fmt.Errorf("the lease of run %s was lost: %w", l.Run, store.ErrConflict)
	}
	return r, err
}

// addRecords appends records and changes the head, in one batch.
func (db *DB) addRecords(ctx context.Context, tx pgx.Tx, r journalRow, fence int64, c *store.JournalChange, records []store.Record) (int64, error) {
	var batch pgx.Batch
	var twice string // the first record whose key exists already
	for _, rec := range records {
		rec.Seq, rec.Fence, rec.At = r.records+1, fence, moment(stamp(rec.At))
		rec.Hash = rec.Chain(r.id, r.head)
		r.records, r.head = rec.Seq, rec.Hash
		body, digest := new(string(rec.Body)), (*string)(nil)
		if len(rec.Body) >= largeBody {
			sum := sha256.Sum256(rec.Body)
			digest = new(hex.EncodeToString(sum[:]))
			batch.Queue("insert into bodies (journal, digest, body) values ($1, $2, $3) on conflict do nothing", r.n, digest, body)
			body = nil
		}
		batch.Queue("insert into records (journal, seq, key, kind, fence, at, elapsed, body, digest, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (journal, key) do nothing returning key",
			r.n, rec.Seq, rec.Key, rec.Kind, fence, stamp(rec.At), int64(rec.Elapsed), body, digest, rec.Hash).Query(func(rows pgx.Rows) error {
			kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err == nil && len(kept) == 0 && twice == "" {
				twice = rec.Key
			}
			return err
		})
	}
	set, args := "records = $2, head = $3, updated = $4", []any{r.n, r.records, r.head, stamp(db.now())}
	if c != nil {
		summary, err := jsonText("summary", c.Summary)
		if err != nil {
			return 0, err
		}
		set, args = set+", state = $5, summary = coalesce($6, summary)", append(args, c.State, summary)
		if c.Release {
			set += ", owner = '', until = 0"
		}
	}
	batch.Queue("update journals set "+set+" where n = $1", args...)
	err := tx.SendBatch(ctx, &batch).Close()
	if err == nil && twice != "" {
		err = fmt.Errorf("run %s: record %s exists: %w", r.id, twice, store.ErrConflict)
	}
	return r.records, err
}

// JournalRun returns the head of a run.
func (db *DB) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	if err := valid(s, id); err != nil {
		return store.JournalRun{}, err
	}
	return one(ctx, db.pool, "run "+id, scanJournal, "select "+journalColumns+ofJournal, s.Tenant, s.User, s.Thread, id)
}

// JournalRuns lists heads by ID.
func (db *DB) JournalRuns(ctx context.Context, s store.Scope, state string, p store.Page) ([]store.JournalRun, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanJournal, "select "+journalColumns+" from journals where tenant = $1 and userid = $2 and thread = $3 and id > $4 and ($5 = '' or state = $5) order by id limit $6",
		s.Tenant, s.User, s.Thread, plain(p.After), state, p.Size())
}

// AbandonedRuns lists open runs whose lease has expired.
func (db *DB) AbandonedRuns(ctx context.Context, now time.Time, limit int) ([]store.JournalRun, error) {
	return list(ctx, db.pool, scanJournal, "select "+journalColumns+" from journals where state = 'open' and until <= $1 order by updated limit $2", stamp(now), store.Page{Limit: limit}.Size())
}

// ClaimJournal acquires the lease of a run.
func (db *DB) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now, until time.Time) (store.Lease, error) {
	l := store.Lease{Scope: s, Run: id, Owner: owner, Until: until}
	if err := valid(s, id, owner); err != nil {
		return l, err
	}
	return l, db.changeJournal(ctx, s, id, func(tx pgx.Tx) error {
		r, err := journalOf(ctx, tx, s, id)
		if err != nil {
			return err
		}
		l.Fence = r.fence + 1
		tag, err := tx.Exec(ctx, "update journals set owner = $2, fence = $3, until = $4 where n = $1 and (owner = '' or until <= $5)", r.n, owner, l.Fence, stamp(until), stamp(now))
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("run %s is %s's: %w", id, r.owner, store.ErrConflict)
		}
		return err
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
	err = db.changeJournal(ctx, l.Scope, l.Run, func(tx pgx.Tx) error {
		r, err := leased(ctx, tx, l)
		if err != nil {
			return err
		}
		head, err = one(ctx, tx, "run "+l.Run, scanJournal, "update journals set owner = $2, until = $3 where n = $1 returning "+journalColumns, r.n, owner, stamp(until))
		return err
	})
	return head, err
}

// AppendJournal appends records under a lease.
func (db *DB) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange, records ...store.Record) (last int64, err error) {
	if err := errors.Join(valid(l.Scope, l.Run), checkRecords(records)); err != nil {
		return 0, err
	}
	err = db.changeJournal(ctx, l.Scope, l.Run, func(tx pgx.Tx) error {
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
	if err := errors.Join(valid(s, id), checkRecords(records)); err != nil {
		return err
	}
	return db.changeJournal(ctx, s, id, func(tx pgx.Tx) error {
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
	scan := func(r pgx.Rows) (v store.Record, err error) {
		var body *string
		var at, elapsed int64
		err = r.Scan(&v.Seq, &v.Key, &v.Kind, &v.Fence, &at, &elapsed, &body, &v.Hash)
		v.At, v.Elapsed = moment(at), time.Duration(elapsed)
		if err == nil && body == nil {
			return v, fmt.Errorf("run %s: the body of record %d is not there", id, v.Seq)
		}
		v.Body = raw(body)
		return v, err
	}
	return list(ctx, db.pool, scan, `select r.seq, r.key, r.kind, r.fence, r.at, r.elapsed, coalesce(r.body, b.body), r.hash from records r left join bodies b on b.journal = r.journal and b.digest = r.digest
		where r.journal = (select n`+ofJournal+`) and r.seq > $5 order by r.seq`, s.Tenant, s.User, s.Thread, id, after)
}

// DeleteJournal deletes a run with its records.
func (db *DB) DeleteJournal(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.remove(ctx, "run "+id, "delete"+ofJournal, s.Tenant, s.User, s.Thread, id)
}
