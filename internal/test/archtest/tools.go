package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// checkToolPages wants what a model is told of a tool to stand in a page of prose beside the tool: x.md beside x.go, where x.go makes
// the tool. pages are the .md files of the package's folder.
func checkToolPages(fset *token.FileSet, files []*ast.File, pages []string) []string {
	c := &complaints{fset: fset}
	made := map[string]bool{}
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(fset.Position(f.Package).Filename), ".go")
		ast.Inspect(f, func(n ast.Node) bool {
			var maker ast.Expr
			switch n := n.(type) {
			case *ast.CompositeLit:
				maker = n.Type
			case *ast.CallExpr:
				maker = n.Fun
				if i, ok := maker.(*ast.IndexListExpr); ok {
					maker = i.X
				}
			}
			s, ok := maker.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := s.X.(*ast.Ident); ok && id.Name == "pawl" && (s.Sel.Name == "Tool" || s.Sel.Name == "Func") {
				made[name] = true
			}
			return true
		})
		if made[name] && !slices.Contains(pages, name+".md") {
			c.add(f.Package, "a tool is made here, and there is no %s.md beside it: what a model is told is prose, and is reviewed as prose", name)
		}
	}
	for _, p := range pages {
		if p != "README.md" && !made[strings.TrimSuffix(p, ".md")] {
			c.list = append(c.list, p+": no tool is made in "+strings.TrimSuffix(p, ".md")+".go: a page that describes no tool is read by no model")
		}
	}
	return c.list
}
