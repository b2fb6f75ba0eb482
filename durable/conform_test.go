package durable_test

import (
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// A thousand random runs have the same outcome over every journal.
func TestConformance(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	t.Run("memory", func(t *testing.T) { // the same journal twice
		durabletest.Conform(t, 50, durabletest.Over(new(store.MemoryJournal)))
	})
	t.Run("sqlite", func(t *testing.T) {
		// Other tests cover syncs to disk.
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		durabletest.Conform(t, n, durabletest.Over(db))
	})
}
