package file_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/file"
	"pgregory.net/rapid"
)

// workspace is a folder whose changes are stored.
type workspace struct{ root, store string }

func newWorkspace(t testing.TB, files map[string]string) *workspace {
	t.Helper()
	w := &workspace{t.TempDir(), filepath.Join(t.TempDir(), "undo")}
	for name, text := range files {
		w.put(t, name, text)
	}
	return w
}

// undo undoes the last change, as pawl undo does in a process of its own.
func (w *workspace) undo(t testing.TB, force bool) (*file.Change, error) {
	t.Helper()
	files, err := file.New(w.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	return files.Undo(context.Background(), w.store, force)
}

func (w *workspace) put(t testing.TB, name, text string) {
	t.Helper()
	at := filepath.Join(w.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// state returns the files of the workspace with their modes.
func (w *workspace) state(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(p)
		if len(text) > 1000 {
			text = text[:1000]
		}
		out.WriteString(strings.TrimPrefix(p, w.root) + " " + info.Mode().String() + " " + string(text) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// call executes one call of the file tools, and returns the text for the model.
func (w *workspace) call(t testing.TB, name string, args any) string {
	t.Helper()
	files, err := file.New(w.root, &file.Options{Undo: w.store})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return pawl.Toolsets{files}.Execute(context.Background(), llm.ToolCall{ID: "1", Name: name, Args: raw}).Result.Text()
}

func (w *workspace) write(t testing.TB, name, text string) string {
	t.Helper()
	return w.call(t, "file_write", map[string]string{"path": name, "content": text})
}

// Undo returns the bytes and the modes of each change, one after another, and then has nothing.
func TestUndo(t *testing.T) {
	w := newWorkspace(t, map[string]string{"a.txt": "one", "sub/b.txt": "two", "empty": ""})
	err := errors.Join(os.Chmod(filepath.Join(w.root, "sub/b.txt"), 0o755), os.Mkdir(filepath.Join(w.root, "dir"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	states := []string{w.state(t)}
	for i, step := range []func(){
		func() { w.write(t, "a.txt", "changed") },
		func() { w.write(t, "new/c.txt", "new") },
		func() {
			edits := []any{map[string]string{"old": "two", "new": "2"}}
			w.call(t, "file_edit", map[string]any{"path": "./sub/b.txt", "edits": edits})
		},
		func() { w.call(t, "file_delete", map[string]string{"path": "sub/b.txt"}) },
		func() { w.write(t, "empty", "full") },
		func() { w.call(t, "file_delete", map[string]string{"path": "empty"}) },
	} {
		step()
		if states = append(states, w.state(t)); states[i] == states[i+1] {
			t.Fatalf("step %d changed nothing: %s", i, states[i])
		}
	}
	// calls that change no file leave no entry
	for name, args := range map[string]map[string]string{
		"file_read": {"path": "a.txt"}, "file_write": {"path": "a.txt", "content": "changed"}, "file_delete": {"path": "dir"}} {
		if text := w.call(t, name, args); strings.Contains(text, "undone") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for i := len(states) - 2; i >= 0; i-- {
		if c, err := w.undo(t, false); err != nil || w.state(t) != states[i] {
			t.Fatalf("undo %d: %+v, %v, got\n%s\nwant\n%s", i, c, err, w.state(t), states[i])
		}
	}
	if _, err := w.undo(t, false); err == nil || err.Error() != "there is no change to undo" {
		t.Errorf("got %v", err)
	}
}

// A file that a person has changed since is not overwritten, except with force.
func TestUndoConflict(t *testing.T) {
	w := newWorkspace(t, map[string]string{"a": "one"})
	w.write(t, "a", "two")
	w.put(t, "a", "mine")
	for range 2 {
		if _, err := w.undo(t, false); err == nil || err.Error() != "a was changed since" || !strings.Contains(w.state(t), "mine") {
			t.Errorf("got %v\n%s", err, w.state(t))
		}
	}
	if c, err := w.undo(t, true); err != nil || c.Path != "a" || !strings.Contains(w.state(t), "one") {
		t.Errorf("got %v\n%s", err, w.state(t))
	}
}

// A process that is killed during a change leaves the copy. Undo of a changed file asks for force.
func TestUndoInterrupted(t *testing.T) {
	w := newWorkspace(t, map[string]string{"a": "one"})
	files, err := file.New(w.root, &file.Options{Undo: w.store})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	// what the change would have stored at its end is taken back, as if the process had gone before
	var half []byte
	if err := files.Create(context.Background(), "a", func(f io.Writer) error {
		_, err := f.Write([]byte("half"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	stored, _ := filepath.Glob(filepath.Join(w.store, "*[0-9]"))
	if len(stored) != 1 {
		t.Fatalf("stored: %v", stored)
	}
	if half, err = os.ReadFile(stored[0]); err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(half, &c); err != nil || c["ended"] != true {
		t.Fatalf("%s, %v", half, err)
	}
	c["ended"], c["after"] = false, nil
	half, _ = json.Marshal(c)
	if err := os.WriteFile(stored[0], half, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.undo(t, false); err == nil || !strings.Contains(err.Error(), "was interrupted") || !strings.Contains(w.state(t), "half") {
		t.Errorf("got %v\n%s", err, w.state(t))
	}
	if _, err := w.undo(t, true); err != nil || !strings.Contains(w.state(t), "one") {
		t.Errorf("got %v\n%s", err, w.state(t))
	}
}

// Undo changes no protected place and nothing outside, also through a link that a command has put
// in the place of a folder.
func TestUndoLinks(t *testing.T) {
	outside := t.TempDir()
	for name, target := range map[string]string{"protected": ".git", "outside": outside} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, map[string]string{"d/hook": "evil", ".git/x": ""})
			w.call(t, "file_delete", map[string]string{"path": "d/hook"})
			d := filepath.Join(w.root, "d")
			if err := errors.Join(os.Remove(d), os.Symlink(target, d)); err != nil {
				t.Fatal(err)
			}
			if c, err := w.undo(t, true); err == nil {
				t.Errorf("got %v", c)
			}
			for _, dir := range []string{filepath.Join(w.root, ".git"), outside} {
				if found, _ := filepath.Glob(filepath.Join(dir, "hook*")); found != nil {
					t.Errorf("%v was written", found)
				}
			}
			if err := os.Remove(d); err != nil {
				t.Fatal(err)
			}
			if _, err := w.undo(t, true); err != nil || !strings.Contains(w.state(t), "/d/hook -rw-r--r-- evil") {
				t.Errorf("the control: %v\n%s", err, w.state(t))
			}
		})
	}
}

// A file that is too large is not changed, and old changes go.
func TestBounds(t *testing.T) {
	w := newWorkspace(t, map[string]string{"big": strings.Repeat("x", 9<<20), "a": "one"})
	before := w.state(t)
	if text := w.write(t, "big", "small"); !strings.Contains(text, "could not be undone") || w.state(t) != before {
		t.Errorf("got %s", text)
	}
	if _, err := w.undo(t, false); err == nil || err.Error() != "there is no change to undo" {
		t.Errorf("a call that did not run left an entry: %v", err)
	}
	for i := range 105 {
		w.write(t, "a", strings.Repeat("n", i+1))
	}
	n := 0
	for ; n < 200; n++ {
		if _, err := w.undo(t, false); err != nil {
			break
		}
	}
	if n != 100 {
		t.Errorf("%d changes were kept", n)
	}
}

// Any sequence of changes is undone step by step.
func TestUndoAny(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorkspace(t, map[string]string{"a": "0", "b": "0"})
		states := []string{w.state(t)}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d/e"}).Draw(rt, "name")
			if rapid.Bool().Draw(rt, "delete") {
				w.call(t, "file_delete", map[string]string{"path": name})
			} else {
				w.write(t, name, rapid.StringMatching(`[0-9]{0,2}`).Draw(rt, "text"))
			}
			if now := w.state(t); now != states[len(states)-1] {
				states = append(states, now)
			}
		}
		for i := len(states) - 2; i >= 0; i-- {
			if _, err := w.undo(t, false); err != nil || w.state(t) != states[i] {
				rt.Fatalf("step %d: %v\n%s\nwant\n%s", i, err, w.state(t), states[i])
			}
		}
	})
}
