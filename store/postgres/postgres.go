// Package postgres keeps a store in a PostgreSQL database, which several machines may use at once.
//
//	db, err := postgres.Open(ctx, "postgres://pawl@db.example.com/app", nil)
//	if err != nil { … }
//	defer db.Close()
//
// The address is one of libpq's: a URL or key=value pairs, and what it leaves out is taken from PGPASSWORD, ~/.pgpass and their like. A password
// is in no error. The tables are made in the schema pawl, or in the first of the address's search_path, so that they live beside others; two
// processes that open a new database at once make them once.
//
// What a method has changed is as safe when it returns as the database's setting synchronous_commit says; by default it is on disk.
//
// Words are searched by PostgreSQL's own index, English ones by their stem, without regard to case and accents; Chinese, Japanese and Korean letter by
// letter. What is found is ranked by BM25, as store/sqlite does. Of one text the words of the first 384 KiB are searched.
//
// Vectors are compared one by one, exactly. Where the extension vector (pgvector) can be had when the tables are made, the database compares them. Where it
// cannot, nothing is lost but time: they are kept as bytes, and each search by meaning reads those of its scope over the network. String says which.
//
// PostgreSQL keeps no NUL in a text and nothing that is not UTF-8: such bytes are kept as U+FFFD.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/store"
)

// DB is a store in a database. It may be used concurrently.
type DB struct {
	pool    *pgxpool.Pool
	now     func() time.Time
	at      string // where it is, without secrets
	vectors vectorKind
}

var (
	_ store.Store   = (*DB)(nil)
	_ store.Journal = (*DB)(nil)
)

// Options are what Open can be told. Nil and the zero value are the defaults.
type Options struct {
	Now      func() time.Time // the clock for Created and Updated; nil: time.Now
	NoCreate bool             // the tables are not made where they are not there: Open fails with store.ErrNotFound
}

// Open opens the store at address, and makes its tables where they are not there. A store that was written by a newer version is an error and stays
// as it is. ctx is for the opening only.
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

// Close ends the use of the database. Methods fail after it.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// String says where the store is, and how it compares vectors. No secret is in it.
func (db *DB) String() string { return "postgresql at " + db.at + ": " + db.vectors.String() }

// change runs fn in a transaction, one at a time among those with the same lock, which names what is read first and then written.
func (db *DB) change(ctx context.Context, lock string, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", lock); err != nil {
			return err
		}
		return fn(tx)
	})
}

// lock names one thing of a scope.
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

// one reads the one row there is; store.ErrNotFound when there is none.
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

// remove deletes what a statement names; store.ErrNotFound when it is not there.
func (db *DB) remove(ctx context.Context, what, statement string, args ...any) error {
	tag, err := db.pool.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return err
}
