package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/store/storetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store that does not sync, because no test here simulates a power failure.
func open(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "a b?#%.db")) })
}

// PAWL_SCALE=100000 go test -v -run Scale ./store/sqlite prints the cost of searches among that
// many chunks.
func TestScale(t *testing.T) {
	soak.Sequential(t)
	db := open(t, filepath.Join(t.TempDir(), "scale.db"))
	defer db.Close()
	storetest.Scale(t, db)
}

func TestTheFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	db := open(t, path)
	if _, err := db.PutDocument(t.Context(), store.Scope{}, store.Document{ID: "d"}, []store.Chunk{{Text: "kept"}}); err != nil {
		t.Fatal(err)
	}
	other := open(t, path) // two connections to one file
	hits, err := other.SearchChunks(t.Context(), store.Scope{}, store.Query{Text: "kept"})
	if err != nil || len(hits) != 1 {
		t.Errorf("the other sees %v, %v", hits, err)
	}
	other.Close()
	db.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v; only its owner may read it", info.Mode(), err)
	}
	db = open(t, path)
	defer db.Close()
	if _, err := db.Document(t.Context(), store.Scope{}, "d"); err != nil {
		t.Error(err)
	}
}

// A file of another program is not changed.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign, newer := filepath.Join(dir, "foreign.db"), filepath.Join(dir, "newer.db")
	exec(t, foreign, "create table t (a)")
	open(t, newer).Close()
	exec(t, newer, "pragma user_version = 99")
	for path, want := range map[string]string{text: "not an SQLite database", foreign: "another program", newer: "newer version", dir: "is a directory", "": "path is empty", filepath.Join(dir, "no", "db"): "no such file"} {
		before, _ := os.ReadFile(path)
		_, err := sqlite.Open(path, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if after, _ := os.ReadFile(path); path != newer && string(before) != string(after) {
			t.Errorf("%s was changed", path)
		}
	}
}

func exec(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	ctx, alice := context.Background(), store.Scope{Tenant: "acme", User: "alice"}
	_, err = db.PutDocument(ctx, alice, store.Document{ID: "handbook", Title: "Handbook"}, []store.Chunk{{Text: "Everybody has twelve days of leave."}})
	if err != nil {
		fmt.Println(err)
		return
	}
	hits, err := db.SearchChunks(ctx, alice, store.Query{Text: "How many days of leave?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hits[0].Title+":", hits[0].Text)
	hits, err = db.SearchChunks(ctx, store.Scope{Tenant: "acme", User: "bob"}, store.Query{Text: "leave"})
	fmt.Println(len(hits), err)
	// Output:
	// Handbook: Everybody has twelve days of leave.
	// 0 <nil>
}
