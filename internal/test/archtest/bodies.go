package archtest

import (
	"go/ast"
	"go/token"
)

const (
	maxFunction   = 80 // the number of lines of code after which a function counts as long
	bigFunction   = 15 // the number of lines of code from which a function should have paragraphs
	maxRun        = 20 // the number of lines of code in a row that are read without a pause
	maxComplexity = 15 // the number of ways through a function
)

// bodies measures the functions of a file.
func (c *clarity) bodies(f *goFile) {
	literals := f.literalLines()
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		c.functions++
		found := finding{path: f.path, line: f.line(fn.Pos()), text: funcName(fn)}
		add := func(r rule, value, limit int) {
			if value > limit {
				found.rule = r
				found.value = value
				c.findings = append(c.findings, found)
			}
		}
		add(ruleComplexity, complexity(fn.Body), maxComplexity)
		add(ruleLong, f.codeLines(f.line(fn.Pos()), f.line(fn.End())), maxFunction)
		add(ruleRun, c.paragraphs(f, fn.Body, literals), maxRun)
	}
}

// paragraphs counts the lines of a body, and returns the number of lines of code in its longest
// run: lines without a blank line or a comment between them. The lines of composite literals do not
// count, because rows of data are read one by one.
func (c *clarity) paragraphs(f *goFile, body *ast.BlockStmt, literals map[int]bool) int {
	var (
		code, run, longest int
		blank, commented   bool
	)
	for line := f.line(body.Lbrace) + 1; line < f.line(body.Rbrace); line++ {
		c.bodyLines++
		switch {
		case f.code[line]:
			code++
			if f.commented[line] {
				run = 0
			}
			if !literals[line] {
				run++
			}
			longest = max(longest, run)
		case f.commented[line]:
			run = 0
			commented = true
			c.bodyComments++
		default:
			run = 0
			blank = true
		}
	}

	if code >= bigFunction {
		c.big++
		if blank {
			c.bigBlank++
		}
		if commented {
			c.bigCommented++
		}
	}
	return longest
}

// literalLines returns the lines of composite literals that take several lines.
func (f *goFile) literalLines() map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		first := f.line(lit.Pos())
		last := f.line(lit.End())
		for line := first; first < last && line <= last; line++ {
			lines[line] = true
		}
		return true
	})
	return lines
}

// complexity returns the cyclomatic complexity of a body: one, and one for each branch and each
// operator && and ||, function literals included.
func complexity(body *ast.BlockStmt) int {
	ways := 1
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			ways++
		case *ast.CaseClause:
			if n.List != nil {
				ways++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				ways++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				ways++
			}
		}
		return true
	})
	return ways
}
