package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, src string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", "package x\n"+src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return fset, f
}

func TestConcurrent(t *testing.T) {
	for src, want := range map[string]string{
		`func f() { for i := range 3 { println(i) } }`:               "",
		"import (\n\t\"net/url\"\n\t\"strings\"\n)":                  "",
		`import "context"`:                                           "",
		`import "sync"`:                                              "x.go imports sync",
		`import "sync/atomic"`:                                       "x.go imports sync/atomic",
		`import "net/http/httptest"`:                                 "x.go imports net/http/httptest",
		"import \"os/exec\"\nfunc f(c *exec.Cmd) { c.Run() }":        "",
		"import \"os/exec\"\nfunc f(c *exec.Cmd) { c.Start() }":      "x.go:3 has a started process",
		"import \"os/exec\"\nfunc f(c *exec.Cmd) { c.StdoutPipe() }": "x.go:3 has a started process",
		`func f(t timer) { t.Start() }`:                              "",
		`func f() { go f() }`:                                        "x.go:2 has a go statement",
		`func f(c chan int) {}`:                                      "x.go:2 has a channel",
		"func f() {\n\tselect {}\n}":                                 "x.go:3 has a select statement",
		`func f() { <-g() }`:                                         "x.go:2 has a channel",
		`func TestX(t *testing.T) { t.Parallel() }`:                  "x.go:2 has a parallel test",
	} {
		fset, f := parse(t, src)
		if got := concurrent(fset, f); got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
}

func TestUsing(t *testing.T) {
	const user = `import "github.com/pawl-go/pawl/internal/test/soak"
var size = soak.N(1, 2)
func TestMain(m *testing.M) { soak.On() }
func TestDirect(t *testing.T) { soak.Only(t, "why") }
func TestByVariable(t *testing.T) { println(size) }
func TestByHelper(t *testing.T) { helper() }
func helper() { deeper() }
func deeper() { println(soak.On()) }
func TestNone(t *testing.T) { println("size") }
func TestSequential(t *testing.T) { soak.Sequential(t) }`
	const other = `import "example.com/soak"
func TestOther(t *testing.T) { soak.Only(t, "another package") }
func TestByOtherFile(t *testing.T) { deeper() }`
	_, a := parse(t, user)
	_, b := parse(t, other)
	want := []string{"TestByHelper", "TestByOtherFile", "TestByVariable", "TestDirect"}
	if diff := cmp.Diff(using([]*ast.File{a, b}, "N", "On", "Only"), want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(using([]*ast.File{a, b}, "Sequential"), []string{"TestSequential"}); diff != "" {
		t.Errorf("sequential: got -, want +\n%s", diff)
	}
}

// The plan of this module runs every package once, the packages with goroutines under the race
// detector. The order names only packages that exist.
func TestPlan(t *testing.T) {
	packages, err := load(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]string{}
	for _, p := range packages {
		modes[p.rel] = p.mode()
		t.Logf("%-5s %s %s %s", p.mode(), p.rel, p.concurrent, p.soak)
	}
	for rel, want := range map[string]string{".": "race", "durable": "race", "server": "race", "cmd/pawl": "race", "internal/diff": "plain", "internal/test/testplan": "plain"} {
		if modes[rel] != want {
			t.Errorf("%s runs %q, want %s", rel, modes[rel], want)
		}
	}
	for _, rel := range long {
		if modes[rel] == "" {
			t.Errorf("long names %s, which does not exist", rel)
		}
	}
	if len(modes) < 50 || len(modes) != len(packages) {
		t.Errorf("%d packages in %d lines", len(modes), len(packages))
	}
}

// row is a line of the table in docs/internals/tests.md: package, test, size in make test, size in
// make soak.
var row = regexp.MustCompile(`(?m)^\| ` + "`([^`]+)` \\| `([^`]+)`" + ` \| ([^|]+) \| ([^|]+) \|$`)

// docs/internals/tests.md has one row for each test whose size make soak changes, and no other.
func TestPage(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "tests.md"))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, p := range packages {
		for _, name := range slices.Concat(p.soak, p.sequential) {
			want = append(want, p.rel+" "+name)
		}
		if len(p.sequential) > 0 && p.mode() == "plain" {
			t.Errorf("%s runs without the race detector: %s need not say soak.Sequential", p.rel, p.sequential)
		}
	}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1]+" "+m[2])
		if strings.TrimSpace(m[3]) == strings.TrimSpace(m[4]) {
			t.Errorf("%s %s has one size only: %s", m[1], m[2], m[3])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	want = slices.Compact(want) // a test may have a size and be sequential
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("docs/internals/tests.md and the tests that use package soak differ: page -, tests +\n%s", diff)
	}
}
