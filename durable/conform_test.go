package durable_test

import (
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// Random runs come to the same over every journal.
func TestConformance(t *testing.T) {
	n := soak.N(25, 1000)                // random scripts
	t.Run("memory", func(t *testing.T) { // the same twice
		durabletest.Conform(t, soak.N(10, 50), durabletest.Over(new(store.MemoryJournal)))
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
