package answertest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each door of ReportDoors, of RoundDoors and of Doors is played by a test, of any module. Without
// the tests of the command, its door is missing from each.
func TestEachDoorIsPlayed(t *testing.T) {
	reports := slices.Sorted(maps.Keys(ReportDoors))
	if missing := without(reports, playedBy(t, "PlayReport", "")); len(missing) > 0 {
		t.Errorf("no test calls PlayReport for the doors %q", missing)
	}
	if missing := without(Doors, playedBy(t, "Play", "")); len(missing) > 0 {
		t.Errorf("no test calls Play for the doors %q", missing)
	}

	if missing := without(RoundDoors, playedBy(t, "PlayRounds", "")); len(missing) > 0 {
		t.Errorf("no test calls PlayRounds for the doors %q", missing)
	}

	for function, doors := range map[string][]string{"PlayReport": reports, "Play": Doors, "PlayRounds": RoundDoors} {
		missing := without(doors, playedBy(t, function, "cmd/pawl"))
		if !slices.Equal(missing, []string{"command"}) {
			t.Errorf("%s without the tests of the command: %q are missing", function, missing)
		}
	}
}

// without returns the texts of all that are not in found.
func without(all []string, found map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return found[s] })
}

// playedBy returns the doors that tests pass to a function of this package, outside a folder; ""
// means all folders. If a test passes no literal, all literals of the test count.
func playedBy(t *testing.T, function, except string) map[string]bool {
	t.Helper()
	doors := map[string]bool{}
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		skipped := name == "node_modules" || name == "testdata" || path == filepath.Join(root, except)
		if entry.IsDir() && path != root && (skipped || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}

		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			addDoors(doors, d, function)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return doors
}

// addDoors adds the doors that a declaration passes to a function of this package.
func addDoors(doors map[string]bool, d ast.Decl, function string) {
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || called.Sel.Name != function {
			return true
		}
		if pkg, ok := called.X.(*ast.Ident); !ok || pkg.Name != "answertest" {
			return true
		}

		var in ast.Node = d
		if _, ok := call.Args[1].(*ast.BasicLit); ok {
			in = call.Args[1]
		}
		ast.Inspect(in, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if door, err := strconv.Unquote(lit.Value); err == nil {
					doors[door] = true
				}
			}
			return true
		})
		return true
	})
}
