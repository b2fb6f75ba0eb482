package main

import (
	"context"
	"errors"
	"io"
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
	create bool   // it is made where it is not there
	thread string // the conversation that is under way; "": none that is kept

	mu      sync.Mutex
	db      *sqlite.DB
	closers []io.Closer // what its tools have open
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

// open opens the database, or returns the one that is open.
func (d *database) open() (*sqlite.DB, error) { return d.opened(d.create) }

func (d *database) opened(create bool) (*sqlite.DB, error) {
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
	if create || d.create {
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

// toolset is tools over the database, which is opened when one of them is first called, so that they can be shown without one. With create it is made
// then where it is not there.
func (d *database) toolset(create bool, of func(store.Store) (pawl.Toolset, error)) (pawl.Toolset, error) {
	set, err := of(unopened{})
	if err != nil {
		return nil, err
	}
	d.closes(set)
	tools, err := set.Tools(context.Background())
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var real []*pawl.Tool
	open := func(ctx context.Context) ([]*pawl.Tool, error) {
		mu.Lock()
		defer mu.Unlock()
		if real != nil {
			return real, nil
		}
		db, err := d.opened(create)
		if err != nil {
			return nil, err
		}
		set, err := of(db)
		if err != nil {
			return nil, err
		}
		d.closes(set)
		real, err = set.Tools(ctx)
		return real, err
	}
	var all pawl.Toolsets
	for i, t := range tools {
		t = t.Clone()
		t.Run = func(ctx context.Context, call pawl.ToolCall) (pawl.ToolResult, error) {
			tools, err := open(ctx)
			if err != nil {
				return pawl.ToolResult{}, err
			}
			return tools[i].Run(ctx, call)
		}
		all = append(all, t)
	}
	return all, nil
}

// closes keeps what must be closed with the database.
func (d *database) closes(set pawl.Toolset) {
	if c, ok := set.(io.Closer); ok {
		d.mu.Lock()
		d.closers = append(d.closers, c)
		d.mu.Unlock()
	}
}
