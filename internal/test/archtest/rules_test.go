package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests of this file give each rule a small source that breaks it, and a source that follows
// it.

type sample struct {
	name string
	src  string // without the package clause
	want string // part of the only complaint; empty means no complaint
}

func parseSource(t *testing.T, src string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return fset, f
}

// checkSource parses and type-checks a package of one file or more.
func checkSource(t *testing.T, srcs ...string) (*token.FileSet, *source) {
	t.Helper()
	fset := token.NewFileSet()
	s := new(source)
	for i, src := range srcs {
		f, err := parser.ParseFile(fset, string(rune('a'+i))+".go", src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%v in\n%s", err, src)
		}
		s.files = append(s.files, f)
	}
	if err := s.check(fset, "x", theTree(t).importer); err != nil {
		t.Fatal(err)
	}
	return fset, s
}

func wantComplaint(t *testing.T, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("got %q, want no complaint", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("got %q, want one complaint with %q", got, want)
	}
}

func TestCheckArrows(t *testing.T) {
	for _, tt := range []struct{ from, imports, want string }{
		{".", "fmt", ""},
		{".", module + "/internal/jsonscan", ""},
		{".", "github.com/santhosh-tekuri/jsonschema/v6", ""},
		{".", "github.com/go-json-experiment/json/jsontext", ""},
		{".", module + "/script", "not an arrow"},
		{".", "github.com/alecthomas/kong", "may use std and"},
		{"provider/openai", module + "/llm", ""},
		{"provider/openai", module, "not an arrow"},
		{"provider/openai", module + "/provider/gemini", "not an arrow"},
		{"provider", module + "/provider/gemini", ""},
		{"tools/file", module + "/tools/data", "not an arrow"},
		{"script", module + "/provider/openai", "not an arrow"},
		{"script", module, "not an arrow"},
		{"llm", module, "not an arrow"},
		{"server", module + "/cmd/pawl", "not an arrow"},
		{"server", module + "/config", "not an arrow"},
		{"cmd/pawl", "github.com/alecthomas/kong", ""},
		{"cmd/pawl", "github.com/spf13/cobra", "may use std and"},
		{"internal/sse", module, "not an arrow"},
		{"helpers", "fmt", "no line of"},
		{"providers/x", module, "no line of"},
	} {
		t.Run(tt.from+" to "+tt.imports, func(t *testing.T) {
			wantComplaint(t, checkArrows(tt.from, []string{tt.imports}), tt.want)
		})
	}
}

func TestCheckModule(t *testing.T) {
	for _, tt := range []struct {
		from, imports string
		inTests       bool
		want          string
	}{
		{"durable/temporal", module + "/durable", false, ""},
		{"durable/temporal", "internal/abi", false, ""},
		{"durable/temporal", module + "/internal/text", false, "may raise the root's module alone"},
		{"durable/temporal", module + "/durable/internal/record", false, "may raise the root's module alone"},
		{"durable/temporal", module + "/internal/test/soak", true, ""},
		{"durable/temporal/x", module + "/durable/temporal/internal/y", false, ""},
		{"durable/temporal", module + "/cmd/pawl/internal/cli", true, "of the module cmd/pawl"},
		{"cmd/pawl", module + "/internal/text", false, ""},
		{"cmd/pawl", module + "/durable/temporal", false, ""},
		{"durable", module + "/durable/temporal", false, "of the module durable/temporal"},
		{"history", module + "/durable/temporal", true, "of the module durable/temporal"},
		{"history", module + "/durable/temporalx", true, ""},
	} {
		t.Run(tt.from+" to "+tt.imports, func(t *testing.T) {
			wantComplaint(t, checkModule(tt.from, []string{tt.imports}, tt.inTests), tt.want)
		})
	}
}

func TestCheckGoMod(t *testing.T) {
	const work = "go 1.26.0\n\nuse (\n\t.\n\t./a\n)\n"
	for _, tt := range []struct{ name, dir, mod, want string }{
		{"root", ".", "module x\n\ngo 1.26.0\n\nreplace example.com/b => ./b\n", ""},
		{"nested", "a", "module x/a\n\ngo 1.26.0\n\nrequire example.com/replace v1.0.0\n", ""},
		{"not used", "b", "module x/b\n\ngo 1.26.0\n", "does not use b"},
		{"another Go", "a", "module x/a\n\ngo 1.26\n", "another version"},
		{"replaces", "a", "module x/a\n\ngo 1.26.0\n\nreplace (\n\tx => ../\n)\n", "go install refuses"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantComplaint(t, checkGoMod(tt.dir, tt.mod, work), tt.want)
		})
	}
}

func TestCheckVersions(t *testing.T) {
	const root = "module " + module + "\n\nrequire example.com/b v1.0.0\n"
	one := "module " + module + "/a\n\nrequire " + module + " v0.2.0\n"
	two := "module " + module + "/b\n\nrequire (\n\t" + module + " v0.2.0\n\t" + module + "/a v0.2.0 // indirect\n)\n"
	work := "replace " + module + " v0.2.0 => ./\n\nreplace (\n\t" + module + "/a v0.2.0 => ./a\n)\n"
	for _, tt := range []struct{ name, one, two, work, want string }{
		{"equal", one, two, work, ""},
		{"not equal", strings.Replace(one, "0.2.0", "0.1.0", 1), two,
			work + "\nreplace " + module + " v0.1.0 => ./\n", "2 versions of each other"},
		{"not replaced", one, one, strings.Replace(work, "0.2.0 => ./\n", "0.1.0 => ./\n", 1) +
			"\nreplace " + module + " v0.3.0 => ./\n", "does not replace " + module + " v0.2.0 with ."},
		{"by another folder", "", two, strings.Replace(work, "=> ./a", "=> ./b", 1), "/a v0.2.0 with ./a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := checkVersions([]string{root, tt.one, tt.two}, tt.work)
			wantComplaint(t, slices.Compact(got), tt.want)
		})
	}
}

func TestDeadArrows(t *testing.T) {
	imports := map[string][]string{
		".":   {"fmt"},
		"a":   {module},
		"a/b": {},
	}
	for _, tt := range []struct {
		name    string
		arrows  []arrow
		planned []string
		want    string
	}{
		{"used", []arrow{{from: "."}, {from: "a", to: []string{".", "a/..."}}, {from: "a/b"}}, nil, ""},
		{"from nothing", []arrow{{from: "c"}}, nil, `from "c" matches no package`},
		{"from nothing that is left", []arrow{{from: "a/..."}, {from: "a/b"}}, nil, `from "a/b" matches no package`},
		{"to nothing", []arrow{{from: "a", to: []string{"c/..."}}}, nil, `to "c/..." of the line "a" matches no package`},
		{"planned", []arrow{{from: "c", to: []string{"."}}, {from: "a", to: []string{"c"}}}, []string{"c"}, ""},
		{"planned and there", []arrow{{from: "a"}}, []string{"a"}, "a exists: remove it from planned"},
		{"core unused", []arrow{{from: "a/b", to: []string{"."}}}, nil, `no package of the line "a/b" imports the core`},
		{"core used by one", []arrow{{from: "a/...", to: []string{"."}}}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantComplaint(t, deadArrows(tt.arrows, tt.planned, imports), tt.want)
		})
	}
}

func TestUnexplained(t *testing.T) {
	const mod = "module example.com/x\n\ngo 1.26.0\n\nrequire example.com/a v1.0.0\n\nrequire (\n\texample.com/b v0.1.0 // indirect\n)\n"
	const both = "| module |\n|---|\n| `example.com/a` | saves |\n| `example.com/b` | saves |\n"
	wantComplaint(t, unexplained("go.mod", mod, both), "")
	wantComplaint(t, unexplained("go.mod", mod, strings.Replace(both, "/a`", "/c`", 1)), "requires example.com/a")
	wantComplaint(t, unexplained("go.mod", mod, strings.Replace(both, "/b`", "/bc`", 1)), "requires example.com/b")
}

func TestCheckLoop(t *testing.T) {
	long := "func f() {\n" + strings.Repeat("\t_ = 1\n", longest-1) + "}"
	for _, tt := range []sample{
		{"sequential",
			"import \"context\"\nfunc f(ctx context.Context, xs []int) error { for range xs { }; return context.Cause(ctx) }", ""},
		{"range over func", "import \"iter\"\nfunc f(seq iter.Seq[int]) { for range seq { } }", ""},
		{"clock as data", "import \"time\"\nfunc f(d time.Duration, t time.Time) bool { return d > time.Second && t.IsZero() }", ""},
		{"go", "func f() { go f() }", "go statement"},
		{"send", "func f(c chan int) { c <- 1 }", "channel send"},
		{"receive", "func f(c chan int) { <-c }", "channel receive"},
		{"select", "func f() { select {} }", "select"},
		{"range over chan", "func f(c chan int) { for range c { } }", "range over a channel"},
		{"range over map", "func f(m map[string]int) { for range m { } }", "range over a map"},
		{"range over named map", "type values map[string]int\nfunc f(m values) { for range m { } }", "range over a map"},
		{"maps.Keys", "import \"maps\"\nfunc f(m map[string]int) { for range maps.Keys(m) { } }", "maps.Keys"},
		{"now", "import \"time\"\nvar t = time.Now()", "time.Now"},
		{"renamed import", "import clock \"time\"\nvar t = clock.Now()", "time.Now"},
		{"as a value", "import \"time\"\nvar now = time.Now", "time.Now"},
		{"since", "import \"time\"\nfunc f(t time.Time) time.Duration { return time.Since(t) }", "time.Since"},
		{"timer", "import \"time\"\nvar t = time.After(1)", "time.After"},
		{"timeout", "import (\"context\"; \"time\")\nfunc f(ctx context.Context) { context.WithTimeout(ctx, time.Second) }",
			"context.WithTimeout"},
		{"rand", "import \"math/rand/v2\"\nvar n = rand.Int()", "random number"},
		{"pull", "import \"iter\"\nfunc f(s iter.Seq[int]) { iter.Pull(s) }", "coroutine"},
		{"mutex", "import \"sync\"\nvar mu sync.Mutex", "locks belong to executors"},
		{"tools passed on", "type Tool struct{ Name string }\nfunc f(ts []*Tool) int { return len(ts) }", ""},
		{"a field of a tool", "type Tool struct{ Name string }\nfunc f(t *Tool) string { return t.Name }", "never looks at a tool"},
		{"71 lines", long, "has 71 lines"},
		{"70 lines", strings.Replace(long, "\t_ = 1\n", "", 1), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fset, s := checkSource(t, "package x\n"+tt.src+"\n")
			wantComplaint(t, checkLoop(fset, s.files[0], s.info), tt.want)
		})
	}
}

func TestCheckComments(t *testing.T) {
	const head = "// Package x is an example.\npackage x\n"
	for _, tt := range []sample{
		{"documented", head + "// F does it.\nfunc F() {}\n", ""},
		{"unexported", head + "func f() {}\ntype t int\nfunc (t) M() {}\n", ""},
		{"no package comment", "package x\n", "no package comment"},
		{"another package comment", "// Here begins the package.\npackage x\n", "no package comment"},
		{"command", "// Command x does it.\npackage main\nfunc F() {}\n", ""},
		{"command without a comment", "package main\n", `"Command "`},
		{"function", head + "func F() {}\n", "F has no comment"},
		{"method", head + "// T is a type.\ntype T[A any] int\nfunc (*T[A]) M() {}\n", "M has no comment"},
		{"type", head + "type T int\n", "T has no comment"},
		{"type in a group", head + "// Types of it.\ntype (\n\tT int\n)\n", "T has no comment"},
		{"const", head + "const C = 1\n", "C has no comment"},
		{"group of constants", head + "// The sizes.\nconst (\n\tA = 1\n\tB = 2\n)\n", ""},
		{"line comments", head + "const (\n\tA = 1 // one\n)\n", ""},
		{"group without a comment", head + "const (\n\tA = 1\n)\n", "neither has its group"},
		{"another beginning", head + "// This does it.\nfunc F() {}\n", `begins "This"`},
		{"longer name", head + "// Fast does it.\nfunc F() {}\n", `begins "Fast"`},
		{"name alone", head + "// F\nfunc F() {}\n", "begins"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fset, f := parseSource(t, tt.src)
			wantComplaint(t, checkComments(fset, []*ast.File{f}), tt.want)
		})
	}
}

func TestCheckState(t *testing.T) {
	for _, tt := range []sample{
		{"table", "var m = map[string]int{\"a\": 1}\nfunc f() int { return m[\"a\"] }", ""},
		{"sentinel", "import \"errors\"\nvar ErrX = errors.New(\"x\")", ""},
		{"pool", "import \"sync\"\nvar p sync.Pool\nfunc f() { p.Put(1) }", ""},
		{"local", "func f() { n := 1; n++; n = 2; _ = n }", ""},
		{"shadow", "var n = 1\nfunc f() { n := n; n++; _ = n }", ""},
		{"field", "type t struct{ n int }\nfunc (t *t) f() { t.n++ }", ""},
		{"assign", "var n int\nfunc f() { n = 1 }", "variable n is changed"},
		{"increment", "var n int\nfunc f() { n++ }", "variable n is changed"},
		{"element", "var m = map[string]int{}\nfunc f() { m[\"a\"] = 1 }", "variable m is changed"},
		{"delete", "var m = map[string]int{}\nfunc f() { delete(m, \"a\") }", "variable m is changed"},
		{"field of it", "var t struct{ n int }\nfunc f() { t.n = 1 }", "variable t is changed"},
		{"mutex", "import \"sync\"\nvar mu sync.Mutex", "is a sync.Mutex"},
		{"atomic", "import \"sync/atomic\"\nvar n atomic.Int64", "is a sync/atomic.Int64"},
		{"init", "func init() {}", "func init"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fset, s := checkSource(t, "package x\n"+tt.src+"\n")
			wantComplaint(t, checkState(fset, s.files, s.info), tt.want)
		})
	}
}

func TestCheckToolPages(t *testing.T) {
	const (
		literal  = "package x\nvar t = &pawl.Tool{Name: \"x\"}\n"
		typed    = "package x\nvar t = pawl.Func(\"x\", page, f)\n"
		explicit = "package x\nvar t = pawl.Func[In, Out](\"x\", page, f)\n"
		defined  = "package x\nvar t = toolrun.Define(files, \"z\", &pawl.Tool{Name: \"x\"})\n"
		computed = "package x\nvar t = toolrun.Define(files, name, &pawl.Tool{Name: \"x\"})\n"
		none     = "package x\nfunc all() []*pawl.Tool { return []*pawl.Tool{a, b} }\n"
	)
	for _, tt := range []struct {
		name, src string
		pages     []string
		want      string
	}{
		{"literal", literal, []string{"x.md"}, ""},
		{"typed", typed, []string{"x.md", "README.md"}, ""},
		{"no tool", none, nil, ""},
		{"literal without a page", literal, nil, "no x.md in its folder"},
		{"typed without a page", typed, nil, "no x.md in its folder"},
		{"explicit without a page", explicit, nil, "no x.md in its folder"},
		{"defined", defined, []string{"z.md"}, ""},
		{"defined without a page", defined, nil, "no z.md in its folder"},
		{"defined by a computed name", computed, nil, "is a literal"},
		{"page without a tool", none, []string{"y.md"}, "no tool is made in y.go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fset, f := parseSource(t, tt.src)
			wantComplaint(t, checkToolPages(fset, []*ast.File{f}, tt.pages), tt.want)
		})
	}
}

func TestCheckText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"relative", "see ../other/data and testdata/root/x", ""},
		{"address", "https://example.com/work/items", ""},
		{"absolute elsewhere", "/etc/passwd and /usr/bin/python3", ""},
		{"binary", "/wo" + "rk/main\x00", ""},
		{"checkout", "cd /wo" + "rk/main", "path of one machine"},
		{"home", `open("/ro` + `ot/.ssh/id")`, "path of one machine"},
		{"scratch", "cat /tm" + "p/run7/out", "scratch folder"},
		{"scratch of nobody", "cat /tm" + "p/x", ""},
		{"registry", "GOPROXY=https://proxy.gol" + "ang.org", "host of a registry"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantComplaint(t, checkText("x", []byte(tt.text)), tt.want)
		})
	}
}

func TestCheckData(t *testing.T) {
	for _, tt := range []struct{ name, path, text, want string }{
		{"door", "react/x_test.go", `corpora.Read(t, "bfcl/dev/a.jsonl")`, ""},
		{"another shared folder", "config/x_test.go", `filepath.Join(dir, "shar` + `ed", "notes")`, ""},
		{"the door itself", "internal/test/corpora/x.go", `os.Getenv("PAWL_COR` + `PORA")`, ""},
		{"variable", "react/x_test.go", `os.Getenv("PAWL_COR` + `PORA")`, "open it with package internal/test/corpora"},
		{"path", "react/x_test.go", `os.Open("../../shar` + `ed/data/x")`, "open it with package"},
		{"joined path", "react/x_test.go", `filepath.Join("..", "..", "shar` + `ed", "found")`, "open it with package"},
		{"words", "react/x_test.go", `t.Skip("corpora ab` + `sent")`, "open it with package"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantComplaint(t, checkData(tt.path, tt.text), tt.want)
		})
	}
}

// TestTracked lists a tree without git.
func TestTracked(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.go", "b/c.md", ".bin/tool", "bench/out/latest.json"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.go", "b/c.md"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
