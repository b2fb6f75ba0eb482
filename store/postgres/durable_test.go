package postgres_test

import (
	"testing"

	"github.com/pawl-go/pawl/durable/durabletest"
)

// Runs over PostgreSQL have the same outcome as runs over memory.
func TestDurableRuns(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 50
	}
	at := server.URL(t)
	if at == "" {
		return // the reason was reported
	}
	db := open(t, fresh(t, at))
	t.Cleanup(func() { db.Close() })
	durabletest.Conform(t, n, durabletest.Over(db))
}
