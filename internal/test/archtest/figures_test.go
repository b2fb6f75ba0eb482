package archtest

import (
	"os"
	"strings"
	"testing"
)

// TestBudgets compares each figure of the tree with its budget. With -v it prints the table, with
// -update it lowers the limits that are too high.
func TestBudgets(t *testing.T) {
	f := &figures{theTree(t), theFiles(t)}
	t.Logf("%-20s %7s %7s %7s  %s", "budget", "now", "limit", "goal", "measured by")
	for _, b := range budgets {
		got, err := b.measure(f)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		t.Logf("%-20s %7d %7d %7d  %s", b.name, got, b.limit, b.goal, b.by)
		bad := checkBudget(b, got)
		if bad != "" && got < b.limit && *update {
			rewrite(t, "budgets.go", func(source string) string { return lower(source, b, got) })
		} else if bad != "" {
			t.Error(bad)
		}
	}
}

// rewrite changes a file of this package.
func rewrite(t *testing.T, name string, change func(string) string) {
	t.Helper()
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(change(string(old))), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLower(t *testing.T) {
	b := budget{name: "x", by: "lines", limit: 100, goal: 50}
	const row = "{\"x\", \"lines\", %s, 50, lines},"
	for _, tt := range []struct {
		got  int
		want string
	}{{80, "80"}, {40, "50"}} {
		got := lower(strings.Replace(row, "%s", "100", 1), b, tt.got)
		if want := strings.Replace(row, "%s", tt.want, 1); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestCeilings compares the size of each package with its ceiling. With -v it prints the table.
func TestCeilings(t *testing.T) {
	lines, bad := sizes(theFiles(t), ceilings)
	report(t, bad)
	report(t, deadCeilings(lines, ceilings, planned))
	for _, c := range ceilings {
		fault, note := checkCeiling(c, lines[c.dir])
		if fault != "" {
			t.Error(fault)
		}
		t.Logf("%-26s %6d of %6d  %s", c.dir, lines[c.dir], c.limit(), note)
	}
}

func TestCheckBudget(t *testing.T) {
	for _, tt := range []struct {
		name             string
		got, limit, goal int
		want             string
	}{
		{"at the limit", 100, 100, 50, ""},
		{"over", 101, 100, 50, "at most 100"},
		{"a little under", 98, 100, 50, ""},
		{"far under", 97, 100, 50, "lower it to 97"},
		{"under the goal", 40, 100, 50, "lower it to 50"},
		{"limit at the goal", 10, 50, 50, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := checkBudget(budget{name: "x", limit: tt.limit, goal: tt.goal}, tt.got)
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
	long := "package pawl\n\nfunc (r *run) long() {\n" + strings.Repeat("\t_ = 1\n", maxFunction-1) + "}\n"
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
		{"product lines", productLines, 5 + maxFunction + 2},
		{"files", fileCount("."), 2},
		{"files elsewhere", fileCount("llm"), 0},
		{"all lines", allLines("."), 10 + maxFunction + 3},
		{"largest file", largestFile(""), maxFunction + 3},
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

func TestCheckCeiling(t *testing.T) {
	for _, tt := range []struct {
		name        string
		c           ceiling
		lines       int
		fault, note string
	}{
		{"within", ceiling{"x", 100, 0}, 90, "", ""},
		{"over", ceiling{"x", 100, 0}, 101, "at most 100", ""},
		{"over the goal", ceiling{"x", 100, 120}, 118, "", ""},
		{"over the present value", ceiling{"x", 100, 120}, 121, "at most 120", ""},
		{"goal reached", ceiling{"x", 100, 120}, 99, "", "remove now"},
		{"far below", ceiling{"x", 100, 0}, 84, "", "lower it"},
		{"absent", ceiling{"x", 100, 0}, 0, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fault, note := checkCeiling(tt.c, tt.lines)
			if (fault == "") != (tt.fault == "") || !strings.Contains(fault, tt.fault) {
				t.Errorf("got fault %q, want %q", fault, tt.fault)
			}
			if (note == "") != (tt.note == "") || !strings.Contains(note, tt.note) {
				t.Errorf("got note %q, want %q", note, tt.note)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	const src = "package x\n\n// A comment.\nvar a int\n"
	var files []*goFile
	for _, path := range []string{"a.go", "b/b.go", "b/c/c.go", "b/c/c_test.go", "b/d/d.go", "e/e.go", "bench/f.go"} {
		files = append(files, parseFile(t, path, src))
	}
	lines, bad := sizes(files, []ceiling{{dir: "."}, {dir: "b"}, {dir: "b/d"}})
	for dir, want := range map[string]int{".": 2, "b": 4, "b/d": 2} {
		if lines[dir] != want {
			t.Errorf("%s has %d lines, want %d", dir, lines[dir], want)
		}
	}
	wantComplaint(t, bad, "e: no line of ceilings.go")
	table := []ceiling{{dir: "b"}, {dir: "f"}, {dir: "g"}}
	wantComplaint(t, deadCeilings(lines, table, []string{"g"}), "f has no code")
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
