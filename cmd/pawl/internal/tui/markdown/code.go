package markdown

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// code returns the lines of a block of code. A line that is too long is broken and not cut.
func code(n ast.Node, source []byte, lang string, width int) []term.Line {
	var out []term.Line
	for _, segment := range n.Lines().Sliced(0, n.Lines().Len()) {
		l := strings.TrimSuffix(string(segment.Value(source)), "\n")
		for _, part := range Highlight(strings.ReplaceAll(l, "\t", "    "), lang).Chop(max(width-2, 2)) {
			out = append(out, term.Text(0, "  ").With(part...))
		}
	}
	return out
}

// language holds what Highlight recognizes in a line of code.
type language struct {
	tokens   *regexp.Regexp
	keywords map[string]bool
	folded   bool // keywords may have capital letters
}

// parts are the groups of tokens: a string, a character before "#" that makes it no comment, a
// comment, a number, and a word. "%s" stands for the start of a comment.
const parts = `("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)|([^ #]#)|(%s.*)|([0-9][0-9A-Za-z_.]*)|([A-Za-z_][0-9A-Za-z_]*)`

//go:embed languages.txt
var languageList string

// languages returns the languages by each of their names.
var languages = sync.OnceValue(func() map[string]*language {
	all := map[string]*language{}
	for _, part := range strings.Split(languageList, "\n\n")[1:] {
		lines := strings.Split(part, "\n")
		comment := regexp.QuoteMeta(lines[1])
		if comment == "-" {
			comment = "$." // matches nothing
		}
		l := &language{regexp.MustCompile(fmt.Sprintf(parts, comment)), map[string]bool{}, lines[0] == "sql"}
		for _, word := range strings.Fields(strings.Join(lines[2:], " ")) {
			l.keywords[word] = true
		}
		for _, name := range strings.Fields(lines[0]) {
			all[name] = l
		}
	}
	return all
})

var diffColours = map[byte]term.Style{'+': term.Green, '-': term.Red, '@': term.Cyan}

// Highlight colours the comments, strings, numbers and keywords of a line of code. Text of an
// unknown language stays plain. In a diff, added lines are green and removed lines are red.
func Highlight(l, lang string) term.Line {
	known := languages()[strings.ToLower(lang)]
	switch {
	case l != "" && (lang == "diff" || lang == "patch"):
		return term.Text(diffColours[l[0]], l)
	case known == nil || l == "":
		return term.Text(0, l)
	}
	var out term.Line
	at := 0
	for _, m := range known.tokens.FindAllStringSubmatchIndex(l, -1) {
		word := l[m[0]:m[1]]
		if known.folded {
			word = strings.ToLower(word)
		}
		style := term.Style(0)
		switch {
		case m[2] >= 0:
			style = term.Green
		case m[6] >= 0:
			style = term.Dim
		case m[8] >= 0:
			style = term.Magenta
		case known.keywords[word]:
			style = term.Blue
		}
		out = out.Add(0, l[at:m[0]]).Add(style, l[m[0]:m[1]])
		at = m[1]
	}
	return out.Add(0, l[at:])
}
