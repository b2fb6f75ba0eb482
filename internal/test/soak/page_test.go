package soak

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// row is a line of the table in docs/internals/tests.md: package, test, size in make test, size in
// make soak.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(Test[^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

// docs/internals/tests.md names tests that exist, each in a package that sets sizes, and has a row
// for each such package and for each test that calls N or Only itself.
func TestPage(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "tests.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed, packages := map[string]bool{}, map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		listed[m[1]+" "+m[2]] = true
		packages[m[1]] = true
		if strings.TrimSpace(m[3]) == strings.TrimSpace(m[4]) {
			t.Errorf("%s %s has one size only: %s", m[1], m[2], m[3])
		}
	}

	exists, sized := map[string]bool{}, map[string]bool{}
	for test, uses := range testsOf(t, root) {
		folder, _, _ := strings.Cut(test, " ")
		exists[test] = true
		sized[folder] = sized[folder] || uses
		if uses && strings.Contains(test, " Test") && !listed[test] {
			t.Errorf("%s has a size: docs/internals/tests.md lists such tests", test)
		}
	}
	for test := range listed {
		if !exists[test] {
			t.Errorf("docs/internals/tests.md lists %s, which does not exist", test)
		}
	}
	for folder := range sized {
		if sized[folder] && !packages[folder] {
			t.Errorf("a test of %s has a size: docs/internals/tests.md lists such tests", folder)
		}
	}
	for folder := range packages {
		if !sized[folder] {
			t.Errorf("docs/internals/tests.md lists tests of %s, where nothing sets a size", folder)
		}
	}
}

// testsOf returns the declarations of all test files, as folder and name, and whether each one uses
// N or Only of this package.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			name := "var"
			if f, ok := decl.(*ast.FuncDecl); ok {
				name = f.Name.Name
			}
			test := filepath.ToSlash(filepath.Dir(path)) + " " + name
			tests[test] = tests[test] || setsSize(decl)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func setsSize(n ast.Node) (sets bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "N" || s.Sel.Name == "Only" || s.Sel.Name == "On") {
			x, ok := s.X.(*ast.Ident)
			sets = sets || ok && x.Name == "soak"
		}
		return !sets
	})
	return sets
}
