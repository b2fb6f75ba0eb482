package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store/sqlite"
)

// hits counts the words in the files of a folder.
func hits(t *testing.T, dir string, words ...string) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			n += strings.Count(string(b), word)
		}
	}
	return n
}

// After DELETE of a run, no file of the database has its text. Another DELETE within a minute is
// complete when the server ends.
func TestDeleteErases(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	v := serve(t, func(o *options) { o.Journal = db })
	words := []string{"xylophone", "cellist"}
	for i, word := range words {
		v.do("POST", "/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"pay %s","wait":true}`, i, word), 201, nil)
		if hits(t, dir, word) == 0 {
			t.Fatalf("no file has %s: nothing is tested", word)
		}
	}
	remove := func(i int) {
		v.do("POST", fmt.Sprintf("/v1/runs/r%d/cancel", i), `{}`, 200, nil)
		v.events(v.request("GET", fmt.Sprintf("/v1/runs/r%d/events", i), "").Body, nil)
		v.do("DELETE", fmt.Sprintf("/v1/runs/r%d", i), "", 200, nil)
	}
	remove(0)
	for end := time.After(30 * time.Second); hits(t, dir, words[0]) > 0; {
		select {
		case <-end:
			t.Fatalf("%d places have the text of the deleted run", hits(t, dir, words[0]))
		case <-time.After(10 * time.Millisecond):
		}
	}
	remove(1)
	if err := v.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := hits(t, dir, words[1]); n > 0 {
		t.Errorf("%d places have the text of the second run", n)
	}
}
