package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// checkToolPages requires that the description of each tool is a page of prose in the folder of its
// package: x.md for a tool that x.go makes. pages are the .md files of the folder.
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
			c.add(f.Package, "a tool is made here, and there is no %s.md in its folder: the description of a tool is prose, "+
				"and is reviewed as prose", name)
		}
	}
	for _, p := range pages {
		if p != "README.md" && !made[strings.TrimSuffix(p, ".md")] {
			source := strings.TrimSuffix(p, ".md") + ".go"
			c.list = append(c.list, p+": no tool is made in "+source+": no model reads this page")
		}
	}
	return c.list
}
