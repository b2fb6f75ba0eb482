package archtest

import (
	"strings"
	"testing"
)

// TestBudgets compares each figure of the tree with its budget. With -v it prints the table.
func TestBudgets(t *testing.T) {
	f := &figures{theTree(t), theFiles(t)}
	t.Logf("%-20s %7s %7s  %s", "budget", "now", "limit", "measured by")
	for _, b := range budgets {
		got, err := b.measure(f)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		t.Logf("%-20s %7d %7d  %s", b.name, got, b.limit, b.by)
		if bad := checkBudget(b, got); bad != "" {
			t.Error(bad)
		}
	}
}

// TestCallPath prints how many functions one tool call runs. It has no limit.
func TestCallPath(t *testing.T) {
	path, err := callPath(theTree(t).root, theFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(path) == 0 {
		t.Error("no function of the root or of llm ran in a call")
	}
	t.Logf("one tool call runs %d functions of the root and llm", len(path))
}

func TestCheckBudget(t *testing.T) {
	for _, tt := range []struct {
		name       string
		got, limit int
		want       string
	}{
		{"under the limit", 40, 100, ""},
		{"at the limit", 100, 100, ""},
		{"over", 101, 100, "at most 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := checkBudget(budget{name: "x", limit: tt.limit}, tt.got)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestBudgetsCount measures a small tree whose figures are known.
func TestBudgetsCount(t *testing.T) {
	const src = "// Package pawl is an example.\npackage pawl\n\n// T is a type.\ntype T interface{ A(); B() }\n\n" +
		"type run struct{ a, b int }\n\nvar X, y = 1, `\n`\n"
	long := "package pawl\n\nfunc (r *run) long() {\n" + strings.Repeat("\t_ = 1\n", maxFunction-1) + "}\n\n" +
		"func short() {\n" + strings.Repeat("\t_ = 1\n\n\t// Why.\n", maxFunction-2) + "}\n"
	fset, s := checkSource(t, src, long)
	core := &unit{ImportPath: module}
	f := &figures{
		tree: &tree{fset: fset, all: map[string]*unit{module: core}, checked: map[string]*source{module: s}},
		files: []*goFile{parseFile(t, "a.go", src), parseFile(t, "b.go", long),
			parseFile(t, "a_test.go", src), parseFile(t, "bench/a.go", src)},
	}
	for _, tt := range []struct {
		name    string
		measure func(*figures) (int, error)
		want    int
	}{
		{"files", fileCount("."), 2},
		{"files elsewhere", fileCount("llm"), 0},
		{"largest file", largestFile, 1 + maxFunction + 1 + maxFunction},
		{"long functions", longFunctions, 1},
		{"exported names", exportedNames(module), 2},
		{"names of no package", exportedNames(module + "/llm"), 0},
		{"interfaces", interfaces(module), 1},
		{"methods", methods(module), 2},
		{"cycle", rootCycle, 0},
		{"fields of run", runFields, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.measure(f)
			if err != nil || got != tt.want {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
		})
	}
}

func TestFileGraph(t *testing.T) {
	const types = "package x\ntype t[E any] struct{ n E }\n"
	for _, tt := range []struct {
		name string
		srcs []string
		want string
	}{
		{"none", []string{types, "package x\nfunc f(n int) int { return n }\n"}, ""},
		{"one way", []string{types, "package x\nfunc f() { _ = t[int]{} }\n"}, ""},
		{"field",
			[]string{types + "var v = f()\n", "package x\nfunc f() int { return g().n }\n",
				"package x\nfunc g() t[int] { return t[int]{} }\n"}, "a.go b.go c.go"},
		{"method", []string{types + "func f(x t[int]) { x.m() }\n", "package x\nfunc (t[E]) m() {}\n"}, "a.go b.go"},
		{"two cycles", []string{"package x\nfunc a() { b() }\n", "package x\nfunc b() { a(); c() }\n", "package x\nfunc c() { d() }\n",
			"package x\nfunc d() { e() }\n", "package x\nfunc e() { c() }\n"}, "c.go d.go e.go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fset, s := checkSource(t, tt.srcs...)
			if got := strings.Join(largestCycle(fileGraph(fset, s)), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCoveredLines(t *testing.T) {
	got, err := coveredLines("mode: set\n" + module + "/a.go:3.10,5.2 1 1\n" + module + "/a.go:7.10,9.2 1 0\n")
	if err != nil || len(got) != 1 || len(got["a.go"]) != 1 || got["a.go"][0] != 3 {
		t.Errorf("got %v, %v, want line 3 of a.go", got, err)
	}
	if _, err := coveredLines("a.go:one\n"); err == nil {
		t.Error("a profile of another form is accepted")
	}
}
