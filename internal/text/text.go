// Package text cuts and inflects the texts of messages.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clip shortens s to at most n bytes, at a rune boundary, and marks the cut with an ellipsis.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:RuneBefore(s, n)] + "…"
}

// ClipLine returns what Clip returns on one line, with one space for each run of white space.
func ClipLine(s string, n int) string { return strings.Join(strings.Fields(Clip(s, n)), " ") }

// Plural returns one if n is 1, and many otherwise.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Parting returns where two texts are shown so that their difference is seen: before bytes before
// the first byte that differs, at a rune boundary.
func Parting(a, b string, before int) (from int) {
	return RuneBefore(a, max(0, Common(a, b)-before))
}

// Common returns the number of bytes that two texts have in common at their start.
func Common[T ~string | ~[]byte](a, b T) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// RuneBefore returns the start of the rune at i in s, or at most three bytes before it.
func RuneBefore(s string, i int) int {
	for n := i; n > i-utf8.UTFMax && n >= 0; n-- {
		if n == len(s) || utf8.RuneStart(s[n]) {
			return n
		}
	}
	return i
}

// RuneAfter returns the start of a rune at i in s, or at most three bytes after it.
func RuneAfter(s string, i int) int {
	for n := i; n < i+utf8.UTFMax && n <= len(s); n++ {
		if n == len(s) || utf8.RuneStart(s[n]) {
			return n
		}
	}
	return i
}

// Middle returns s if it has at most n bytes. Otherwise it returns about n bytes of its beginning
// and its end, with a mark in between.
func Middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, tail := s[:RuneBefore(s, n/2)], s[RuneAfter(s, len(s)-n/2):]
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, len(s)-len(head)-len(tail), tail)
}

// First joins the first most of all with commas. For the others it adds rest, in which # stands for
// their number.
func First(all []string, most int, rest string) string {
	if n := len(all) - most; n > 0 {
		return strings.Join(all[:most], ", ") + strings.ReplaceAll(rest, "#", strconv.Itoa(n))
	}
	return strings.Join(all, ", ")
}
