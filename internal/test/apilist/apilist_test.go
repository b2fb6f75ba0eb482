package apilist

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists in the folder api again")

const root = "../../.."

// private are the folders whose packages no program imports.
var private = []string{"bench", "cmd", "examples", "internal", "testdata", "node_modules"}

// public returns the folders of all public packages, relative to the root.
func public(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); rel != "." && (slices.Contains(private, name) || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, "_test.go") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// fileOf returns the path of the list of a package, relative to the root.
func fileOf(dir string) string {
	if dir == "." {
		dir = "pawl"
	}
	return "api/" + dir + ".txt"
}

const advice = `
A program that uses them no longer compiles, or means something else. Before 1.0 this is allowed in
a minor version, after at least one version in which the name was deprecated: see docs/stability.md.
Then write the change into CHANGELOG.md, and update the lists:
	go test ./internal/test/apilist -update`

// TestAPI compares the public API with the lists in the folder api. A name that is gone, or that
// has another signature or JSON name, fails. New names are logged; -update adds them.
func TestAPI(t *testing.T) {
	known := map[string]bool{}
	dirs := public(t)
	for _, dir := range dirs {
		now, err := Of(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		name := fileOf(dir)
		known[name] = true
		path := filepath.Join(root, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		stored, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		lost, more := changes(strings.Split(strings.TrimSpace(string(stored)), "\n"), now)
		if len(lost) > 0 && len(stored) > 0 {
			t.Errorf("%s has lines that are gone or changed:\n\t%s\nNow there are:\n\t%s%s", name, strings.Join(lost, "\n\t"),
				strings.Join(more, "\n\t"), advice)
		} else if len(more) > 0 {
			t.Logf("%s: new, added by -update:\n\t%s", name, strings.Join(more, "\n\t"))
		}
	}
	if len(dirs) < 30 {
		t.Errorf("found only %d public packages", len(dirs))
	}
	err := filepath.WalkDir(filepath.Join(root, "api"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if name := filepath.ToSlash(rel); err == nil && !known[name] {
			t.Errorf("%s is the list of a package that is gone: %s", name, advice)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

const sample = `package x
const (
	A Kind = iota
	B
	c
)
const Code = "code"
const Limit = -(1 << 4)
const Wait = 2 * time.Second
var V, W = 1, 2
// T is a type.
type T[K comparable] struct {
	Name string ` + "`json:\"name,omitzero\" on:\"all\"`" + `
	F    func(a, b int) error
	*Inner
	inner
	hidden int
}
type inner struct {
	Size int ` + "`json:\"size\"`" + `
	rest string
}
func (inner) Grow(by int) {}
type Kind int
type Other = Kind
type I interface { Do(ctx int, s ...string) (n int, err error); inner() }
type secret struct{ X int }
func (s *secret) M() {}
// F is old.
//
// Deprecated: use G.
func F(a, b int) (x, y string) { return "", "" }
func G[E any](e E) {}
func (t *T[K]) Get(k K) (v int) { return 0 }
`

const sampleList = `const A Kind = 0
const B Kind = 1
const Code = "code"
const Limit = -16
const Wait = 2 * time.Second
embed T *Inner
field T.F func(int, int) error
field T.Name string json:name,omitzero on:all
field T.Size int json:size
func F(int, int) (string, string) //deprecated
func G[E any](E)
method (*T[K]) Get(K) int
method (T) Grow(int)
method I.Do(int, ...string) (int, error)
method I.unexported
type I interface{Do; unexported}
type Kind int
type Other = Kind
type T[K comparable] struct
var V
var W`

func TestLines(t *testing.T) {
	lines, err := source(sample)
	if got := strings.Join(lines, "\n"); err != nil || got != sampleList {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, sampleList)
	}
}

// A changed signature, tag or value, another zero value, a lost field, a lost or a further method
// of an interface, and what an embedded type loses are changes. Another name of a parameter, a new
// name and a deprecation are none.
func TestChanges(t *testing.T) {
	before, err := source(sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, lost string }{
		{"func G[E any](e E) {}", "func G[E any](e E, more int) {}", "func G[E any](E)"},
		{`json:\"name`, `json:\"name`, ""},
		{`name,omitzero`, `title,omitzero`, "field T.Name string json:name,omitzero on:all"},
		{`on:"all"`, `on:"some"`, "field T.Name string json:name,omitzero on:all"},
		{"Name string", "Title string", "field T.Name string json:name,omitzero on:all"},
		{"A Kind = iota\n\tB\n", "B Kind = iota\n\tA\n", "const A Kind = 0\nconst B Kind = 1"},
		{"A Kind = iota\n", "Z Kind = iota\n\tA\n", "const A Kind = 0\nconst B Kind = 1"},
		{"-(1 << 4)", "-(1 << 5)", "const Limit = -16"},
		{"2 * time.Second", "time.Second", "const Wait = 2 * time.Second"},
		{"interface { Do(", "interface { More(); Do(", "type I interface{Do; unexported}"},
		{"interface { Do(", "interface { Other; Do(", "type I interface{Do; unexported}"},
		{"Size int", "size int", "field T.Size int json:size"},
		{"Grow(by int)", "grow(by int)", "method (T) Grow(int)"},
		{"(k K) (v int)", "(key K) (value int)", ""},
		{"Do(ctx int, s ...string)", "Do(ctx int)", "method I.Do(int, ...string) (int, error)"},
		{`Code = "code"`, `Code = "other"`, `const Code = "code"`},
		{"type Kind int", "type Kind int\ntype New int", ""},
		{"// T is a type.", "// T is a type.\n//\n// Deprecated: use U.", ""},
	} {
		now, err := source(strings.Replace(sample, c.from, c.to, 1))
		if err != nil {
			t.Fatal(err)
		}
		if lost, _ := changes(before, now); strings.Join(lost, "\n") != c.lost {
			t.Errorf("%s: got %q, want %q", c.to, lost, c.lost)
		}
	}
}
