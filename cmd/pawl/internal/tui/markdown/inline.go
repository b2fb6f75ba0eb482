package markdown

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// inline formats the emphasis, code and links in the text of a block. live says that the end of the
// text is still to come: an emphasis or a code span that is still open then ends with the text.
func inline(text string, style term.Style, live bool) term.Line {
	p := inliner{live: live}
	p.text(text, style, 0)
	p.plain(style)
	return p.out
}

type inliner struct {
	live bool
	out  term.Line
	buf  strings.Builder
}

// plain emits the buffered text.
func (p *inliner) plain(style term.Style) {
	if p.buf.Len() > 0 {
		p.out = append(p.out, term.Span{Text: html.UnescapeString(p.buf.String()), Style: style})
		p.buf.Reset()
	}
}

func (p *inliner) span(text string, style term.Style) {
	p.out = append(p.out, term.Span{Text: text, Style: style})
}

const deepest = 6

// marks are the marks of emphasis. A mark stands before its own prefixes.
var marks = []struct {
	mark  string
	style term.Style
}{
	{"***", term.Bold | term.Italic}, {"**", term.Bold}, {"__", term.Bold}, {"~~", term.Strike}, {"*",
		term.Italic}, {"_", term.Italic},
}

func (p *inliner) text(s string, style term.Style, depth int) {
	whole := s
	for s != "" {
		i := strings.IndexAny(s, "\\`*_~[!<h")
		if i < 0 {
			p.buf.WriteString(s)
			return
		}
		p.buf.WriteString(s[:i])
		s = s[i:]
		before := whole[:len(whole)-len(s)]
		n := 0
		switch {
		case s[0] == '\\' && len(s) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!|<>~", s[1]) >= 0:
			p.plain(style)
			p.span(s[1:2], style)
			n = 2
		case s[0] == '`':
			n = p.code(s, style)
		case s[0] == '[' || strings.HasPrefix(s, "!["):
			n = p.link(s, style, depth)
		case s[0] == '<':
			n = p.address(s, style)
		case s[0] == 'h' && (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")) &&
			!endsInWord(before):
			n = strings.IndexAny(s+" ", " <>\"`")
			for n > 0 && strings.IndexByte(".,;:!?)'*_~", s[n-1]) >= 0 &&
				!(s[n-1] == ')' && strings.Contains(s[:n], "(")) {
				n--
			}
			p.plain(style)
			p.span(s[:n], style|term.Underline)
		case depth < deepest:
			n = p.emphasis(s, before, style, depth)
		}
		if n == 0 {
			p.buf.WriteByte(s[0])
			n = 1
		}
		s = s[n:]
	}
}

// code handles a code span and returns its length, or 0 if there is none.
func (p *inliner) code(s string, style term.Style) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	end := strings.Index(s[n:], s[:n])
	text, size := "", 0
	switch {
	case end >= 0:
		text, size = s[n:n+end], n+end+n
	case p.live:
		text, size = s[n:], len(s)
	default:
		return 0
	}
	if len(text) > 2 && text[0] == ' ' && text[len(text)-1] == ' ' {
		text = text[1 : len(text)-1]
	}
	p.plain(style)
	p.span(text, style&^0xff00|term.Yellow)
	return size
}

// emphasis handles an emphasis with its content and returns its length, or 0 if there is none.
func (p *inliner) emphasis(s, before string, style term.Style, depth int) int {
	for _, m := range marks {
		inner, ok := strings.CutPrefix(s, m.mark)
		if !ok {
			continue
		}
		if inner == "" {
			if p.live && !strings.HasSuffix(before, " ") || p.live && len(m.mark) > 1 {
				return len(s) // an incomplete mark
			}
			return 0
		}
		if r, _ := utf8.DecodeRuneInString(inner); unicode.IsSpace(r) || m.mark[0] == '_' && endsInWord(before) ||
			m.mark != "***" && strings.HasPrefix(inner, m.mark[:1]) {
			continue
		}
		end := closing(inner, m.mark)
		size := end + 2*len(m.mark)
		if end < 0 {
			if !p.live {
				continue
			}
			end, size = len(inner), len(s)
			for end > 0 && inner[end-1] == m.mark[0] {
				end-- // an incomplete closing mark
			}
		}
		p.plain(style)
		p.text(inner[:end], style|m.style, depth+1)
		p.plain(style | m.style)
		return size
	}
	return 0
}

// closing returns the offset of the mark that ends an emphasis, or -1.
func closing(s, mark string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], mark)
		if i < 0 {
			return -1
		}
		i += from
		next := s[i+len(mark):]
		r, _ := utf8.DecodeLastRuneInString(s[:i])
		n, _ := utf8.DecodeRuneInString(next)
		switch {
		case i > 0 && s[i-1] == '\\', i == 0 || unicode.IsSpace(r), mark[0] == '_' && isWord(n):
			from = i + 1
		// a longer mark, which belongs to a nested emphasis
		case len(mark) == 1 && n == rune(mark[0]):
			from = i + 1
			for from < len(s) && s[from] == mark[0] {
				from++
			}
		// the last two characters of a mark of three
		case len(mark) == 2 && strings.HasPrefix(next, mark[:1]):
			return i + 1
		default:
			return i
		}
		if from >= len(s) {
			return -1
		}
	}
}

// link handles [text](address) and ![text](address), and returns the length, or 0 if there is none.
func (p *inliner) link(s string, style term.Style, depth int) int {
	image := s[0] == '!'
	open := btoi(image)
	if open >= len(s) || s[open] != '[' {
		return 0
	}
	level, end := 0, -1
	for i := open; i < len(s) && i < 1000 && end < 0; i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			level++
		case ']':
			if level--; level == 0 {
				end = i
			}
		}
	}
	if end < 0 || !strings.HasPrefix(s[end+1:], "(") || depth >= deepest {
		return 0
	}
	close := strings.IndexByte(s[end:], ')')
	if close < 0 {
		return 0
	}
	text, address := s[open+1:end], strings.TrimSpace(s[end+2:end+close])
	address, _, _ = strings.Cut(address, " ") // titles are not shown
	address = strings.Trim(address, "<>")
	p.plain(style)
	if image {
		p.span("🖼 ", style)
	}
	p.text(text, style|term.Underline|term.Blue, depth+1)
	p.plain(style | term.Underline | term.Blue)
	if address != "" && address != text && "mailto:"+text != address {
		p.span(" ("+address+")", style&^0xff00|term.Dim)
	}
	return end + close + 1
}

// address handles <https://…> and <br>, and returns the length, or 0 if there is none.
func (p *inliner) address(s string, style term.Style) int {
	end := strings.IndexAny(s, "> ")
	if end < 0 || s[end] != '>' || !strings.Contains(s[:end], "://") && !strings.Contains(s[:end], "@") {
		if lower := strings.ToLower(s); strings.HasPrefix(lower, "<br>") || strings.HasPrefix(lower, "<br/>") {
			p.buf.WriteByte(' ')
			return strings.IndexByte(s, '>') + 1
		}
		return 0
	}
	p.plain(style)
	p.span(s[1:end], style|term.Underline)
	return end + 1
}

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && isWord(r)
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
