package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
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
		return "", finding(CodeUnavailable, "store.db", "name the file", "HOME is not set, so there is no place for the database")
	}
	return filepath.Join(home, ".local", "share", "pawl", "pawl.db"), nil
}

// Database is a store that is opened when it is first needed. Close it. It may be used concurrently.
type Database struct {
	at     Store
	env    func(string) string
	create bool

	mu sync.Mutex
	db *sqlite.DB
}

// NewDatabase returns the database that s says; getenv nil is os.Getenv. With create it is made where it is not there. Nothing is opened yet.
func NewDatabase(s Store, getenv func(string) string, create bool) *Database {
	if getenv == nil {
		getenv = os.Getenv
	}
	return &Database{at: s, env: getenv, create: create}
}

// Path returns the file that Open opens.
func (d *Database) Path() (string, error) { return d.at.path(d.env) }

// Open opens it, once. The error is a *Finding.
func (d *Database) Open() (*sqlite.DB, error) {
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
	if d.create {
		if d.at.DB == "" {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, finding(CodeBadFile, "store.db", "name another file", "%s", plain(err))
			}
		}
	} else if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, finding(CodeBadFile, "store.db", "pawl knowledge add FILE makes it", "there is no database %s", path)
	}
	if d.db, err = sqlite.Open(path, nil); err != nil {
		return nil, finding(CodeBadFile, "store.db", "want a file of pawl's own, or one that is not there yet", "%v", err)
	}
	return d.db, nil
}

// Close closes it, where it was opened.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db == nil {
		return nil
	}
	return d.db.Close()
}

// tool is a tool over the database that opens it when it is first called, so that a tool can be shown without one.
func (d *Database) tool(of func(store.Store) *pawl.Tool) *pawl.Tool {
	t := of(nil).Clone()
	t.Run = func(ctx context.Context, call pawl.ToolCall) (pawl.ToolResult, error) {
		db, err := d.Open()
		if err != nil {
			return pawl.ToolResult{}, err
		}
		return of(db).Run(ctx, call)
	}
	return t
}

// Open opens the embedding model; without one it returns nil. The error is a *Finding.
func (e Embed) Open() (store.Embedder, error) {
	if e.Model == "" {
		if e.URL != "" {
			return nil, finding(CodeConflict, "embed.base_url", "name an embedding model", "an address stands here for an embedding model that is not given")
		}
		return nil, nil
	}
	m, err := provider.OpenEmbedder(e.Model, &provider.Options{BaseURL: e.URL})
	if err != nil {
		return nil, finding(CodeUnknownModel, "embed.model", "such as openai:text-embedding-3-small or ollama:nomic-embed-text", "%v", err)
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
