package markdown

import (
	"strings"
)

// quoted strips the quote marks of a line and returns their number.
func quoted(l string) (depth int, rest string) {
	rest = l
	for {
		t := strings.TrimLeft(rest, " ")
		if len(rest)-len(t) > 3 || !strings.HasPrefix(t, ">") || depth == 8 {
			return depth, rest
		}
		depth++
		rest = strings.TrimPrefix(t[1:], " ")
	}
}

// indented strips the indentation of a line and returns its width in columns.
func indented(l string) (columns int, rest string) {
	for i, c := range l {
		switch c {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, l[i:]
		}
	}
	return columns, ""
}

// bullet parses the marker of a list item: "-" for any bullet, or the number with its punctuation.
// at is the column of the text of the item.
func bullet(l string) (mark, rest string, at int, ok bool) {
	n := 0
	for n < len(l) && n < 9 && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n < len(l) && (l[n] == '.' || l[n] == ')'):
		mark = l[:n+1]
		n++
	case n == 0 && l != "" && strings.IndexByte("-*+", l[0]) >= 0:
		mark, n = "-", 1
	default:
		return "", "", 0, false
	}
	if n == len(l) {
		return mark, "", n + 1, true
	}
	spaces, rest := indented(l[n:])
	if spaces == 0 {
		return "", "", 0, false
	}
	if spaces > 4 {
		spaces = 1
	}
	return mark, rest, n + spaces, true
}

// heading returns the level of a heading, or 0 if the line is none.
func heading(l string) int {
	n := len(l) - len(strings.TrimLeft(l, "#"))
	if n == 0 || n > 6 || n < len(l) && l[n] != ' ' && l[n] != '\t' {
		return 0
	}
	return n
}

// isRule reports whether a line is a horizontal rule.
func isRule(l string) bool {
	l = strings.ReplaceAll(strings.TrimSpace(l), " ", "")
	return len(l) >= 3 && strings.IndexByte("-*_", l[0]) >= 0 && strings.Trim(l, l[:1]) == ""
}

// fenced parses the line that opens a block of code.
func fenced(l string) (fence, lang string, ok bool) {
	if len(l) < 3 || l[0] != '`' && l[0] != '~' {
		return "", "", false
	}
	n := len(l) - len(strings.TrimLeft(l, l[:1]))
	info := strings.TrimSpace(l[n:])
	if n < 3 || l[0] == '`' && strings.Contains(info, "`") {
		return "", "", false
	}
	lang, _, _ = strings.Cut(info, " ")
	return l[:n], strings.Trim(lang, "{}."), true
}

// closes reports whether a line ends the block of code that fence opened.
func closes(l, fence string) bool {
	_, t := indented(l)
	t = strings.TrimRight(t, " \t")
	return len(t) >= len(fence) && strings.Trim(t, fence[:1]) == ""
}

// isText reports whether a line starts no block of its own, so that it may continue a quoted
// paragraph.
func isText(l string) bool {
	_, t := indented(l)
	if _, _, _, ok := bullet(t); ok {
		return false
	}
	_, _, fence := fenced(t)
	return t != "" && heading(t) == 0 && !fence && !isRule(t)
}
