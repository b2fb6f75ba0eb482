package durable_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// The databases of testdata were written by earlier versions, and golden files hold what was read
// from them then. They must not be written again: -update writes a file only if none exists.

// once writes a file if it does not exist.
func once(t *testing.T, path string, b []byte) {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		t.Fatalf("%s was written by an earlier version and must not be written again", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// packed returns a compressed snapshot of a database that may be in use.
func packed(t *testing.T, file string) []byte {
	t.Helper()
	snapshot := filepath.Join(t.TempDir(), "snapshot.db")
	raw, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec("vacuum into ?", snapshot); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// openStored unpacks a database, and returns an engine with the clock one hour after it was
// written. With -update it calls write for a database that does not exist.
func openStored(
	t *testing.T, path string, write func(t *testing.T, path string),
) (context.Context, *sqlite.DB, *durable.Engine) {
	t.Helper()
	if _, err := os.Stat(path); *update && os.IsNotExist(err) {
		write(t, path)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "stored.db")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(file, &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	eng := &durable.Engine{Journal: db}
	eng.SetClock(func() time.Time { return released.Add(time.Hour) })
	return store.WithScope(t.Context(), releaseScope), db, eng
}

// storedGolden compares with a golden file, and with -update writes a file that does not exist.
func storedGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if _, err := os.Stat(path); *update && os.IsNotExist(err) {
		once(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-then +now):\n%s", path, diff)
	}
}
