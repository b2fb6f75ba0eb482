package mcp

import (
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/schema"
)

// maxRepeats is the maximum number of repetitions that a regular expression can ask for. With more
// it is made to exhaust its reader.
const maxRepeats = 1_000_000

// foreignPattern returns why a pattern of a server cannot be checked here: RE2 has no lookaround, no
// reference to a group, and no count above 1000. It returns nil for one that can be checked, and
// for one that is made to do harm, which the compiler of schemas refuses.
func foreignPattern(expr string) error {
	err := schema.Pattern(expr)
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
			last = min(last*count(expr[i:]), maxRepeats)
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

// count returns the largest number of a count such as {2,5}, or 1.
func count(expr string) int {
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
