package tui

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/pawl-go/pawl"
)

// Each outcome of package pawl has a mark.
func TestOutcomeMarks(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../../../result.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == 1 {
			if typ, ok := s.Type.(*ast.Ident); ok && typ.Name == "Outcome" {
				found++
				value := s.Values[0].(*ast.BasicLit).Value
				if _, ok := outcomeMarks[pawl.Outcome(value[1:len(value)-1])]; !ok {
					t.Errorf("%s has no mark", s.Names[0].Name)
				}
			}
		}
		return true
	})
	if found != len(outcomeMarks) {
		t.Errorf("result.go has %d outcomes, the table %d", found, len(outcomeMarks))
	}
}
