package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

const stateless = "no package has mutable state of its own; put it into a value that the program creates and passes on"

// checkState returns the variables of a package that can change while the program runs: variables
// that are assigned to after their declaration, and variables of a type made to change (sync,
// sync/atomic). Two runs in one process share only what the program passes to both.
//
// A sync.Pool is allowed, because its content cannot be observed.
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
					return nil // a variable of another package, which is checked there
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
			c.add(e.Pos(), "the package's variable %s is changed here: %s", v.Name(), stateless)
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
					c.add(n.Pos(), "func init: no package registers itself; the wiring of a program is visible in config and cmd")
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
						c.add(name.Pos(), "the package's variable %s is a %s: %s", name.Name, t, stateless)
					}
				}
			}
		}
	}
	return c.list
}
