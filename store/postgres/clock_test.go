package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
)

// Leases hold by the clock of the server: a process whose clock is 40 s ahead does not take over a
// run that another one executes, and finds no run that is not due yet. The control is a store that
// compares the clocks of the processes.
func TestClockOfTheServer(t *testing.T) {
	for _, row := range []struct {
		name  string
		clock func() time.Time // Options.Now
		taken bool
	}{
		{"the server's clock", nil, false},
		{"control: the clocks of the processes", time.Now, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := fresh(t, server.URL(t))
			opened := func() *postgres.DB {
				db, err := postgres.Open(t.Context(), at, &postgres.Options{Now: row.clock})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				return db
			}
			right, ahead := opened(), opened()
			now := time.Now()
			early := now.Add(40 * time.Second)
			run := store.JournalRun{ID: "r", Agent: "clerk", State: store.JournalOpen}
			lease, err := right.BeginJournal(t.Context(), store.Scope{}, run, "right", now.Add(30*time.Second))
			if err != nil {
				t.Fatal(err)
			}

			due, err := ahead.DueRuns(t.Context(), store.DueQuery{Now: early})
			if err != nil || (len(due) == 1) != row.taken {
				t.Errorf("to the process that is ahead, %d runs are due, %v", len(due), err)
			}
			_, err = ahead.ClaimJournal(t.Context(), store.Scope{}, "r", "ahead", early, early.Add(30*time.Second))
			if taken := err == nil; taken != row.taken || !taken && !errors.Is(err, store.ErrConflict) {
				t.Fatalf("its claim: %v", err)
			}
			if _, err := right.RenewJournal(t.Context(), lease, now.Add(30*time.Second)); (err == nil) == row.taken {
				t.Errorf("the renewal of the other one: %v", err)
			}
			if row.taken {
				return
			}

			// The lease of a process that is ahead ends when it says, by the server's clock.
			begun := store.JournalRun{ID: "b", Agent: "clerk", State: store.JournalOpen}
			_, err = ahead.BeginJournal(t.Context(), store.Scope{}, begun, "ahead", early.Add(30*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			head, err := ahead.JournalRun(t.Context(), store.Scope{}, "b")
			if lasts := head.Until.Sub(now); err != nil || lasts < 20*time.Second || lasts > 40*time.Second {
				t.Errorf("the lease of 30 s ends after %v, %v", lasts, err)
			}
		})
	}
}
