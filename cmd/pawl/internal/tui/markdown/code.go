package markdown

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// openCode starts a block of code.
func (s *state) openCode(fence, lang string, indent, width int) {
	s.block, s.fence, s.lang, s.shift = code, fence, lang, indent
	if lang != "" {
		s.show(term.Text(term.Dim, "  "+lang))
	}
}

// code handles a line in a fenced block.
func (s *state) code(l string, width int) {
	for n := 0; n < s.shift && strings.HasPrefix(l, " "); n++ {
		l = l[1:]
	}
	s.codeLine(l, width)
}

// codeLine emits a line of code. A line that is too long is broken and not cut.
func (s *state) codeLine(l string, width int) {
	l = strings.ReplaceAll(l, "\t", "    ")
	for _, part := range hardWrap(Highlight(l, s.lang), s.room(width)-2) {
		s.show(term.Text(0, "  ").With(part...))
	}
}

// hardWrap breaks a line into lines of width columns, within words if necessary.
func hardWrap(l term.Line, width int) []term.Line {
	if l.Width() <= width {
		return []term.Line{l}
	}
	var out []term.Line
	for l.Width() > 0 {
		head, rest := l.Split(max(width, 2))
		out, l = append(out, head), rest
	}
	return out
}

// language holds what Highlight recognizes in a line of code.
type language struct {
	comment  string // the start of a comment; "" means none
	keywords map[string]bool
	folded   bool // keywords may have capital letters
}

//go:embed languages.txt
var languageList string

// languages returns the languages by each of their names.
var languages = sync.OnceValue(func() map[string]*language {
	all := map[string]*language{}
	for _, part := range strings.Split(languageList, "\n\n")[1:] {
		lines := strings.Split(part, "\n")
		l := &language{keywords: map[string]bool{}, folded: lines[0] == "sql"}
		if lines[1] != "-" {
			l.comment = lines[1]
		}
		for _, word := range strings.Fields(strings.Join(lines[2:], " ")) {
			l.keywords[word] = true
		}
		for _, name := range strings.Fields(lines[0]) {
			all[name] = l
		}
	}
	return all
})

// Highlight colours the comments, strings, numbers and keywords of a line of code. Text of an
// unknown language stays plain. In a diff, added lines are green and removed lines are red.
func Highlight(l, lang string) term.Line {
	if lang == "diff" || lang == "patch" {
		switch {
		case strings.HasPrefix(l, "+"):
			return term.Text(term.Green, l)
		case strings.HasPrefix(l, "-"):
			return term.Text(term.Red, l)
		case strings.HasPrefix(l, "@@"):
			return term.Text(term.Cyan, l)
		}
		return term.Text(0, l)
	}
	known := languages()[strings.ToLower(lang)]
	if known == nil {
		return term.Text(0, l)
	}
	comment := known.comment
	var out term.Line
	plain := 0
	put := func(from, to int, style term.Style) {
		if plain < from {
			out = out.Add(0, l[plain:from])
		}
		out = out.Add(style, l[from:to])
		plain = to
	}
	for i := 0; i < len(l); {
		c := l[i]
		end := i + 1
		switch {
		case comment != "" && strings.HasPrefix(l[i:], comment) && (comment != "#" || i == 0 || l[i-1] == ' '):
			put(i, len(l), term.Dim)
			end = len(l)
		case c == '"' || c == '\'' || c == '`':
			for end < len(l) && l[end] != c {
				if l[end] == '\\' && c != '`' {
					end++
				}
				end++
			}
			if end < len(l) {
				end++
				put(i, end, term.Green)
			} else {
				end = i + 1 // an apostrophe, or a string over several lines
			}
		case isWord(rune(c)) && c < 0x80:
			for end < len(l) && l[end] < 0x80 && (isWord(rune(l[end])) || l[end] == '.' && c >= '0' && c <= '9') {
				end++
			}
			word := l[i:end]
			if known.folded {
				word = strings.ToLower(word)
			}
			switch {
			case c >= '0' && c <= '9':
				put(i, end, term.Magenta)
			case known.keywords[word]:
				put(i, end, term.Blue)
			}
		}
		i = end
	}
	if plain < len(l) || len(out) == 0 {
		out = out.Add(0, l[plain:])
	}
	return out
}
