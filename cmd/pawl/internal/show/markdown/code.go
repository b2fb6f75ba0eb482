package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

var diffColours = map[byte]term.Style{'+': term.Green, '-': term.Red, '@': term.Cyan}

// code returns the lines of a block of code. A line that is too long is broken and not cut. In a
// diff, added lines are green and removed lines are red; code of a known language has colours.
func code(n ast.Node, source []byte, lang string, width int) []term.Line {
	var out []term.Line
	for _, segment := range n.Lines().Sliced(0, n.Lines().Len()) {
		l := strings.ReplaceAll(strings.TrimSuffix(string(segment.Value(source)), "\n"), "\t", "    ")
		line := coloured(lang, l)
		if l != "" && (lang == "diff" || lang == "patch") {
			line = term.Text(diffColours[l[0]], l)
		}
		out = append(out, term.Indent(line.Chop(max(width-2, 2)), indented, indented)...)
	}
	return out
}

var indented = term.Text(0, "  ")
