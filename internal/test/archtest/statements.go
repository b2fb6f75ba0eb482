package archtest

import (
	"go/ast"
	"go/token"
)

// longCondition is the number of operators && and || from which a boolean expression is long.
const longCondition = 3

// statements finds effects in headers, packed assignments and long conditions.
func (c *clarity) statements(f *goFile) {
	predicates := map[ast.Node]bool{}
	for _, d := range f.ast.Decls {
		if ret := predicate(d); ret != nil {
			predicates[ret] = true
		}
	}

	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if n.Init != nil && effect(n.Init, n.Cond) {
				c.find(f, ruleHeader, n.Pos(), 0)
			}
		case *ast.SwitchStmt:
			if n.Init != nil && (n.Tag == nil || effect(n.Init, n.Tag)) {
				c.find(f, ruleHeader, n.Pos(), 0)
			}
		case *ast.TypeSwitchStmt:
			if n.Init != nil && effect(n.Init, n.Assign) {
				c.find(f, ruleHeader, n.Pos(), 0)
			}
		case *ast.AssignStmt:
			c.assignment(f, n)
		}

		for _, e := range conditions(n) {
			ops := operators(e)
			switch {
			case ops < longCondition:
			case predicates[n]:
				c.predicates = append(c.predicates, f.finding(ruleCondition, n.Pos(), ops))
			default:
				c.find(f, ruleCondition, n.Pos(), ops)
			}
		}
		return true
	})
}

// effect reports whether the first statement of a header does more than set what the condition
// reads. The idioms `err := f(); err != nil` and `v, ok := m[k]; ok` do no more.
func effect(init ast.Stmt, condition ast.Node) bool {
	a, ok := init.(*ast.AssignStmt)
	switch {
	case !ok: // a call, a send, n++
		return true
	case a.Tok != token.ASSIGN && a.Tok != token.DEFINE: // n += x
		return true
	case a.Tok == token.ASSIGN && len(a.Lhs) > 1 && len(a.Rhs) > 1:
		return true
	}

	set := map[string]bool{}
	for _, e := range a.Lhs {
		if name := assigned(e); name != "" {
			set[name] = true
		}
	}
	return !mentions(condition, set)
}

// assigned returns the last name of an assignment's left side: a variable or a field.
func assigned(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// mentions reports whether one of names occurs in n.
func mentions(n ast.Node, names map[string]bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && names[id.Name]
		return !found
	})
	return found
}

// assignment finds an assignment of several values to as many places. A swap or a rotation, whose
// right side reads what the left side sets, cannot be written in lines.
func (c *clarity) assignment(f *goFile, a *ast.AssignStmt) {
	if len(a.Lhs) != len(a.Rhs) || len(a.Lhs) < 2 {
		return
	}
	set := map[string]bool{}
	for _, e := range a.Lhs {
		if name := assigned(e); name != "" {
			set[name] = true
		}
		if x, ok := e.(*ast.IndexExpr); ok {
			ast.Inspect(x, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					set[id.Name] = true
				}
				return true
			})
		}
	}
	for _, e := range a.Rhs {
		if a.Tok == token.ASSIGN && mentions(e, set) {
			return
		}
	}

	if len(a.Lhs) == 2 {
		c.find(f, rulePair, a.Pos(), 0)
	} else {
		c.find(f, rulePacked, a.Pos(), 0)
	}
}

// conditions returns the expressions of a statement or a case in which operators are counted
// together.
func conditions(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.IfStmt:
		return []ast.Expr{n.Cond}
	case *ast.ForStmt:
		if n.Cond != nil {
			return []ast.Expr{n.Cond}
		}
	case *ast.CaseClause:
		return n.List
	case *ast.ReturnStmt:
		return n.Results
	case *ast.AssignStmt:
		return n.Rhs
	case *ast.ValueSpec:
		return n.Values
	case *ast.ExprStmt:
		return []ast.Expr{n.X}
	}
	return nil
}

// operators counts && and || in e, without the functions in it.
func operators(e ast.Expr) int {
	count := 0
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				count++
			}
		}
		return true
	})
	return count
}

// predicate returns the only statement of a function that does nothing but return one expression.
// Its name says what a long condition means.
func predicate(d ast.Decl) *ast.ReturnStmt {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Body == nil || len(fn.Body.List) != 1 {
		return nil
	}
	ret, ok := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return nil
	}
	return ret
}
