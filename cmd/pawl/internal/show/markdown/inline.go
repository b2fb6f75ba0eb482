package markdown

import (
	"bufio"
	"bytes"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	render "github.com/yuin/goldmark/renderer/html"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// inline returns the text of a block in lines of at most width columns. It returns at least one.
func inline(n ast.Node, source []byte, style term.Style, width int) []term.Line {
	p := inliner{source: source, lines: []term.Line{nil}}
	p.children(n, style)
	var out []term.Line
	for _, l := range p.lines {
		out = append(out, l.Wrap(width)...)
	}
	return out
}

type inliner struct {
	source []byte
	lines  []term.Line
}

func (p *inliner) put(style term.Style, text string) {
	last := len(p.lines) - 1
	p.lines[last] = p.lines[last].Add(style, text)
}

func (p *inliner) children(n ast.Node, style term.Style) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		p.node(c, style)
	}
}

// colours are the bits of a style that hold its colour.
const colours = 0xff00

// node adds a part of a text and what is in it.
func (p *inliner) node(n ast.Node, style term.Style) {
	switch n := n.(type) {
	case *ast.Text:
		p.put(style, plain(n.Value(p.source)))
		if n.HardLineBreak() {
			p.lines = append(p.lines, nil)
		} else if n.SoftLineBreak() {
			p.put(style, " ")
		}

	// Escapes and references mean nothing within code.
	case *ast.CodeSpan:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				p.put(style&^colours|term.Yellow, string(t.Value(p.source)))
			}
		}

	case *ast.Emphasis:
		p.children(n, style|[]term.Style{term.Italic, term.Bold}[n.Level-1])
	case *east.Strikethrough:
		p.children(n, style|term.Strike)
	case *ast.Link:
		p.link(n, n.Destination, style)
	case *ast.Image:
		p.put(style, "🖼 ")
		p.link(n, n.Destination, style)
	case *ast.AutoLink:
		p.put(style|term.Underline, string(n.Label(p.source)))

	// A terminal has no HTML: tags are shown, except the line break that models write in cells.
	case *ast.RawHTML:
		raw := string(n.Segments.Value(p.source))
		if strings.HasPrefix(strings.ToLower(raw), "<br") {
			raw = " "
		}
		p.put(style, raw)
	case *east.TaskCheckBox:
		p.put(style, map[bool]string{false: "☐ ", true: "☑ "}[n.IsChecked])
	}
}

// link shows a link or an image: its text, and its address if that differs.
func (p *inliner) link(n ast.Node, address []byte, style term.Style) {
	var text strings.Builder
	inner := inliner{source: p.source, lines: []term.Line{nil}}
	inner.children(n, style|term.Underline|term.Blue)
	for _, l := range inner.lines {
		for _, s := range l {
			p.put(s.Style, s.Text)
			text.WriteString(s.Text)
		}
	}
	if to := string(address); to != "" && to != text.String() && to != "mailto:"+text.String() {
		p.put(style&^colours|term.Dim, " ("+to+")")
	}
}

// plain resolves the escapes and the character references of a text.
func plain(text []byte) string {
	if !bytes.ContainsAny(text, "\\&") {
		return string(text)
	}
	var b strings.Builder
	w := bufio.NewWriter(&b)
	render.DefaultWriter.Write(w, text)
	_ = w.Flush()
	return html.UnescapeString(b.String())
}

// closed ends the emphasis and the code span that are open at the end of a text, without the mark
// that is incomplete there.
func closed(text string) string {
	text = strings.TrimRight(text, " \n\\*_~`")
	var open []string
	for i := 0; i < len(text); {
		c := text[i]
		run := text[i:]
		run = run[:len(run)-len(strings.TrimLeft(run, string(rune(c))))]
		end := i + max(len(run), 1) // a byte within a character is no run of itself
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])

		switch {
		case c == '\\':
			end = i + 2
		case c == '`': // nothing within code is a mark
			size := strings.Index(text[end:], run)
			if size < 0 {
				text += run
				i = len(text)
			}
			end += size + len(run)
		case !strings.ContainsRune("*_~", rune(c)) || len(run) > 3:
		case endsEmphasis(open, run, before):
			open = open[:len(open)-1]
		case beginsEmphasis(c, before, after):
			open = append(open, run)
		}
		i = max(i, end)
	}

	for _, mark := range slices.Backward(open) {
		text += mark
	}
	return text
}

// endsEmphasis reports whether a run of marks ends the innermost emphasis that is open.
func endsEmphasis(open []string, run string, before rune) bool {
	if len(open) == 0 || unicode.IsSpace(before) {
		return false
	}
	innermost := open[len(open)-1]
	return innermost[0] == run[0] && len(run) >= len(innermost)
}

// beginsEmphasis reports whether marks c begin an emphasis between two characters. An underscore
// inside a word does not.
func beginsEmphasis(c byte, before, after rune) bool {
	if unicode.IsSpace(after) {
		return false
	}
	return c != '_' || !isWord(before)
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
