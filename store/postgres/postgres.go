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
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

// DB is a store in a database. It is safe for concurrent use.
type DB struct {
	methods
	backend *backend
	at      string // its location, without secrets
}

// methods is the implementation of store.Store and store.Journal.
type methods = relational.DB

var (
	_ store.Store   = (*DB)(nil)
	_ store.Journal = (*DB)(nil)
)

// Options are the options of Open. Nil and the zero value take the defaults.
type Options struct {
	// Now is the clock for Created and Updated, and for leases. Nil means time.Now for the former,
	// and the clock of the server for leases, which hold although the clocks of machines differ.
	Now func() time.Time
	// NoCreate does not create missing tables: Open then fails with store.ErrNotFound.
	NoCreate bool
	Ledger   *store.Ledger // signs and anchors durable runs; nil means neither
}

// Open opens the store at address and creates its tables if they do not exist. A store written by a
// newer version is an error and is not changed. ctx is used only while opening.
func Open(ctx context.Context, address string, opts *Options) (*DB, error) {
	opts = cmp.Or(opts, &Options{})
	cfg, err := parse(address)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	schema := searchIn(cfg)
	at := place(cfg, schema)
	b := &backend{now: opts.Now, ownClock: opts.Now == nil}
	if b.now == nil {
		b.now = time.Now
	}
	b.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		err = b.migrate(ctx, schema, opts.NoCreate)
		if err == nil {
			_, err = b.Clock(ctx, b.Read(), b.now())
		}
		if err != nil {
			b.pool.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", at, clean(available(err), address, cfg.ConnConfig.Password))
	}
	return &DB{relational.New(b, opts.Ledger), b, at}, nil
}

// Close closes the connections. Methods called after it fail.
func (db *DB) Close() error {
	db.backend.pool.Close()
	return nil
}

// String returns the location of the store and how it compares vectors, without secrets.
func (db *DB) String() string { return "postgresql at " + db.at + ": " + db.backend.vectors.says }
