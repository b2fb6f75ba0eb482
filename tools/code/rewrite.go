package code

import (
	"go.starlark.net/syntax"
)

// counted rewrites a program so that every operation that can allocate much calls one of our
// functions, which counts first. The functions have names that no program can write. The
// interpreter's other operations allocate little in each step, and steps are counted.
//
//	a + b      "+"(a, b)            x.name(…)   "()"(x, "name", …)
//	a += b     a = "+="(a, b)       x.name      "."(x, "name")
//	a[i] += b  "[]="(a, i, "+", b)  a[i]        "[]"(a)["#"(i)]
//	f(*a)      f(*"*args"(a))          a[i:j]      "[:]"("[]"(a)[i:j])
//	-a         "-a"(a)              {k: v}      "{}"({"#"(k): v})
//
// Each function begins with a check of its call depth. A for statement iterates over the result of
// "for", by which text can be iterated as well.
func counted(f *syntax.File) { each(f.Stmts, stmt) }

func hidden(name string, at syntax.Node, args ...syntax.Expr) *syntax.CallExpr {
	start, end := at.Span()
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: start, Name: name}, Lparen: start, Args: args, Rparen: end}
}

func literal(s string, at syntax.Node) *syntax.Literal {
	start, _ := at.Span()
	return &syntax.Literal{Token: syntax.STRING, TokenPos: start, Raw: `""`, Value: s}
}

func stmt(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return assign(s)

	case *syntax.DefStmt:
		params(s.Params)
		each(s.Body, stmt)
		enter := &syntax.ExprStmt{X: hidden("def", s.Name)}
		s.Body = append([]syntax.Stmt{enter}, s.Body...)

	case *syntax.ExprStmt:
		s.X = expr(s.X)
	case *syntax.ForStmt:
		s.Vars = target(s.Vars)
		s.X = hidden("for", s.X, expr(s.X))
		each(s.Body, stmt)

	case *syntax.WhileStmt:
		s.Cond = expr(s.Cond)
		each(s.Body, stmt)
	case *syntax.IfStmt:
		s.Cond = expr(s.Cond)
		each(s.True, stmt)
		each(s.False, stmt)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = expr(s.Result)
		}
	}
	return s
}

// assign expands a op= b, because the interpreter's own operation allocates without being counted.
func assign(s *syntax.AssignStmt) syntax.Stmt {
	rhs := expr(s.RHS)
	if s.Op == syntax.EQ {
		s.LHS = target(s.LHS)
		s.RHS = rhs
		return s
	}
	op := s.Op - syntax.PLUS_EQ + syntax.PLUS
	lhs := s.LHS
	for p, ok := lhs.(*syntax.ParenExpr); ok; p, ok = lhs.(*syntax.ParenExpr) {
		lhs = p.X
	}
	switch l := lhs.(type) {
	case *syntax.Ident:
		again := &syntax.Ident{NamePos: l.NamePos, Name: l.Name}
		return &syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: l, RHS: hidden(op.String()+"=", s, again, rhs)}
	case *syntax.IndexExpr:
		return &syntax.ExprStmt{X: hidden("[]=", s, expr(l.X), key(l.Y), literal(op.String(), s), rhs)}
	}
	s.LHS, s.RHS = target(s.LHS), rhs // the target is not assignable
	return s
}

// target rewrites the target of an assignment.
func target(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.IndexExpr:
		e.X, e.Y = expr(e.X), key(e.Y)
	case *syntax.DotExpr:
		e.X = expr(e.X)
	case *syntax.ParenExpr:
		e.X = target(e.X)
	case *syntax.TupleExpr:
		each(e.List, target)
	case *syntax.ListExpr:
		each(e.List, target)
	}
	return e
}

// each replaces each element of list by what rewrite returns for it.
func each[T any](list []T, rewrite func(T) T) {
	for i, e := range list {
		list[i] = rewrite(e)
	}
}

func params(list []syntax.Expr) {
	for _, p := range list {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			b.Y = expr(b.Y) // the default value
		}
	}
}

// key rewrites an index, or a key of a dict, which is hashed completely.
func key(e syntax.Expr) syntax.Expr {
	if l, ok := e.(*syntax.Literal); ok {
		return l
	}
	return hidden("#", e, expr(e))
}

func expr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		return operation(e)
	case *syntax.UnaryExpr:
		return unary(e)
	case *syntax.CallExpr:
		return call(e)
	case *syntax.DotExpr:
		return at(hidden(".", e, expr(e.X), literal(e.Name.Name, e)), e.NamePos)
	case *syntax.IndexExpr:
		e.X = hidden("[]", e.X, expr(e.X))
		e.Y = key(e.Y)
	case *syntax.SliceExpr:
		e.X = hidden("[]", e.X, expr(e.X))
		for _, part := range []*syntax.Expr{&e.Lo, &e.Hi, &e.Step} {
			if *part != nil {
				*part = expr(*part)
			}
		}
		return hidden("[:]", e, e)

	case *syntax.DictExpr:
		for _, d := range e.List {
			dictEntry(d.(*syntax.DictEntry))
		}
		return hidden("{}", e, e)
	case *syntax.Comprehension:
		return comprehension(e)
	case *syntax.LambdaExpr:
		lambda(e)
	case *syntax.CondExpr:
		e.Cond = expr(e.Cond)
		e.True = expr(e.True)
		e.False = expr(e.False)

	case *syntax.ListExpr:
		each(e.List, expr)
	case *syntax.TupleExpr:
		each(e.List, expr)
	case *syntax.ParenExpr:
		e.X = expr(e.X)
	}
	return e
}

// operation rewrites an operator with two operands. "and" and "or" stay, because they do not
// evaluate both operands.
func operation(e *syntax.BinaryExpr) syntax.Expr {
	x := expr(e.X)
	y := expr(e.Y)
	if e.Op == syntax.AND || e.Op == syntax.OR {
		e.X = x
		e.Y = y
		return e
	}
	return at(hidden(e.Op.String(), e, x, y), e.OpPos)
}

func unary(e *syntax.UnaryExpr) syntax.Expr {
	if e.X == nil {
		return e
	}
	e.X = expr(e.X)
	switch e.Op {
	case syntax.MINUS, syntax.PLUS, syntax.TILDE:
		if _, ok := e.X.(*syntax.Literal); !ok {
			return hidden("-a", e, e)
		}
	}
	return e
}

func dictEntry(d *syntax.DictEntry) {
	d.Key = key(d.Key)
	d.Value = expr(d.Value)
}

// lambda rewrites the body of a lambda to (enter, body)[1], because a lambda has no statements.
func lambda(e *syntax.LambdaExpr) {
	params(e.Params)
	enter := hidden("def", e)
	both := &syntax.TupleExpr{List: []syntax.Expr{enter, expr(e.Body)}}
	one := &syntax.Literal{Token: syntax.INT, TokenPos: enter.Lparen, Raw: "1", Value: int64(1)}
	e.Body = &syntax.IndexExpr{
		X:      &syntax.ParenExpr{Lparen: enter.Lparen, X: both, Rparen: enter.Rparen},
		Lbrack: enter.Lparen,
		Y:      one,
		Rbrack: enter.Rparen,
	}
}

// at sets the position at which an error in the call is reported.
func at(c *syntax.CallExpr, pos syntax.Position) *syntax.CallExpr {
	c.Lparen = pos
	return c
}

// call rewrites the arguments, and a method call.
func call(e *syntax.CallExpr) syntax.Expr {
	for i, a := range e.Args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ { // name=value
				a.Y = expr(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR {
				a.X = hidden("*args", a, expr(a.X))
				continue
			}
			if a.Op == syntax.STARSTAR {
				a.X = expr(a.X)
				continue
			}
		}
		e.Args[i] = expr(a)
	}

	d, ok := e.Fn.(*syntax.DotExpr)
	if !ok {
		e.Fn = expr(e.Fn)
		return e
	}
	args := append([]syntax.Expr{expr(d.X), literal(d.Name.Name, d)}, e.Args...)
	return at(hidden("()", e, args...), e.Lparen)
}

func comprehension(e *syntax.Comprehension) syntax.Expr {
	if d, ok := e.Body.(*syntax.DictEntry); ok {
		dictEntry(d)
	} else {
		e.Body = expr(e.Body)
	}
	for _, c := range e.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			c.Vars = target(c.Vars)
			c.X = hidden("for", c.X, expr(c.X))
		case *syntax.IfClause:
			c.Cond = expr(c.Cond)
		}
	}
	return e
}
