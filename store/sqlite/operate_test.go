package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// secretWord is in every text of the user.
const secretWord = "xylophonist"

// hits returns the files of a folder that contain a text, in any case.
func hits(t *testing.T, dir, text string) (names []string) {
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
		if bytes.Contains(bytes.ToLower(b), []byte(text)) {
			names = append(names, f.Name())
		}
	}
	return names
}

// fill stores data of each kind for a user.
func fill(t *testing.T, db *sqlite.DB, s store.Scope, word string) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	text := "The " + word + " plays. " + strings.Repeat("More words make the text larger. ", 20)
	large := `"` + word + strings.Repeat("x", 40<<10) + `"`
	_, err := db.BeginJournal(ctx, s, store.JournalRun{ID: "run", Task: text, State: store.JournalOver,
		Summary: json.RawMessage(`{"cause":"` + word + `"}`)}, "me", now,
		store.Record{Key: "begin", Kind: "begin", At: now, Body: json.RawMessage(`"` + word + `"`)},
		store.Record{Key: "large", Kind: "outcome", At: now, Body: json.RawMessage(large)})
	errs := []error{err}
	errs = append(errs, db.PutRun(ctx, s, store.Run{ID: "run", Task: text, Started: now}),
		db.AppendEvents(ctx, s, "run", pawl.Event{Seq: 1, Kind: pawl.EventNotice, Text: text}),
		db.PutArtifact(ctx, s, "run", pawl.Artifact{Key: "run/1/0", Text: text + large, MIME: "text/plain"}))
	who := store.Scope{Tenant: s.Tenant, User: s.User}
	_, err = db.PutThread(ctx, who, store.Thread{ID: "t", Title: text})
	errs = append(errs, err)
	errs = append(errs, db.AppendMessages(ctx, who, "t", 0, llm.User(text)))
	_, err = db.PutDocument(ctx, s, store.Document{ID: "d", Title: text}, []store.Chunk{{Text: text}, {Text: text + word}})
	errs = append(errs, err)
	_, _, err = db.AddMemory(ctx, s, store.Memory{Text: text})
	errs = append(errs, err)
	_, err = db.PutSkill(ctx, s, store.Skill{Name: "skill", Description: text, Text: text})
	errs = append(errs, err)
	_, err = db.PutSchedule(ctx, s, store.Schedule{ID: "s", Name: text, When: "0 9 * * *", Zone: "UTC",
		Enabled: true, Next: now.Add(-time.Hour)})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
}

// After a user is erased and the file is compacted, no file has a word of the user, and another
// user's data is unchanged. The control: before it, the file has the word.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pawl.db")
	db := open(t, path)
	defer db.Close()
	ann, bob := store.Scope{Tenant: "acme", User: "ann"}, store.Scope{Tenant: "acme", User: "bob"}
	for range 3 { // also data that was erased before
		fill(t, db, ann, secretWord)
		if err := db.Erase(t.Context(), ann.Tenant, ann.User); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, db, ann, secretWord)
	fill(t, db, bob, "cellist")
	if len(hits(t, dir, secretWord)) == 0 || len(hits(t, dir, "xylophon")) == 0 {
		t.Fatal("the files do not have the word: nothing is tested")
	}
	if err := db.Erase(t.Context(), ann.Tenant, ann.User); err != nil {
		t.Fatal(err)
	}
	if len(hits(t, dir, secretWord)) == 0 {
		t.Error("before Compact no file has the word: it has nothing to do")
	}
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{secretWord, "xylophon"} { // the index has stems
		if got := hits(t, dir, word); got != nil {
			t.Errorf("%s is in %v", word, got)
		}
	}
	found, err := db.SearchMemories(t.Context(), bob, store.Query{Text: "cellist"})
	runs, runErr := db.JournalRecords(t.Context(), bob, "run", 0)
	if err != nil || len(found) != 1 || runErr != nil || len(runs) != 2 {
		t.Errorf("the other user has %v, %v, %v, %v", found, err, runs, runErr)
	}
	due, err := db.PauseSchedules(t.Context(), time.Now())
	if v, getErr := db.Schedule(t.Context(), bob, "s"); err != nil || due != 1 || getErr != nil || v.Enabled {
		t.Errorf("%d schedules are paused, %v: %+v, %v", due, err, v, getErr)
	}
}

// A deleted run takes its artifacts and its trace with it, and another process that reads the log
// is an error of Compact.
func TestDeletedRun(t *testing.T) {
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "pawl.db"))
	defer db.Close()
	ann := store.Scope{Tenant: "acme", User: "ann"}
	fill(t, db, ann, secretWord)
	now := time.Now().Add(time.Minute)
	list := func(state, tenant, user string, before time.Time) int {
		t.Helper()
		runs, err := db.EndedRuns(t.Context(), state, tenant, user, before, now)
		if err != nil {
			t.Fatal(err)
		}
		return len(runs)
	}
	if list("over", "", "", now) != 1 || list("over", "acme", "ann", now) != 1 || list("over", "acme", "bob", now) != 0 ||
		list("over", "evil", "", now) != 0 || list("open", "", "", now) != 0 || list("over", "", "", now.Add(-time.Hour)) != 0 {
		t.Error("the list of old runs is wrong")
	}
	if err := db.DeleteJournal(t.Context(), ann, "run"); err != nil {
		t.Fatal(err)
	}
	_, trace := db.Run(t.Context(), ann, "run")
	_, artifact := db.Artifact(t.Context(), ann, "run", "run/1/0")
	if !errors.Is(trace, store.ErrNotFound) || !errors.Is(artifact, store.ErrNotFound) {
		t.Errorf("the trace: %v; the artifact: %v", trace, artifact)
	}
}

// A backup has the state of one moment, and does not replace a file.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "pawl.db"))
	defer db.Close()
	ann := store.Scope{Tenant: "acme", User: "ann"}
	fill(t, db, ann, secretWord)
	to := filepath.Join(dir, "backup.db")
	if err := db.Backup(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), to); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second backup to the same file: %v", err)
	}
	if err := db.Erase(context.Background(), ann.Tenant, ann.User); err != nil {
		t.Fatal(err)
	}
	again := open(t, to)
	defer again.Close()
	r, err := again.JournalRun(t.Context(), ann, "run")
	if err != nil || r.CheckSeal() != nil || r.Records != 2 {
		t.Errorf("the backup has %+v, %v", r, err)
	}
}

// A file of each earlier version is migrated, keeps its data, and then has the columns of a new
// file.
func TestEachVersion(t *testing.T) {
	fresh := filepath.Join(t.TempDir(), "fresh.db")
	if err := open(t, fresh).Close(); err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= 5; version++ {
		path := filepath.Join(t.TempDir(), "pawl.db")
		for v := 1; v <= version; v++ {
			schema, err := os.ReadFile("schema" + string(rune('0'+v)) + ".sql")
			if err != nil {
				t.Fatal(err)
			}
			exec(t, path, string(schema))
		}
		exec(t, path, `pragma application_id = 0x7061776c; pragma user_version = `+string(rune('0'+version))+`;
			insert into threads (tenant, user, id, title, created, updated) values ('', '', 't', 'kept', 1, 1)`)
		if version > 1 {
			exec(t, path, `insert into journals (tenant, user, thread, id, agent, task, state, owner, fence, until, records, head, created, updated)
				values ('', '', '', 'r', 'clerk', 'kept', 'open', '', 1, 0, 0, '', 1, 1)`)
		}
		db := open(t, path)
		if got, err := db.Thread(t.Context(), store.Scope{}, "t"); err != nil || got.Title != "kept" {
			t.Errorf("version %d: the thread is %+v, %v", version, got, err)
		}
		if version > 1 {
			l, err := db.ClaimJournal(t.Context(), store.Scope{}, "r", "me", time.Now(), time.Now().Add(time.Minute))
			r, getErr := db.JournalRun(t.Context(), store.Scope{}, "r")
			if err != nil || getErr != nil || l.Fence != 2 || r.Task != "kept" || r.Seal == "" || r.CheckSeal() != nil {
				t.Errorf("version %d: the run is %+v, %v, %v", version, r, err, getErr)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := columns(t, path), columns(t, fresh); got != want {
			t.Errorf("version %d has the columns\n%s\nwant\n%s", version, got, want)
		}
	}
	// The loop has all versions.
	if _, err := os.Stat("schema6.sql"); err == nil {
		t.Error("there is a later version: add it")
	}
}
