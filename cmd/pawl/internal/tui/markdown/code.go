package markdown

import (
	"strings"

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

// words are the keywords of the languages. Similar languages share an entry.
var words = map[string]string{
	"go":     " break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false ",
	"python": " and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False ",
	"js":     " async await break case catch class const continue default delete do else export extends finally for from function if import in instanceof interface let new null of return switch this throw true false try type typeof undefined var void while yield ",
	"c":      " auto bool break case catch char class const continue default delete do double else enum extern false final float fn for if impl implements import int interface let long match mut namespace new null nullptr override package private protected pub public return self short static struct super switch this throw throws trait true try typedef union unsafe unsigned use using var virtual void while ",
	"sh":     " case do done elif else esac export fi for function if in local return then until while set cd echo ",
	"sql":    " select from where and or not null insert into values update set delete create table index primary key join left right inner outer on group by order limit having as distinct union all case when then else end with ",
	"json":   " true false null ",
}

// family returns the key of a language in words, and the start of its comments.
func family(lang string) (words, comment string) {
	switch strings.ToLower(lang) {
	case "go", "golang":
		return "go", "//"
	case "py", "python", "python3", "starlark":
		return "python", "#"
	case "js", "javascript", "ts", "typescript", "jsx", "tsx":
		return "js", "//"
	case "c", "cpp", "c++", "h", "java", "kotlin", "rust", "rs", "cs", "csharp", "swift", "scala", "php":
		return "c", "//"
	case "sh", "bash", "shell", "zsh", "console", "make", "makefile", "dockerfile":
		return "sh", "#"
	case "yaml", "yml", "toml", "ini":
		return "json", "#"
	case "sql":
		return "sql", "--"
	case "json", "jsonl":
		return "json", ""
	}
	return "", ""
}

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
	name, comment := family(lang)
	if name == "" {
		return term.Text(0, l)
	}
	keep := words[name]
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
			if name == "sql" {
				word = strings.ToLower(word)
			}
			switch {
			case c >= '0' && c <= '9':
				put(i, end, term.Magenta)
			case strings.Contains(keep, " "+word+" "):
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
