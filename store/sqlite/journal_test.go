package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/storetest"
)

func TestJournal(t *testing.T) {
	storetest.RunJournal(t, func(t *testing.T) store.Journal {
		db := open(t, filepath.Join(t.TempDir(), "pawl.db"))
		t.Cleanup(func() { db.Close() })
		return db
	})
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
