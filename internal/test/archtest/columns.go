package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// The last column of a line. A tab counts as 4 columns.
const (
	commentColumns = 100 // a comment or a struct tag
	codeColumns    = 120 // any other line, not counting its string literals
)

// checkColumns returns the lines of a file that are too wide. Generated files, directives and
// comments of a single long word, such as a link, may be wider.
func checkColumns(f *goFile) []string {
	if ast.IsGenerated(f.ast) {
		return nil
	}
	limits := map[int]string{} // the lines with a limit of commentColumns, and the reason
	for _, c := range f.comments() {
		if !c.directive() && strings.Contains(c.text(), " ") {
			limits[c.line] = "comment"
		}
	}
	literals := map[int]int{} // the width of the string literals, by line
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				limits[f.line(n.Tag.Pos())] = "struct tag"
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				for i, text := range strings.Split(n.Value, "\n") {
					literals[f.line(n.Pos())+i] += width(text)
				}
			}
		}
		return true
	})
	var bad []string
	for i, text := range f.lines {
		line, columns := i+1, width(text)
		if kind := limits[line]; kind != "" && columns > commentColumns {
			bad = append(bad, fmt.Sprintf("%s:%d: a %s ends at column %d: wrap it at %d, so that it is read without scrolling",
				f.path, line, kind, columns, commentColumns))
		} else if f.code[line] && columns-literals[line] > codeColumns {
			bad = append(bad, fmt.Sprintf("%s:%d: the line has %d columns, %d without its string literals: break it at %d",
				f.path, line, columns, columns-literals[line], codeColumns))
		}
	}
	return bad
}

// commentLine is one line of a comment.
type commentLine struct {
	line int
	raw  string // with its slashes
}

// comments returns the lines of all comments of the file.
func (f *goFile) comments() []commentLine {
	var all []commentLine
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			for i, raw := range strings.Split(c.Text, "\n") {
				all = append(all, commentLine{f.line(c.Pos()) + i, raw})
			}
		}
	}
	return all
}

// text returns the line without its slashes and surrounding space.
func (c commentLine) text() string { return strings.TrimSpace(strings.TrimPrefix(c.raw, "//")) }

// directive reports whether the line is an instruction to a tool, as //go:embed is.
func (c commentLine) directive() bool {
	after, ok := strings.CutPrefix(c.raw, "//")
	return ok && after != "" && after[0] != ' ' && after[0] != '\t' && strings.Contains(after, ":")
}
