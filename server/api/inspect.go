package api

// inspect.go: the forms of what a run did, and of schedules.

import (
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/store"
)

// Effects is the ledger of a run.
type Effects struct {
	// The calls with effects, in their order.
	Effects []journal.LedgerEntry `json:"effects"`
}

// Differences lists where two runs differ.
type Differences struct {
	// The differences, in the order of the runs. Empty means that the runs are equal.
	Differences []journal.Difference `json:"differences"`
}

// Schedules lists the schedules.
type Schedules struct {
	// The schedules, by ID.
	Schedules []store.Schedule `json:"schedules"`
	// Value of after for the next page. Absent on the last page.
	After string `json:"after,omitzero"`
}

// Health reports the state of the server.
type Health struct {
	// /v1/health: ok, or closing. /v1/ready: ready, draining (the server is stopping) or no_store
	// (the store does not work).
	Status string `json:"status"`
}
