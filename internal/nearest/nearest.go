// Package nearest finds the word that may have been meant: a misspelt tool name, field, value, or
// name in a rule.
package nearest

import (
	"strings"
)

// Word returns the word most similar to s, or "" if none is close enough: of a long word at most a
// third of the letters may differ, of a word of 4 letters at most 2, of 3 letters one, and of fewer
// none.
func Word(s string, words []string) string {
	most := max(2, len(s)/3)
	if len(s) == 3 {
		most = 1
	}
	if len(s) < 3 {
		most = 0
	}
	best := ""
	bestD := most + 1
	for _, w := range words {
		if d := distance(s, w, bestD); d < bestD {
			best = w
			bestD = d
		}
	}
	return best
}

// longestWord is the number of bytes above which words are not compared: the work grows with the
// product of the lengths.
const longestWord = 128

// distance returns the edit distance of a and b. It ignores letter case and the difference between
// '-' and '_'. It stops at limit.
func distance(a, b string, limit int) int {
	// The distance is at least the difference of the lengths.
	differ := max(len(a)-len(b), len(b)-len(a))
	if differ >= limit || max(len(a), len(b)) > longestWord {
		return limit
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		diag := prev[0]
		prev[0] = i + 1
		low := prev[0] // the distance is at least the lowest of each row
		for j := range len(b) {
			d := diag
			if fold(a[i]) != fold(b[j]) {
				d = 1 + min(diag, prev[j], prev[j+1])
			}
			diag, prev[j+1] = prev[j+1], d
			low = min(low, d)
		}
		if low >= limit {
			return limit
		}
	}
	return prev[len(b)]
}

func fold(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c + 'a' - 'A'
	case c == '-' || c == '.' || c == ' ':
		return '_'
	}
	return c
}

// Hint returns the hint for a name that does not exist: the known name that was probably meant, or
// all known names.
func Hint(name string, known []string) string {
	if near := Word(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "there are: " + strings.Join(known, ", ")
}
