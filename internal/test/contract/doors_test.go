package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/contract"
)

const root = "../../.."

// sources are what the tests of the project play and show.
type sources struct {
	played map[string]bool // doors
	tests  map[string]bool // "FOLDER TestName"
}

// read reads the tests of the project.
func read(t *testing.T) sources {
	t.Helper()
	found := sources{played: map[string]bool{}, tests: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		hidden := strings.HasPrefix(name, ".") && name != ".."
		if entry.IsDir() && path != root && (name == "node_modules" || name == "testdata" || hidden) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		found.add(filepath.ToSlash(folder), f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// add adds the tests of a file, and the doors that they play.
func (s *sources) add(folder string, f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
			s.tests[folder+" "+fn.Name.Name] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 3 {
			return true
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || called.Sel.Name != "Play" {
			return true
		}
		if lit, ok := call.Args[1].(*ast.BasicLit); ok {
			door, err := strconv.Unquote(lit.Value)
			s.played[door] = err == nil
		}
		return true
	})
}

// No cell is empty: each door is played, each test of a cell exists, each cell that differs has its
// sentence in its page, and each cell that is absent has a reason.
func TestNoCellIsEmpty(t *testing.T) {
	found := read(t)
	for _, door := range contract.Doors {
		if !found.played[door.Name] {
			t.Errorf("no test plays the door %s", door.Name)
		}
	}
	names := map[string]bool{}
	for _, row := range contract.Rows() {
		if names[row.Name] {
			t.Errorf("two rows have the name %q", row.Name)
		}
		names[row.Name] = true
		if len(row.Cells) != len(contract.Doors) {
			t.Errorf("%s: %d cells", row.Name, len(row.Cells))
		}
		for i, cell := range row.Cells {
			if fault := wrong(t, found, cell); fault != "" {
				t.Errorf("%s at %s: %s", row.Name, contract.Doors[i].Name, fault)
			}
		}
	}
	t.Logf("%d behaviours at %d doors", len(names), len(contract.Doors))
}

// wrong returns what is wrong about a cell.
func wrong(t *testing.T, found sources, cell contract.Cell) string {
	t.Helper()
	switch {
	case cell.Test != "" && !found.tests[cell.Test]:
		return "there is no test " + cell.Test
	case cell.Mark == contract.MarkOK:
		return ""
	case cell.Why == "":
		return "it is " + cell.Mark + " without a reason"
	case cell.Mark == contract.MarkAbsent:
		return ""
	case cell.Page == "":
		return "it differs, and no page says so"
	}
	page, err := os.ReadFile(filepath.Join(root, cell.Page))
	if err != nil {
		return err.Error()
	}
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), cell.Why) {
		return cell.Page + " does not say: " + cell.Why
	}
	return ""
}

// The controls: an empty cell, a test that does not exist, and a sentence that no page has.
func TestNoCellIsEmptyRefuses(t *testing.T) {
	found := read(t)
	for name, cell := range map[string]contract.Cell{
		"no reason":   {Mark: contract.MarkAbsent},
		"no test":     {Mark: contract.MarkOK, Test: "server TestNothing"},
		"no page":     {Mark: contract.MarkDiffers, Why: "it differs"},
		"no sentence": {Mark: contract.MarkDiffers, Why: "purple", Page: "docs/a2a.md"},
	} {
		if wrong(t, found, cell) == "" {
			t.Errorf("%s is not found", name)
		}
	}
	if !found.played["Go"] || found.played["window"] {
		t.Errorf("the doors that are played are %v", found.played)
	}
}
