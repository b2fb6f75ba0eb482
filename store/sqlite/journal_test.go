package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
)

// The holder of a lease does not read the head of its run again. A head that another program has
// changed is found nevertheless, at its next change or at the next look at the run.
func TestChangedHeadOfALiveRun(t *testing.T) {
	who := store.Scope{Tenant: "acme"}
	record := func(key string) store.Record {
		return store.Record{Key: key, Kind: "test", At: time.Now(), Body: []byte(`1`)}
	}
	for column, value := range map[string]any{
		"agent": "thief", "task": "steal", "state": "over", "summary": "{}", "owner": "thief", "fence": 7, "until": 7,
		"records": 7, "head": "00", "created": 7, "updated": 7, "seal": "1.00.00",
	} {
		path := filepath.Join(t.TempDir(), "pawl.db")
		db := open(t, path)
		defer db.Close()
		run := store.JournalRun{ID: "r", State: store.JournalOpen}
		l, err := db.BeginJournal(t.Context(), who, run, "me", time.Now().Add(time.Hour), record("begin"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.AppendJournal(t.Context(), l, nil, record("a")); err != nil {
			t.Fatalf("the control, an unchanged head: %v", err)
		}

		other, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.Exec("update journals set "+column+" = ?", value); err != nil {
			t.Fatal(err)
		}

		_, changeErr := db.AppendJournal(t.Context(), l, nil, record("b"))
		head, err := db.JournalRun(t.Context(), who, "r")
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(changeErr, store.ErrCorrupt) && !errors.Is(head.CheckSeal(), store.ErrCorrupt) {
			t.Errorf("%s: neither the change (%v) nor the head (%v) shows it", column, changeErr, head.CheckSeal())
		}
	}
}

// A file of the first version is migrated and keeps its data.
func TestOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	schema, err := os.ReadFile("schema1.sql")
	if err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(string(schema) + `; pragma application_id = 0x7061776c; pragma user_version = 1;
		insert into threads (tenant, user, id, title, created, updated) values ('', '', 't', 'kept', 1, 1)`); err != nil {
		t.Fatal(err)
	}
	old.Close()
	db := open(t, path)
	defer db.Close()
	if got, err := db.Thread(t.Context(), store.Scope{}, "t"); err != nil || got.Title != "kept" {
		t.Errorf("the thread is %+v, %v", got, err)
	}
	if runs, err := db.JournalRuns(t.Context(), store.Scope{}, "", store.Page{}); err != nil || len(runs) != 0 {
		t.Errorf("the runs are %v, %v", runs, err)
	}
}
