package postgres_test

import (
	"testing"

	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// Runs over PostgreSQL have the same outcome as runs over memory.
func TestDurableRuns(t *testing.T) {
	n := soak.N(40, 1000) // random scripts
	at := server.URL(t)
	db := open(t, fresh(t, at))
	t.Cleanup(func() { db.Close() })
	durabletest.Conform(t, n, durabletest.Over(db))
}
