package assemble

import (
	"context"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// Stored is a kind of entry of the database, for the commands that list, show and delete entries
// and for completion.
type Stored[T any] struct {
	Kind    string // the word for one entry in errors
	Command string // the command that lists the entries
	ID      func(T) string
	Text    func(T) string // what completion shows next to the ID
	All     func(context.Context, store.Store, store.Scope) ([]T, error)
	Remove  func(store.Store, context.Context, store.Scope, string) error
	Head    string // the columns of a list, separated by "|"
	Row     func(T) []any
}

// Pages returns a function that reads all pages of a list.
func Pages[T any](page func(store.Store, context.Context, store.Scope, store.Page) ([]T, error),
	id func(T) string) func(context.Context, store.Store, store.Scope) ([]T, error) {
	return func(ctx context.Context, db store.Store, s store.Scope) ([]T, error) {
		return cli.Everything(func(p store.Page) ([]T, error) { return page(db, ctx, s, p) }, id)
	}
}

// ListFlags are the flags of a command that lists entries.
type ListFlags struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	StoreFlags
}

// List prints the entries of the user.
func (k Stored[T]) List(sys *cli.System, f *ListFlags) error {
	return f.With(sys, false, func(ctx context.Context, db store.Store) error {
		all, err := k.All(ctx, db, f.Scope())
		if err != nil {
			return err
		}
		return cli.List(sys.Out, f.JSON, all, k.Head, k.Row)
	})
}

// Delete removes entries, and reports the first missing entry.
func (k Stored[T]) Delete(sys *cli.System, f *StoreFlags, ids []string) error {
	return f.With(sys, false, func(ctx context.Context, db store.Store) error {
		return cli.Deleted(sys.Out, ids, func(id string) error { return k.Remove(db, ctx, f.Scope(), id) },
			func(id string) error { return k.Unknown(ctx, db, f.Scope(), id) })
	})
}

// Unknown returns the failure for an ID that is not stored.
func (k Stored[T]) Unknown(ctx context.Context, db store.Store, s store.Scope, id string) error {
	all, err := k.All(ctx, db, s)
	if err != nil {
		return err
	}
	return cli.Unknown(k.Kind, id, cli.Names(all, k.ID), k.Command)
}

// With calls do with the database of the flags, and closes it.
func (f *StoreFlags) With(sys *cli.System, create bool, do func(context.Context, store.Store) error) error {
	d, db, err := f.Open(sys, create)
	if err != nil {
		return err
	}
	defer d.Close()
	return do(context.Background(), db)
}
