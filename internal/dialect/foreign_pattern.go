package dialect

import (
	"regexp/syntax"
	"strconv"
	"strings"
)

// maxRepeats is the number of nested repetitions from which on a regular expression would exhaust
// its reader.
const maxRepeats = 1_000_000

// ForeignPattern returns why a pattern of another program cannot be checked here: RE2 has no
// lookaround, no reference to a group, and no count above 1000. It returns nil for a pattern that
// can be checked, and for a pattern that would exhaust its reader, which the compiler of schemas
// refuses.
func ForeignPattern(expr string) error {
	_, err := syntax.Parse(expr, syntax.Perl)
	if err == nil || repeats(expr) >= maxRepeats {
		return nil
	}
	return err
}

// repeats returns the largest product of nested counts: 20 for (a{4}b){2,5}.
func repeats(expr string) int {
	groups := []int{1} // the largest product in each open group
	last := 1          // of the last atom
	for i := 0; i < len(expr); i++ {
		top := len(groups) - 1
		switch expr[i] {
		case '\\':
			i++
			last = 1
		case '[':
			i = endOfClass(expr, i)
			last = 1
		case '(':
			groups = append(groups, 1)
			last = 1
			continue
		case ')':
			if top > 0 {
				last = groups[top]
				groups = groups[:top]
				top--
			}
		case '{':
			last = min(last*largestCount(expr[i:]), maxRepeats)
		default:
			last = 1
		}
		groups[top] = max(groups[top], last)
	}

	most := 1
	for _, n := range groups {
		most = max(most, n)
	}
	return most
}

// endOfClass returns the index of the bracket that closes the one at i.
func endOfClass(expr string, i int) int {
	for i++; i < len(expr) && expr[i] != ']'; i++ {
		if expr[i] == '\\' {
			i++
		}
	}
	return i
}

// largestCount returns the largest number of a count such as {2,5}, or 1.
func largestCount(expr string) int {
	inner, _, _ := strings.Cut(expr[1:], "}")
	from, to, _ := strings.Cut(inner, ",")
	most := 1
	for _, text := range []string{from, to} {
		if n, err := strconv.Atoi(text); err == nil {
			most = max(most, min(n, maxRepeats))
		}
	}
	return most
}
