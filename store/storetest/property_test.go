package storetest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// widened is a store that ignores a part of the scope in one method.
type widened struct{ store.Store }

type (
	widerSearch struct{ widened }
	widerList   struct{ widened }
	widerDelete struct{ widened }
)

// SearchChunks ignores the thread.
func (w widerSearch) SearchChunks(ctx context.Context, s store.Scope, q store.Query) ([]store.ChunkHit, error) {
	s.Thread = ""
	return w.Store.SearchChunks(ctx, s, q)
}

// Runs ignores the user.
func (w widerList) Runs(ctx context.Context, s store.Scope, p store.Page) ([]store.Run, error) {
	own, err := w.Store.Runs(ctx, s, p)
	if err != nil || s == s.Shared() {
		return own, err
	}
	more, err := w.Store.Runs(ctx, s.Shared(), p)
	return append(own, more...), err
}

// DeleteSkill deletes another user's skill if there is no own one.
func (w widerDelete) DeleteSkill(ctx context.Context, s store.Scope, name string) error {
	if err := w.Store.DeleteSkill(ctx, s, name); err == nil {
		return nil
	}
	return w.Store.DeleteSkill(ctx, s.Shared(), name)
}

// The property fails for stores that mix scopes, and holds for a correct store.
func TestPropertyFindsCrossing(t *testing.T) {
	soak.Sequential(t)
	for name, of := range map[string]func(store.Store) store.Store{
		"":                 func(db store.Store) store.Store { return db },
		"a wider search":   func(db store.Store) store.Store { return widerSearch{widened{db}} },
		"a wider list":     func(db store.Store) store.Store { return widerList{widened{db}} },
		"a wider deletion": func(db store.Store) store.Store { return widerDelete{widened{db}} },
	} {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for seed := uint64(4); err == nil && (seed == 4 || seed < 12 && name != ""); seed++ {
			err = crossed(t.Context(), of(db), seed, 100)
		}
		if (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		} else if err != nil {
			t.Logf("%s: %v", name, err)
		}
		db.Close()
	}
}
