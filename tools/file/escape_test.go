package file_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/file"
)

const secret = "the secret outside"

// jail creates a directory full of links that lead outside. It returns that directory and the
// directory around it.
func jail(t testing.TB) (dir, around string) {
	around = t.TempDir()
	dir = filepath.Join(around, "root")
	tooltest.Must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	tooltest.Must(t, os.MkdirAll(filepath.Join(around, "out"), 0o755))
	tooltest.Must(t, os.WriteFile(filepath.Join(around, "f.txt"), []byte(secret), 0o644))
	tooltest.Must(t, os.WriteFile(filepath.Join(around, "out", "f.txt"), []byte(secret), 0o644))
	tooltest.Must(t, os.WriteFile(filepath.Join(dir, "f.txt"), []byte("inside"), 0o644))
	tooltest.Must(t, os.WriteFile(filepath.Join(dir, "a", "f.txt"), []byte("inside"), 0o644))
	for name, target := range map[string]string{
		"up": "..", "abs": around, "absfile": filepath.Join(around, "f.txt"), "relfile": "../f.txt", "new": "../new.txt",
		"same": "a", "a/up": "..", "a/upup": "../..", "a/b/upupup": "../../..", "chain": "a/upup/out", "dangling": "../out/new.txt",
		"a/abs": filepath.Join(around, "out"), "loop": "loop", "a/root": filepath.Join("..", "..", "root"),
	} {
		tooltest.Must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	return dir, around
}

// outside returns everything around the root: the content of each file by path.
func outside(t testing.TB, around string) map[string]string {
	all := map[string]string{}
	tooltest.Must(t, filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == filepath.Join(around, "root") {
			if d != nil && d.IsDir() && err == nil {
				return filepath.SkipDir
			}
			return err
		}
		b, _ := os.ReadFile(path)
		all[path] = string(b)
		return nil
	}))
	return all
}

var somePath = rapid.Custom(func(t *rapid.T) string {
	part := rapid.SampledFrom([]string{"..", "..", ".", "", "a", "b", "f.txt", "new.txt", "out", "root", "up", "abs", "absfile", "relfile",
		"new", "same", "upup", "upupup", "chain", "dangling", "loop", "a..b", "...", "..\\", "\\", "~", "C:", "\x00", "é"})
	p := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), "/")
	return rapid.SampledFrom([]string{"", "", "", "/", "./", "//", "../"}).Draw(t, "begin") + p
})

// ways are paths that lead to the secret in a program that uses them without care.
var ways = []string{"../f.txt", "a/../../f.txt", "./../out/f.txt", "up/f.txt", "up/out/f.txt", "abs/f.txt", "absfile", "relfile", "same/upup/f.txt",
	"a/upup/f.txt", "a/b/upupup/f.txt", "a/b/../upup/f.txt", "chain/f.txt", "a/abs/f.txt", "a/up/up/f.txt", "same/up/abs/out/f.txt", "up/root/up/f.txt", "a/root/../f.txt"}

// everyArgs returns arguments by which any of the tools would act on path.
func everyArgs(path string) string {
	return `{"path":` + quote(path) + `,"content":"mine","edits":[{"old":"e","new":"mine","all":true}],"pattern":"."}`
}

// inOrder returns the tools; the tools that delete come last.
func inOrder(set *file.Set) []*pawl.Tool {
	return []*pawl.Tool{set.Read, set.List, set.Stat, set.Search, set.Edit, set.Write, set.Delete}
}

// For any path in a call and any links in the root, nothing outside is read, created, changed or
// deleted, and no text reveals where the root is.
func TestNoPathEscapes(t *testing.T) {
	paths := rapid.OneOf(somePath, rapid.SampledFrom(append([]string{"new", "dangling", "new/x", "up/new.txt"}, ways...)))
	rapid.Check(t, func(rt *rapid.T) {
		dir, around := jail(t) // a new directory each time, because the calls delete its links
		before := outside(t, around)
		set := open(t, dir)
		path := paths.Draw(rt, "path")
		args := everyArgs(path)
		for _, tool := range inOrder(set) {
			res, err := tool.Run(t.Context(), llm.ToolCall{Name: tool.Name, Args: json.RawMessage(args)})
			if err != nil {
				rt.Fatalf("%s %q: %v", tool.Name, path, err)
			}
			told := res.Text() + string(res.Data)
			if strings.Contains(told, secret) || strings.Contains(told, sum(secret)) {
				rt.Fatalf("%s %q read outside: %s", tool.Name, path, told)
			}
			if strings.Contains(told, around) {
				rt.Fatalf("%s %q reveals where the root is: %s", tool.Name, path, told)
			}
		}
		if diff := cmp.Diff(before, outside(t, around)); diff != "" {
			rt.Fatalf("%q changed what is outside (-before +after):\n%s", path, diff)
		}
	})
}

// The test above can fail: the ways do lead outside.
func TestWaysLeadOut(t *testing.T) {
	dir, _ := jail(t)
	for _, way := range ways {
		if b, err := os.ReadFile(dir + "/" + way); string(b) != secret {
			t.Errorf("%s does not lead out: %q, %v", way, b, err)
		}
	}
}

// A call with any bytes as its path returns a result or a refusal.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"", ".", "..", "/", "a/../..", "f.txt", "up/f.txt", "absfile", "a\x00", "\xff", strings.Repeat("a/", 300)} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, path string) {
		dir, around := jail(t)
		before := outside(t, around)
		set := open(t, dir)
		args := everyArgs(path)
		for _, tool := range inOrder(set) {
			if got := tooltest.Call(t, tool, args); strings.Contains(got, secret) || got == "" {
				t.Errorf("%s %q: %q", tool.Name, path, got)
			}
		}
		if diff := cmp.Diff(before, outside(t, around)); diff != "" {
			t.Errorf("%q changed what is outside (-before +after):\n%s", path, diff)
		}
	})
}
