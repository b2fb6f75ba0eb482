package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// visible makes text harmless for a terminal: what a model or a tool says is shown, never carried out.
func visible(s string) string { return term.Visible(s) }

// line returns s as one line of at most width columns, control characters made visible.
func line(s string, width int) string {
	s, width = strings.TrimSpace(s), max(width, 1)
	if len(s) > 8*width { // so that a megabyte is not gone through for a line
		n := 8 * width
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return term.Cut(strings.NewReplacer("\n", "↵", "\t", " ").Replace(visible(s)), width)
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
