package archtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBudgets compares each figure of the tree with its budget. With -v it prints the table and the
// waivers.
func TestBudgets(t *testing.T) {
	f := newFigures(theTree(t), theFiles(t))
	t.Logf("%-26s %8s  %-30s %s", "budget", "now", "limit", "measured by")
	for _, b := range budgets {
		got, err := b.measure(f)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		t.Logf("%-26s %8.6g  %-30s %s", b.name, got.value, b.bound, b.by)
		if bad := checkBudget(b, got); bad != "" {
			t.Error(bad)
		}
		if b.name == *listed {
			t.Log(strings.Join(got.places, "\n"))
		}
	}

	report(t, checkWaivers(f.clarity))
	for _, w := range f.clarity.waivers {
		t.Log(w)
	}
	t.Logf("%d waivers, at most %d", len(f.clarity.waivers), maxWaivers)
	t.Logf("the product has %d tokens; they have no limit", f.clarity.tokens)
}

// TestClarityFigures prints what the rules of clarity find without waivers: in the product, or in a
// folder with any Go code, such as another version of this project.
//
//	go test ./internal/test/archtest -run ClarityFigures -v -folder DIR
func TestClarityFigures(t *testing.T) {
	var all []*clarity
	for _, f := range clarityFiles(t) {
		all = append(all, clarityOf(f))
	}
	c := sum(all)
	t.Logf("%d files, %d tokens, %d functions, %d of %d lines of code and more", len(all), c.tokens, c.functions, c.big,
		bigFunction)
	for _, r := range rules {
		t.Logf("%-10s %5d", r, len(c.over(r, -1)))
	}
	t.Logf("conditions that are predicates: %d", len(c.predicates))
	for _, x := range []struct {
		rule  rule
		limit int
	}{{ruleComplexity, maxComplexity}, {ruleComplexity, 25}, {ruleRun, maxRun}, {ruleRun, 30}, {ruleWide, 160}} {
		n := len(c.over(x.rule, x.limit))
		t.Logf("%s over %d: %d (%.1f %% of the functions)", x.rule, x.limit, n, percent(n, c.functions))
	}
	t.Logf("with a blank line %.1f %%, with a comment %.1f %%, comment lines %.1f %%",
		c.blankShare(), c.commentedShare(), c.commentShare())
	t.Logf("exported fields: %d; fields of one letter in all structs: %d", c.fields, c.letters)
	if c.functions == 0 {
		t.Error("no function was measured")
	}
}

// clarityFiles returns the product, or the Go files of the folder of the command line. Of such a
// folder, tests, test equipment and examples are left out by their names.
func clarityFiles(t *testing.T) []*goFile {
	if *folder == "" {
		return newFigures(theTree(t), theFiles(t)).product("")
	}
	files, err := goFiles(*folder)
	if err != nil {
		t.Fatal(err)
	}
	apart := regexp.MustCompile(`(^|/)(testdata|examples?|bench|vendor|[^/]*test|[._][^/]*)/`)
	return slices.DeleteFunc(files, func(f *goFile) bool { return f.test() || apart.MatchString(f.path) })
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
		name  string
		bound bound
		got   float64
		want  string
	}{
		{"under the limit", atMost(100), 40, ""},
		{"at the limit", atMost(100), 100, ""},
		{"over", atMost(100), 101, "at most 100. "},
		{"enough", atLeast(3), 3.5, ""},
		{"too little", atLeast(3), 2.5, "2.5 x, at least 3. "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := checkBudget(budget{name: "x", by: "x", bound: tt.bound}, figure{value: tt.got})
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestBudgetPlaces expects the first places in the complaint, and how to see the others.
func TestBudgetPlaces(t *testing.T) {
	got := checkBudget(budget{name: "x", bound: atMost(0)}, figure{12, slices.Repeat([]string{"a.go:1"}, 12)})
	if strings.Count(got, "a.go:1") != maxPlaces || !strings.Contains(got, `and 2 more; -run Budgets -v -places "x"`) {
		t.Errorf("got %q", got)
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
	files := []*goFile{parseFile(t, "a.go", src), parseFile(t, "b.go", long)}
	for _, f := range files {
		f.shipped = true
	}
	files = append(files, parseFile(t, "a_test.go", src), parseFile(t, "bench/a.go", src))
	tr := &tree{fset: fset, all: map[string]*unit{module: core}, checked: map[string]*source{module: s}}
	f := newFigures(tr, files)
	inPackage := func(measure func(*figures, string) (float64, error), dir string) func(*figures) (figure, error) {
		return func(f *figures) (figure, error) {
			value, err := measure(f, dir)
			return figure{value: value}, err
		}
	}

	for _, tt := range []struct {
		name    string
		measure func(*figures) (figure, error)
		want    float64
	}{
		{"files", fileCount("."), 2},
		{"files elsewhere", fileCount("llm"), 0},
		{"largest file", largestFile, 1 + maxFunction + 1 + maxFunction},
		{"long functions", places(ruleLong), 1},
		{"share of long functions", share(ruleLong, 0), 50},
		{"exported names", inPackage(exportedNames, "."), 2},
		{"names of no package", inPackage(exportedNames, "llm"), 0},
		{"interfaces", interfaces(module), 1},
		{"methods", methods(module), 2},
		{"cycle", inPackage(cycle, "."), 0},
		{"tokens", inPackage(tokens, "."), 521},
		{"fields of run", runFields, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.measure(f)
			if err != nil || got.value != tt.want {
				t.Errorf("got %g, %v, want %g", got.value, err, tt.want)
			}
		})
	}
}

// TestPerPackage expects that a package with a bound of its own is not measured with the others.
func TestPerPackage(t *testing.T) {
	var files []*goFile
	for _, name := range []string{"a/a.go", "a/b.go", "b/a.go", "c/a.go"} {
		f := parseFile(t, name, "package x\n")
		f.shipped = true
		files = append(files, f)
	}
	count := func(f *figures, dir string) (float64, error) { return float64(len(f.product(dir))), nil }
	list := perPackage("files", "files", atMost(0), count, []room{{"a", atMost(3)}})
	if len(list) != 2 || list[1].name != "files of a" {
		t.Fatalf("got %d budgets", len(list))
	}
	all, _ := list[0].measure(newFigures(nil, files))
	own, _ := list[1].measure(newFigures(nil, files))
	if got := strings.Join(all.places, ", "); all.value != 1 || got != "b has 1, c has 1" || own.value != 2 {
		t.Errorf("got %g in %q, and %g, want 1 in b and c, and 2", all.value, got, own.value)
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
