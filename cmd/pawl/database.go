package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// storeFlags say where what is kept between runs is, and whose it is.
type storeFlags struct {
	DB     string `name:"db" placeholder:"FILE" help:"The database with what is kept between runs. Default: pawl/pawl.db where the user's data is (XDG_DATA_HOME, else ~/.local/share)."`
	Tenant string `placeholder:"NAME" help:"Whose it is: the tenant. Default: none."`
	User   string `placeholder:"NAME" help:"Whose it is: the user. Default: none."`
}

func (f *storeFlags) scope() store.Scope { return store.Scope{Tenant: f.Tenant, User: f.User} }

// database is a store that is opened when it is first needed. It may be used concurrently.
type database struct {
	flags  storeFlags
	env    func(string) string
	create bool // it is made where it is not there

	mu sync.Mutex
	db *sqlite.DB
}

// path is where the database is.
func (d *database) path() (string, error) {
	if d.flags.DB != "" {
		return d.flags.DB, nil
	}
	if dir := d.env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawl", "pawl.db"), nil
	}
	home := d.env("HOME")
	if home == "" {
		return "", usage("--db FILE", "HOME is not set, so there is no place for the database")
	}
	return filepath.Join(home, ".local", "share", "pawl", "pawl.db"), nil
}

func (d *database) open() (*sqlite.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db != nil {
		return d.db, nil
	}
	scope := d.flags.scope()
	if err := scope.Check(); err != nil {
		return nil, usage("", "%v", err)
	}
	path, err := d.path()
	if err != nil {
		return nil, err
	}
	if d.create {
		if d.flags.DB == "" {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, usage("--db FILE", "%s", plain(err))
			}
		}
	} else if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, usage("pawl knowledge add FILE makes it", "there is no database %s", path)
	}
	if d.db, err = sqlite.Open(path, nil); err != nil {
		return nil, usage("--db takes a file of pawl's own, or one that is not there yet", "%v", err)
	}
	return d.db, nil
}

// Close closes it, where it was opened.
func (d *database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db == nil {
		return nil
	}
	return d.db.Close()
}

// tool is a tool over the database that opens it when it is first called, so that a tool can be shown without one.
func (d *database) tool(of func(store.Store) *pawl.Tool) *pawl.Tool {
	t := of(nil).Clone()
	t.Run = func(ctx context.Context, call pawl.ToolCall) (pawl.ToolResult, error) {
		db, err := d.open()
		if err != nil {
			return pawl.ToolResult{}, err
		}
		return of(db).Run(ctx, call)
	}
	return t
}
