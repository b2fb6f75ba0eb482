package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Old runs are listed, due schedules are paused, and all data of one user is deleted.
func TestErase(t *testing.T) {
	for name, s := range backends {
		t.Run(name, func(t *testing.T) {
			at := s.URL(t)
			db := open(t, fresh(t, at))
			t.Cleanup(func() { db.Close() })
			ctx, now := t.Context(), time.Now()
			for _, user := range []string{"ann", "bob"} {
				s := store.Scope{Tenant: "acme", User: user}
				_, err := db.BeginJournal(ctx, s, store.JournalRun{ID: "run", State: store.JournalOver}, "me", now)
				_, threadErr := db.PutThread(ctx, s, store.Thread{ID: "t"})
				_, scheduleErr := db.PutSchedule(ctx, s, store.Schedule{ID: "s", Name: "n", When: "0 9 * * *", Zone: "UTC",
					Enabled: true, Next: now.Add(-time.Hour)})
				_, documentErr := db.PutDocument(ctx, s, store.Document{ID: "d"}, []store.Chunk{{Text: "words"}})
				if err := errors.Join(err, threadErr, scheduleErr, documentErr,
					db.AppendMessages(ctx, s, "t", 0, llm.User("hello"))); err != nil {
					t.Fatal(err)
				}
			}
			later := now.Add(time.Minute)
			runs, err := db.EndedRuns(ctx, store.JournalOver, "acme", "", later, later)
			of, ofErr := db.EndedRuns(ctx, store.JournalOver, "", "ann", later, later)
			if err != nil || ofErr != nil || len(runs) != 2 || len(of) != 1 {
				t.Fatal(runs, of, err, ofErr)
			}
			if n, err := db.PauseSchedules(ctx, now); err != nil || n != 2 {
				t.Fatal(n, err)
			}
			if err := db.Erase(ctx, "acme", "ann"); err != nil {
				t.Fatal(err)
			}
			for user, want := range map[string]error{"ann": store.ErrNotFound, "bob": nil} {
				s := store.Scope{Tenant: "acme", User: user}
				_, run := db.JournalRun(ctx, s, "run")
				_, thread := db.Thread(ctx, s, "t")
				_, schedule := db.Schedule(ctx, s, "s")
				_, document := db.Document(ctx, s, "d")
				for _, err := range []error{run, thread, schedule, document} {
					if !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", user, err, want)
					}
				}
			}
		})
	}
}
