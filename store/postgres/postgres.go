// Package postgres stores data in a PostgreSQL database, which several machines may use
// concurrently.
//
//	db, err := postgres.Open(ctx, "postgres://pawl@db.example.com/app", nil)
//	if err != nil { … }
//	defer db.Close()
//
// The address has the form of libpq: a URL or key=value pairs. Missing parts are taken from
// PGPASSWORD, ~/.pgpass and similar sources. No error contains a password. The tables are created
// in the schema pawl, or in the first schema of the address's search_path, so that they can exist
// next to others. Two processes that open a new database concurrently create them once.
//
// The durability of a change when a method returns depends on the database's setting
// synchronous_commit. By default it is on disk.
//
// Words are searched with PostgreSQL's index: English words by their stem, ignoring case and
// accents; Chinese, Japanese and Korean letter by letter. Hits are ranked by BM25, as in
// store/sqlite. The words of the first 384 KiB of a text are searched.
//
// Vectors are compared one by one, exactly. If the extension vector (pgvector) is available when
// the tables are created, the database compares them. If not, results are the same but searches are
// slower: vectors are stored as bytes, and each search by meaning reads the vectors of its scope
// over the network. String says which method is used.
//
// PostgreSQL stores neither NUL nor invalid UTF-8 in texts: such bytes are replaced by U+FFFD.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/store"
)

// DB is a store in a database. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	now     func() time.Time
	at      string // its location, without secrets
	vectors vectorKind
}

var (
	_ store.Store   = (*DB)(nil)
	_ store.Journal = (*DB)(nil)
)

// Options are the options of Open. Nil and the zero value take the defaults.
type Options struct {
	Now func() time.Time // clock for Created and Updated; nil means time.Now
	// NoCreate does not create missing tables: Open then fails with store.ErrNotFound.
	NoCreate bool
}

// Open opens the store at address and creates its tables if they do not exist. A store written by a
// newer version is an error and is not changed. ctx is used only while opening.
func Open(ctx context.Context, address string, opts *Options) (*DB, error) {
	if opts == nil {
		opts = &Options{}
	}
	cfg, err := parse(address)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	schema := searchIn(cfg)
	db := &DB{now: opts.Now, at: place(cfg, schema)}
	if db.now == nil {
		db.now = time.Now
	}
	if db.pool, err = pgxpool.NewWithConfig(ctx, cfg); err == nil {
		if err = db.migrate(ctx, schema, opts.NoCreate); err != nil {
			db.pool.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", db.at, clean(err, address, cfg.ConnConfig.Password))
	}
	return db, nil
}

// Close closes the connections. Methods called after it fail.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// String returns the location of the store and how it compares vectors, without secrets.
func (db *DB) String() string { return "postgresql at " + db.at + ": " + db.vectors.String() }

// change runs fn in a transaction. Transactions with the same lock run one at a time; lock names
// the data that is read and then written.
func (db *DB) change(ctx context.Context, lock string, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", lock); err != nil {
			return err
		}
		return fn(tx)
	})
}

// lock returns the name of an item in a scope.
func lock(kind string, s store.Scope, id string) string {
	return fmt.Sprintf("%s %q %q %q %q", kind, s.Tenant, s.User, s.Thread, id)
}

type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// list reads all rows.
func list[T any](ctx context.Context, q querier, scan func(pgx.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// one reads the only row. It returns store.ErrNotFound if there is none.
func one[T any](ctx context.Context, q querier, what string, scan func(pgx.Rows) (T, error), query string, args ...any) (T, error) {
	all, err := list(ctx, q, scan, query, args...)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return all[0], nil
}

// value reads a column.
func value[T any](r pgx.Rows) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}

// remove executes a statement that deletes an item. It returns store.ErrNotFound if the item does
// not exist.
func (db *DB) remove(ctx context.Context, what, statement string, args ...any) error {
	tag, err := db.pool.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return err
}
