package agentfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
	"github.com/pawl-go/pawl/store/sqlite"
)

// Scope returns whose the store is.
func (s Store) Scope() store.Scope { return store.Scope{Tenant: s.Tenant, User: s.User} }

// path is where the database is.
func (s Store) path(env func(string) string) (string, error) {
	if s.DB != "" {
		return s.DB, nil
	}
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawl", "pawl.db"), nil
	}
	home := env("HOME")
	if home == "" {
		return "", finding(CodeUnavailable, "store.db", "name the file",
			"HOME is not set, so there is no place for the database")
	}
	return filepath.Join(home, ".local", "share", "pawl", "pawl.db"), nil
}

// Database is a store that is opened at its first use. Close it. It may be used concurrently.
type Database struct {
	at     Store
	env    func(string) string
	create bool

	mu      sync.Mutex
	db      store.Store
	closers []io.Closer // what its tools have open
}

// NewDatabase returns the database of s, without opening it. A nil getenv means os.Getenv. With
// create, a database that does not exist is created.
func NewDatabase(s Store, getenv func(string) string, create bool) *Database {
	if getenv == nil {
		getenv = os.Getenv
	}
	return &Database{at: s, env: getenv, create: create}
}

// Path returns the file, or the address of a PostgreSQL database. Do not print an address: it may
// contain a password.
func (d *Database) Path() (string, error) { return d.at.path(d.env) }

// Open opens the database, or returns the open one. The error is a *Finding.
func (d *Database) Open() (store.Store, error) { return d.opened(false) }

// Create is Open, but creates a database that does not exist.
func (d *Database) Create() (store.Store, error) { return d.opened(true) }

// current returns the database if it is open, and otherwise nil.
func (d *Database) current() store.Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.db
}

func (d *Database) opened(create bool) (store.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db != nil {
		return d.db, nil
	}

	if err := d.at.Scope().Check(); err != nil {
		return nil, finding(CodeBadValue, "store.tenant", "", "%v", err)
	}
	path, err := d.Path()
	if err != nil {
		return nil, err
	}
	l, err := ledger(d.env)
	if err != nil {
		return nil, err
	}

	open := d.openFile
	if d.at.isServer() {
		open = openServer
	}
	db, err := open(path, create || d.create, l)
	if err == nil { // db is not nil then
		d.db = db
	}
	return d.db, err
}

// isServer reports whether the database is at an address, and not in a file.
func (s Store) isServer() bool {
	return strings.HasPrefix(s.DB, "postgres://") || strings.HasPrefix(s.DB, "postgresql://")
}

const makesIt = "pawl knowledge add FILE makes it, and so do runs with the sets remember, skill or schedule"

func (d *Database) openFile(path string, create bool, l *store.Ledger) (store.Store, error) {
	if create {
		if d.at.DB == "" {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, finding(CodeBadFile, "store.db", "name another file", "%s", plain(err))
			}
		}
	} else if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, finding(CodeBadFile, "store.db", makesIt, "there is no database %s", path).because(store.ErrNotFound)
	}
	db, err := sqlite.Open(path, &sqlite.Options{Ledger: l})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, finding(CodeBadFile, "store.db",
			"this user must be permitted to write the file and its folder", "%v", err).because(err)
	case err != nil:
		return nil, finding(CodeBadFile, "store.db",
			"want a database file of pawl, a new file, or postgres://USER@HOST/DATABASE", "%v", err).because(err)
	}
	return db, nil
}

func openServer(address string, create bool, l *store.Ledger) (store.Store, error) {
	db, err := postgres.Open(context.Background(), address, &postgres.Options{NoCreate: !create, Ledger: l})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, finding(CodeUnavailable, "store.db", makesIt, "%v", err).because(err)
	case err != nil:
		return nil, finding(CodeUnavailable, "store.db",
			"want postgres://USER@HOST/DATABASE; the password may also be in PGPASSWORD or ~/.pgpass",
			"%v", err).because(err)
	}
	return db, nil
}

// Close closes the database if it is open.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, c := range d.closers {
		errs = append(errs, c.Close())
	}
	if d.db != nil {
		errs = append(errs, d.db.Close())
	}
	return errors.Join(errs...)
}

// unopened stands for a store while a tool is only shown: it has no method that can be called.
type unopened struct{ store.Store }

// toolset returns tools over the database. It is opened at the first call, so that tools can be
// listed without one; with create, it is then created if it does not exist.
func (d *Database) toolset(create bool, of func(store.Store) (pawl.Toolset, error)) (pawl.Toolset, error) {
	set, err := of(unopened{})
	if err != nil {
		return nil, err
	}
	d.closes(set)
	tools, err := set.Tools(context.Background())
	if err != nil {
		return nil, err
	}

	late := &lateTools{database: d, create: create, of: of}
	var all pawl.Toolsets
	for i, t := range tools {
		t = t.Clone()
		t.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			tools, err := late.open(ctx)
			if err != nil {
				return llm.ToolResult{}, err
			}
			return tools[i].Run(ctx, call)
		}
		all = append(all, t)
	}
	return all, nil
}

// lateTools are the tools of a database that is opened at the first call.
type lateTools struct {
	database *Database
	create   bool
	of       func(store.Store) (pawl.Toolset, error)

	mu    sync.Mutex
	tools []*pawl.Tool // nil before the database was opened
}

// open returns the tools over the opened database. After an error the next call tries again.
func (l *lateTools) open(ctx context.Context) ([]*pawl.Tool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tools != nil {
		return l.tools, nil
	}

	db, err := l.database.opened(l.create)
	if err != nil {
		return nil, err
	}
	set, err := l.of(db)
	if err != nil {
		return nil, err
	}
	l.database.closes(set)
	l.tools, err = set.Tools(ctx)
	return l.tools, err
}

// closes adds a toolset that is closed with the database.
func (d *Database) closes(set pawl.Toolset) {
	if c, ok := set.(io.Closer); ok {
		d.mu.Lock()
		d.closers = append(d.closers, c)
		d.mu.Unlock()
	}
}

// Open opens the embedding model; without one it returns nil. The error is a *Finding.
func (e Embed) Open() (store.Embedder, error) {
	if e.Model == "" {
		if e.URL != "" {
			return nil, finding(CodeConflict, "embed.base_url", "name an embedding model",
				"an address is given without an embedding model")
		}
		return nil, nil
	}
	m, err := provider.OpenEmbedder(e.Model, &provider.Options{BaseURL: e.URL})
	if err != nil {
		return nil, finding(CodeUnknownModel, "embed.model",
			"such as openai:text-embedding-3-small or ollama:nomic-embed-text", "%v", err)
	}
	return m, nil
}

// plain words an error about a file without the name of the system call.
func plain(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}
