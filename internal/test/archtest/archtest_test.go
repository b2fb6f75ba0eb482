package archtest

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
)

var (
	update = flag.Bool("update", false, "remove what is out of date from "+pendingFile)
	listed = flag.String("places", "", "list the places of the budget with this `name`")
	folder = flag.String("folder", "", "measure the Go files of another `folder` in TestClarityFigures")
)

// The module and its Go files are loaded once, because that takes seconds. The tests share them and
// run one after another, without locks: a lock would put the package under the race detector.
var (
	loaded *tree
	parsed []*goFile
)

// theTree returns the module.
func theTree(t *testing.T) *tree {
	t.Helper()
	soak.Sequential(t)
	if loaded == nil {
		tr, err := load()
		if err != nil {
			t.Fatal(err)
		}
		loaded = tr
	}
	return loaded
}

// theFiles returns the Go files of the project.
func theFiles(t *testing.T) []*goFile {
	t.Helper()
	soak.Sequential(t)
	if parsed == nil {
		files, err := goFiles(theTree(t).root)
		if err != nil {
			t.Fatal(err)
		}
		product := theTree(t).product()
		for _, f := range files {
			f.shipped = product[f.dir()] && !f.test()
		}
		parsed = files
	}
	return parsed
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
		t.Errorf("found only %d packages: the rules would pass because there is nothing to check", len(tr.ours))
	}
}

// TestArrows allows each package the imports of the picture in docs/design.md, and no others.
func TestArrows(t *testing.T) {
	for _, u := range theTree(t).ours {
		report(t, checkArrows(u.rel(), u.Imports))
	}
}

// TestModules lets each module build without the modules that it does not require.
func TestModules(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		report(t, checkModule(u.rel(), u.Imports, false))
		report(t, checkModule(u.rel(), slices.Concat(u.TestImports, u.XTestImports), true))
	}

	read := func(dir, name string) string {
		b, err := os.ReadFile(filepath.Join(tr.root, dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	work := read(".", "go.work")
	var mods []string
	for _, dir := range append([]string{"."}, nestedModules...) {
		mod := read(dir, "go.mod")
		mods = append(mods, mod)
		report(t, checkGoMod(dir, mod, work))
	}
	report(t, checkVersions(mods, work))
}

// TestCorePullsInFewModules counts the modules of a program that imports only the core.
func TestCorePullsInFewModules(t *testing.T) {
	tr := theTree(t)
	var got []string
	for _, dep := range tr.all[module].Deps {
		if m := tr.all[dep].Module; m != nil && !matches(module+"/...", m.Path) && !slices.Contains(got, m.Path) {
			got = append(got, m.Path)
		}
	}
	slices.Sort(got)
	for _, m := range got {
		if !slices.Contains(coreModules, m) {
			t.Errorf("the core pulls in %s, and with it every program: it may use std and %q", m, coreModules)
		}
	}
	if len(got) > len(coreModules) {
		t.Errorf("the core pulls in %d modules, want at most %d: %q", len(got), len(coreModules), got)
	}
	t.Logf("the core pulls in %d modules: %s", len(got), strings.Join(got, ", "))
}

// TestModulesAreExplained requires a line in the design's table for each module of a go.mod.
func TestModulesAreExplained(t *testing.T) {
	root := theTree(t).root
	page, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if path.Base(name) != "go.mod" || strings.Contains(name, "testdata/") {
			continue
		}
		mod, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		report(t, unexplained(name, string(mod), string(page)))
	}
}

// TestArrowsAreUsed requires that each line of the picture matches a package.
func TestArrowsAreUsed(t *testing.T) {
	imports := map[string][]string{}
	for _, u := range theTree(t).ours {
		imports[u.rel()] = append([]string{}, u.Imports...)
	}
	report(t, deadArrows(arrows, planned, imports))
}

// theSource returns a package, parsed and type-checked.
func theSource(t *testing.T, u *unit) *source {
	t.Helper()
	s, err := theTree(t).source(u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLoop keeps the loop sequential, deterministic and short.
func TestLoop(t *testing.T) {
	tr := theTree(t)
	u := tr.all[module]
	i := slices.Index(u.GoFiles, "loop.go")
	if i < 0 {
		t.Fatal("the core has no loop.go: the loop stands there alone, so that it can be read and checked")
	}
	s := theSource(t, u)
	report(t, checkLoop(tr.fset, s.files[i], s.info))
}

// TestComments requires a contract at every exported name.
func TestComments(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		report(t, checkComments(tr.fset, theSource(t, u).files))
	}
}

// TestState refuses packages with mutable state of their own.
func TestState(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		s := theSource(t, u)
		bad := checkState(tr.fset, s.files, s.info)
		if u.rel() == "sandbox" {
			// The only init: a child process must start as one before anything else runs.
			bad = slices.DeleteFunc(bad, func(b string) bool {
				return strings.Contains(b, "sandbox/child.go") && strings.Contains(b, "func init")
			})
		}
		report(t, bad)
	}
}

// TestToolPages requires a page of prose for each tool that the project contains.
func TestToolPages(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		rel := u.rel()
		if !strings.HasPrefix(rel, "tools/") || rel == "tools/outside" {
			continue // users write the descriptions of outside's tools
		}
		pages, err := filepath.Glob(filepath.Join(u.Dir, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range pages {
			pages[i] = filepath.Base(p)
		}
		if len(pages) == 0 && !strings.HasPrefix(rel, "tools/internal/") {
			t.Errorf("%s has no page: a family of tools has one for each", rel)
		}
		report(t, checkToolPages(tr.fset, theSource(t, u).files, pages))
	}
}

// TestText searches all files of the project for paths of one machine.
func TestText(t *testing.T) {
	root := theTree(t).root
	files, err := tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkText(name, b))
	}
}

// TestData searches the Go files for a way to the recorded data that is not its door.
func TestData(t *testing.T) {
	root := theTree(t).root
	files, err := tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if path.Ext(name) != ".go" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkData(name, string(b)))
	}
}

// TestExamples requires a runnable example in every package that users import.
func TestExamples(t *testing.T) {
	tr := theTree(t)
	for _, u := range tr.ours {
		rel := u.rel()
		if rel == "store/storetest" {
			continue // the tests that run the suite are its examples
		}
		hidden := strings.Contains("/"+rel, "/internal/")
		if u.Name == "main" || hidden || strings.HasPrefix(rel, "examples/") {
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
