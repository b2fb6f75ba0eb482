package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with everything a terminal might obey written out: control characters other than newline and tab, marks
// that turn the direction of text, and bytes that are no UTF-8. What a model or a tool says is shown, never carried out.
func visible(s string) string {
	clean := true
	for i, r := range s {
		if r == utf8.RuneError || hidden(r) {
			clean = clean && r == utf8.RuneError && strings.HasPrefix(s[i:], "\uFFFD")
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\r' && strings.HasPrefix(s[n:], "\n"): // the line end of other systems
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// hidden reports whether a terminal would not simply show r.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0x061C || r == 0x200E || r == 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
		return true // direction
	case r == 0x2028 || r == 0x2029 || r == 0xFEFF || r >= 0xE0000 && r <= 0xE007F:
		return true // other line ends, and letters nobody sees
	}
	return false
}

// line returns s as one line of at most width runes, control characters made visible.
func line(s string, width int) string {
	s = strings.TrimSpace(s)
	if len(s) > 8*width { // so that a megabyte is not gone through for a line
		n := 8 * width
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	s = strings.NewReplacer("\n", "↵", "\t", " ").Replace(visible(s))
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	r := []rune(s)
	return string(r[:max(width-1, 0)]) + "…"
}

// style colours text; the zero style leaves it as it is.
type style struct{ on bool }

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string   { return s.paint("1", t) }
func (s style) dim(t string) string    { return s.paint("2", t) }
func (s style) red(t string) string    { return s.paint("31", t) }
func (s style) green(t string) string  { return s.paint("32", t) }
func (s style) yellow(t string) string { return s.paint("33", t) }

// grouped writes n with a comma between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count writes "1 call", "2 calls".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}
