package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// checkState returns the variables of a package that can change while the program runs: those that are assigned to after their
// declaration, and those of a type made to change (sync, sync/atomic). A sync.Pool is let through: it holds nothing that anybody could
// observe. Two runs in one process share nothing but what the program gave both of them.
func checkState(fset *token.FileSet, files []*ast.File, info *types.Info) []string {
	c := &complaints{fset: fset}
	global := func(e ast.Expr) *types.Var {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				if v, ok := info.Uses[x.Sel].(*types.Var); ok && !v.IsField() {
					return nil // another package's variable: that package answers for it
				}
				e = x.X
			case *ast.Ident:
				v, ok := info.Uses[x].(*types.Var)
				if ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
					return v
				}
				return nil
			default:
				return nil
			}
		}
	}
	changed := func(e ast.Expr) {
		if v := global(e); v != nil {
			c.add(e.Pos(), "the package's variable %s is changed here: no package keeps state of its own; put it into a value that the program makes and hands on", v.Name())
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						changed(e)
					}
				}
			case *ast.IncDecStmt:
				changed(n.X)
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 {
					if b, ok := info.Uses[id].(*types.Builtin); ok && (b.Name() == "delete" || b.Name() == "clear") {
						changed(n.Args[0])
					}
				}
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					c.add(n.Pos(), "func init: nothing registers itself; what a program is made of can be seen where it is made")
				}
			}
			return true
		})
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					v, ok := info.Defs[name].(*types.Var)
					if !ok {
						continue
					}
					t := strings.TrimPrefix(v.Type().String(), "*")
					if (strings.HasPrefix(t, "sync.") || strings.HasPrefix(t, "sync/atomic.")) && t != "sync.Pool" {
						c.add(name.Pos(), "the package's variable %s is a %s: no package keeps state of its own; put it into a value that the program makes and hands on", name.Name, t)
					}
				}
			}
		}
	}
	return c.list
}
