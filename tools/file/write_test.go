package file_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
)

func TestWrite(t *testing.T) {
	dir, set := root(t, map[string]string{"old.txt": "old", "run.sh": "#!", "dir/": "", "file": "", "fixed.txt": "fixed"})
	tooltest.Must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	tooltest.Must(t, os.Chmod(filepath.Join(dir, "fixed.txt"), 0o444))
	tooltest.Must(t, os.Symlink("../old.txt", filepath.Join(dir, "dir", "link.txt")))
	tooltest.Must(t, os.Symlink("dir", filepath.Join(dir, "d")))
	tooltest.Must(t, os.Symlink("d/../new-through-link.txt", filepath.Join(dir, "dangling")))
	tooltest.Must(t, os.Symlink("round", filepath.Join(dir, "round")))
	for _, tt := range []struct{ args, want, path, content string }{
		{`{"path":"new.txt","content":"näw"}`, "Written 4 bytes to new.txt", "new.txt", "näw"},
		{`{"path":"./old.txt","content":"new"}`, "Written 3 bytes to old.txt", "old.txt", "new"},
		{`{"path":"a/b/c.txt","content":""}`, "Written 0 bytes to a/b/c.txt", "a/b/c.txt", ""},
		{`{"path":"run.sh","content":"#!/bin/sh"}`, "Written 9 bytes to run.sh", "run.sh", "#!/bin/sh"},
		{`{"path":"a..b.txt","content":"x"}`, "Written 1 bytes to a..b.txt", "a..b.txt", "x"},
		{`{"path":"dir/link.txt","content":"through"}`, "Written 7 bytes to dir/link.txt", "old.txt", "through"},
		{`{"path":"d/link.txt","content":"both"}`, "Written 4 bytes to d/link.txt", "old.txt", "both"},
		{`{"path":"dangling","content":"made"}`, "Written 4 bytes to dangling", "new-through-link.txt", "made"},

		{`{"path":"old.txt","content":"1","expect":"` + sum("both") + `"}`, "Written 1 bytes to old.txt", "old.txt", "1"},
		{`{"path":"old.txt","content":"2","expect":"` + strings.ToUpper(sum("1")) + `"}`, "Written 1 bytes to old.txt", "old.txt", "2"},
		{`{"path":"fresh.txt","content":"f","expect":""}`, "Written 1 bytes to fresh.txt", "fresh.txt", "f"},
		{`{"path":"fresh.txt","content":"g","expect":""}`,
			`error: not written: "fresh.txt" is there already (1 bytes); choose another path, or leave expect out to replace it`, "fresh.txt", "f"},
		{`{"path":"old.txt","content":"3","expect":"` + sum("1") + `"}`,
			`error: not written: "old.txt" has changed; its SHA-256 is ` + sum("2") + `, expect says ` + sum("1") + `. Read it again before you write`, "old.txt", "2"},
		{`{"path":"none.txt","content":"3","expect":"` + sum("1") + `"}`,
			`error: not written: expect names a content, but there is no file "none.txt"; with expect "" it is made`, "", ""},

		{`{"path":"","content":"x"}`, `error: "" names a directory; give the path of a file`, "", ""},
		{`{"path":"sub/","content":"x"}`, `error: "sub/" names a directory; give the path of a file`, "", ""},
		{`{"path":"dir","content":"x"}`, `error: "dir" is a directory; give the path of a file`, "", ""},
		{`{"path":"d","content":"x"}`, `error: "d" is a directory; give the path of a file`, "", ""},
		{`{"path":"round","content":"x"}`, `error: "round" is part of a cycle of symbolic links`, "", ""},
		{`{"path":"file/x/y.txt","content":"x"}`, `error: "file/x/y.txt" cannot be written: "file" is a file, not a directory`, "file", ""},
		{`{"path":"fixed.txt","content":"x"}`, `error: permission denied: "fixed.txt" is read-only`, "fixed.txt", "fixed"},
	} {
		if diff := cmp.Diff(tt.want, tooltest.Call(t, set.Write, tt.args)); diff != "" {
			t.Errorf("file_write %s (-want +got):\n%s", tt.args, diff)
		}
		if tt.path != "" {
			if b, err := os.ReadFile(filepath.Join(dir, tt.path)); err != nil || string(b) != tt.content {
				t.Errorf("file_write %s: %s has %q, %v; want %q", tt.args, tt.path, b, err, tt.content)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh lost its mode: %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "dir", "link.txt")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
	tooltest.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.Contains(path, ".pawl-") {
			t.Errorf("a temporary file was left: %s", path)
		}
		return err
	}))
	got := string(tooltest.Run(t, set.Write, `{"path":"data.txt","content":"x"}`).Data)
	if want := `{"path":"data.txt","bytes":1,"sha256":"` + sum("x") + `","created":true}`; got != want {
		t.Errorf("data: got %s, want %s", got, want)
	}
}

// A concurrent reader sees one of the contents, never a part of one.
func TestWriteIsAtomic(t *testing.T) {
	dir, set := root(t, map[string]string{"f": strings.Repeat("a", 200_000)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20 {
			tooltest.Call(t, set.Write, `{"path":"f","content":"`+strings.Repeat(string(rune('a'+i%2)), 200_000)+`"}`)
		}
	}()
	for {
		b, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || len(b) != 200_000 || strings.Trim(string(b), string(b[0])) != "" {
			t.Fatalf("a reader saw %d bytes, %v", len(b), err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// Of many calls that all expect the same content, one writes.
func TestWriteExpectRaces(t *testing.T) {
	_, set := root(t, nil)
	won := make(chan bool)
	for i := range 8 {
		go func() {
			won <- !strings.HasPrefix(tooltest.Call(t, set.Write, fmt.Sprintf(`{"path":"f","content":"%d","expect":""}`, i)), "error:")
		}()
	}
	n := 0
	for range 8 {
		if <-won {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d calls wrote a file that each expected not to be there; want 1", n)
	}
}

func TestDelete(t *testing.T) {
	dir, set := root(t, map[string]string{"a.txt": "", "full/x": "", "full/y": "", "empty/": "", "target.txt": "kept"})
	tooltest.Must(t, os.Symlink("target.txt", filepath.Join(dir, "link")))
	tooltest.Must(t, os.Symlink(".", filepath.Join(dir, "self")))
	for _, tt := range []struct{ path, want string }{
		{"a.txt", "Deleted a.txt"},
		{"a.txt", `error: no such file: "a.txt"; the root has: empty, full, link, self, target.txt`},
		{"empty/", "Deleted empty"},
		{"link", "Deleted link"},
		{"full", `error: "full" is a directory that is not empty: it has 2 entries (x, y); delete them first`},
		{"", "error: the root itself cannot be deleted; give the path of something in it"},
		{".", "error: the root itself cannot be deleted; give the path of something in it"},
		{"full/..", "error: the root itself cannot be deleted; give the path of something in it"},
		{"self/full", `error: "self/full" is a directory that is not empty: it has 2 entries (x, y); delete them first`},
		{"self", "Deleted self"},
	} {
		if got := tooltest.Call(t, set.Delete, `{"path":`+quote(tt.path)+`}`); got != tt.want {
			t.Errorf("file_delete %q: got %s, want %s", tt.path, got, tt.want)
		}
	}
	if got := tooltest.Call(t, set.List, `{}`); got != "dir\tfull\nfile\ttarget.txt" {
		t.Errorf("left over: %s", got)
	}
}

// An empty root is not a file that can be deleted, although the system call would delete it.
func TestDeleteEmptyRoot(t *testing.T) {
	dir, set := root(t, nil)
	for _, p := range []string{"", ".", "./", "x/.."} {
		if got := tooltest.Call(t, set.Delete, `{"path":`+quote(p)+`}`); !strings.HasPrefix(got, "error:") {
			t.Errorf("file_delete %q: %s", p, got)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestSerial(t *testing.T) {
	_, set := root(t, nil)
	key := func(tool *pawl.Tool, path string) string {
		return tool.Serial(json.RawMessage(`{"path":` + quote(path) + `}`))
	}
	if a, b := key(set.Write, "x/../a.txt"), key(set.Delete, "./a.txt"); a != b || a == "" {
		t.Errorf("the same path has keys %q and %q", a, b)
	}
	if a, b := key(set.Write, "a.txt"), key(set.Write, "b.txt"); a == b {
		t.Errorf("different paths have the key %q", a)
	}
	if k := key(set.Write, "../a.txt"); k != "" {
		t.Errorf("a refused path has the key %q", k)
	}
}
