// Package sqlite stores data in one file. It needs no server and no setup.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	if err != nil { … }
//	defer db.Close()
//
// The file is created if it does not exist, readable by its owner only. A change is on disk when
// its method returns: the write-ahead log (WAL) is synced at each commit, unless Options.NoSync is
// set. Several processes of one machine may use the file. It must not be on a network file system.
// Deleted data is overwritten. Copies of it may remain in the log until DB.Compact.
//
// Words are searched with FTS5: English words by their stem, ignoring case and accents; Chinese,
// Japanese and Korean letter by letter. A search scores every text that has one of its words, and
// vectors are compared one by one, exactly: each takes tenths of a second for the 100,000 chunks of
// one user.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
	_ "modernc.org/sqlite/vec"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

var (
	//go:embed schema1.sql
	schema1 string
	//go:embed schema2.sql
	schema2 string
	//go:embed schema3.sql
	schema3 string
	//go:embed schema4.sql
	schema4 string
	//go:embed schema5.sql
	schema5 string

	// schemas are the statements that migrate a file to the next version.
	schemas = []string{schema1, schema2, schema3, schema4, schema5}
	version = len(schemas)
)

const applicationID = 0x7061776c // "pawl"

// DB is a store in a file. It is safe for concurrent use.
type DB struct {
	methods
	backend *backend
}

// methods is the implementation of store.Store and store.Journal.
type methods = relational.DB

var (
	_ store.Store     = (*DB)(nil)
	_ store.Journal   = (*DB)(nil)
	_ store.Compacter = (*DB)(nil)
)

// Options are the options of Open. Nil and the zero value take the defaults.
type Options struct {
	Now func() time.Time // clock for Created and Updated; nil means time.Now
	// NoSync does not wait for the disk. If the machine stops (not only the program), the last
	// changes may be lost, or the file corrupted. It is meant for tests.
	NoSync bool
	Ledger *store.Ledger // signs and anchors durable runs; nil means neither
}

// Open opens the store in the file path and creates it if it does not exist. A file with other
// content, or written by a newer version, is an error and is not changed.
func Open(path string, opts *Options) (*DB, error) {
	db, err := open(path, opts)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, available(err))
	}
	return db, nil
}

func open(path string, opts *Options) (*DB, error) {
	if path == "" {
		return nil, errors.New("the path is empty")
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// SQLite would create it readable by others
	f, err := os.OpenFile(full, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return nil, err
	}
	f.Close()
	opts = cmp.Or(opts, new(Options))
	sync := "synchronous(FULL)"
	if opts.NoSync {
		sync = "synchronous(OFF)"
	}
	dsn := func(more ...string) string {
		// The default of 2 MB spills large transactions, and savepoints would write files.
		q := url.Values{"_pragma": append([]string{"busy_timeout(10000)", "foreign_keys(1)", "temp_store(memory)", sync}, more...)}
		return (&url.URL{Scheme: "file", OmitHost: true, Path: full, RawQuery: q.Encode()}).String()
	}
	if err := ours(dsn("query_only(1)")); err != nil {
		return nil, err
	}
	db := &backend{now: time.Now}
	if opts.Now != nil {
		db.now = opts.Now
	}
	pragmas := []string{"journal_mode(WAL)", "cache_size(-65536)", "secure_delete(1)"}
	db.write, err = sql.Open("sqlite", dsn(pragmas...)+"&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.write.SetMaxOpenConns(1)
	if err = db.migrate(context.Background()); err == nil {
		err = db.prepare()
	}
	if err == nil {
		db.read, err = sql.Open("sqlite", dsn("query_only(1)", "cache_size(-8192)"))
	}
	if err != nil {
		db.write.Close()
		return nil, err
	}
	db.read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	db.read.SetMaxIdleConns(max(4, runtime.GOMAXPROCS(0)))
	return &DB{relational.New(db, opts.Ledger), db}, nil
}

// Close closes the file. Methods called after it fail.
func (db *DB) Close() error { return errors.Join(db.backend.read.Close(), db.backend.write.Close()) }

// ours returns an error for a file that does not belong to this program, before anything is written
// to it.
func ours(dsn string) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var id, have, tables int
	err = db.QueryRow(`select (select application_id from pragma_application_id), (select user_version from pragma_user_version),
		(select count(*) from sqlite_schema)`).Scan(&id, &have, &tables)
	switch {
	case err != nil && strings.Contains(err.Error(), "not a database"):
		return errors.New("the file is not an SQLite database")
	case err != nil:
		return err
	case tables > 0 && id != applicationID:
		return errors.New("the file is a database of another program")
	case have > version:
		return fmt.Errorf("the file was written by a newer version (its version is %d, this program supports %d)", have, version)
	}
	return nil
}

// migrate updates the file to the current version.
func (b *backend) migrate(ctx context.Context) error {
	return b.change(ctx, func(tx *sql.Tx) error {
		var have int
		if err := tx.QueryRow("pragma user_version").Scan(&have); err != nil || have == version {
			return err
		}
		for ; have < version; have++ {
			if _, err := tx.Exec(schemas[have]); err != nil {
				return err
			}
		}
		_, err := tx.Exec(fmt.Sprintf("pragma application_id = %d; pragma user_version = %d", applicationID, version))
		return err
	})
}
