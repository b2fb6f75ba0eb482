package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// checkToolPages requires that the description of each tool is a page of prose in the folder of its
// package: x.md for the name "x" that toolrun.Define gets, or for a tool that x.go makes without
// Define. pages are the .md files of the folder.
func checkToolPages(fset *token.FileSet, files []*ast.File, pages []string) []string {
	c := &complaints{fset: fset}
	made := map[string]bool{}
	need := func(at token.Pos, name string) {
		if made[name] = true; !slices.Contains(pages, name+".md") {
			c.add(at, "a tool is made here, and there is no %s.md in its folder: the description of a tool is prose, "+
				"and is reviewed as prose", name)
		}
	}
	for _, f := range files {
		file := strings.TrimSuffix(path.Base(fset.Position(f.Package).Filename), ".go")
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
				if names(maker, "toolrun", "Define") && len(n.Args) > 1 {
					name, ok := n.Args[1].(*ast.BasicLit)
					if !ok {
						c.add(n.Pos(), "the name of a page is a literal, so that this rule can read it")
						return false
					}
					need(n.Pos(), strings.Trim(name.Value, `"`))
					return false
				}
			}
			if (names(maker, "pawl", "Tool") || names(maker, "pawl", "Func")) && !made[file] {
				need(f.Package, file)
			}
			return true
		})
	}
	for _, p := range pages {
		if p != "README.md" && !made[strings.TrimSuffix(p, ".md")] {
			source := strings.TrimSuffix(p, ".md") + ".go"
			c.list = append(c.list, p+": no tool is made in "+source+" or defined by this name: no model reads this page")
		}
	}
	return c.list
}

// names reports whether e is the name of the package and a name of it.
func names(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == pkg
}
