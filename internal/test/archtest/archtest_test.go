package archtest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var loaded = sync.OnceValues(load)

// theTree returns the module; the tests below share it, since listing it takes seconds.
func theTree(t *testing.T) *tree {
	t.Helper()
	tr, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func report(t *testing.T, bad []string) {
	t.Helper()
	for _, b := range bad {
		t.Error(b)
	}
}

// TestCompiles names the packages that the other rules could not look at.
func TestCompiles(t *testing.T) {
	tr := theTree(t)
	report(t, tr.bad)
	if len(tr.ours) < 5 || tr.all[module] == nil {
		t.Errorf("found only %d packages; the rules would be kept for want of anything to break them", len(tr.ours))
	}
}

// TestArrows keeps every package to the imports that the picture in docs/design.md allows it.
func TestArrows(t *testing.T) {
	for _, u := range theTree(t).ours {
		report(t, checkArrows(u.rel(), u.Imports))
	}
}

// TestCorePullsInFewModules counts what a program gets that imports the core and nothing else.
func TestCorePullsInFewModules(t *testing.T) {
	tr := theTree(t)
	var got []string
	for _, dep := range tr.all[module].Deps {
		if m := tr.all[dep].Module; m != nil && m.Path != module && !slices.Contains(got, m.Path) {
			got = append(got, m.Path)
		}
	}
	slices.Sort(got)
	for _, m := range got {
		if !slices.Contains(coreModules, m) {
			t.Errorf("the core pulls in %s; whoever imports the core would get it: keep it to std and %q", m, coreModules)
		}
	}
	if len(got) > len(coreModules) {
		t.Errorf("the core pulls in %d modules, want at most %d: %q", len(got), len(coreModules), got)
	}
	t.Logf("the core pulls in %d modules: %s", len(got), strings.Join(got, ", "))
}

// TestModulesAreExplained wants a line in the design's table for each module of go.mod.
func TestModulesAreExplained(t *testing.T) {
	root := theTree(t).root
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, unexplained(string(mod), string(page)))
}

// TestLoop keeps the loop sequential, deterministic and short.
func TestLoop(t *testing.T) {
	tr := theTree(t)
	u := tr.all[module]
	files, err := tr.parse(u)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(u.GoFiles, "loop.go")
	if i < 0 {
		t.Fatal("the core has no loop.go: the loop is there, alone, so that it can be read and kept to its rules")
	}
	info, err := tr.check(module, files)
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkLoop(tr.fset, files[i], info))
}

// TestComments wants a contract at every exported name.
func TestComments(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		files, err := tr.parse(u)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkComments(tr.fset, files))
	}
}

// TestState wants no package to keep state of its own.
func TestState(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		files, err := tr.parse(u)
		if err != nil {
			t.Fatal(err)
		}
		info, err := tr.check(u.ImportPath, files)
		if err != nil {
			t.Fatal(err)
		}
		bad := checkState(tr.fset, files, info)
		if u.rel() == "sandbox" { // the one init there is: a process that was started as a child is one before anything else runs
			bad = slices.DeleteFunc(bad, func(b string) bool {
				return strings.Contains(b, "sandbox/child.go") && strings.Contains(b, "func init")
			})
		}
		report(t, bad)
	}
}

// TestToolPages wants a page of prose beside each tool that ships with the project.
func TestToolPages(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		if !strings.HasPrefix(u.rel(), "tools/") || u.rel() == "tools/outside" { // its tools are described by whoever defines them
			continue
		}
		files, err := tr.parse(u)
		if err != nil {
			t.Fatal(err)
		}
		pages, err := filepath.Glob(filepath.Join(u.Dir, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range pages {
			pages[i] = filepath.Base(p)
		}
		if len(pages) == 0 {
			t.Errorf("%s has no page: a family of tools has one for each", u.rel())
		}
		report(t, checkToolPages(tr.fset, files, pages))
	}
}

// TestText looks for places of one machine in all files of the project.
func TestText(t *testing.T) {
	root := theTree(t).root
	files, err := tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and the removal is not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkText(name, b))
	}
}

// TestExamples wants every package that users import to have an example that runs.
func TestExamples(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		rel := u.rel()
		if rel == "store/storetest" {
			continue // a suite is shown by the tests that run it
		}
		if u.Name == "main" || strings.HasPrefix(rel, "internal/") || strings.HasPrefix(rel, "examples/") {
			continue
		}
		if !hasExample(t, u) {
			t.Errorf("%s has no Example with an Output comment: a package is learned from a program that runs", path.Join("pawl", rel))
		}
	}
}

func hasExample(t *testing.T, u *unit) bool {
	for _, name := range slices.Concat(u.TestGoFiles, u.XTestGoFiles) {
		src, err := os.ReadFile(filepath.Join(u.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(src), "\nfunc Example") && strings.Contains(string(src), "// Output:") {
			return true
		}
	}
	return false
}
