package origin

// report.go: why a call needs a question, in words for the person who answers it.

import (
	"fmt"
	"slices"
	"strings"
)

// maxReasons bounds the reasons in one question.
const maxReasons = 3

// question has the reasons why a call needs one.
type question struct {
	reasons []string
}

// add adds what is wrong with an argument.
func (q *question) add(a Argument, text string) {
	reason := fmt.Sprintf("%s %q %s", a.name, clipped(a.value), text)
	if !slices.Contains(q.reasons, reason) {
		q.reasons = append(q.reasons, reason)
	}
}

// text returns the first reasons, and how many more there are. Empty means none.
func (q *question) text() string {
	all := q.reasons
	if len(all) > maxReasons {
		more := fmt.Sprintf("and %d more", len(all)-maxReasons)
		all = append(all[:maxReasons:maxReasons], more)
	}
	return strings.Join(all, "; ")
}

// describe says where v stands, for a question.
func (ix *Index) describe(v string) string {
	if tool := ix.search(v).tool; tool != "" {
		return "stands only in text that " + tool + " returned"
	}
	for s := range ix.spotsOf(v) {
		return "stands only in a record that " + s.tool.name + " returned and the user's words do not name"
	}
	if _, ok := ix.last[v]; ok {
		return "stands in a result only after a call had it as an argument"
	}
	return "stands neither in the user's words nor in a result"
}

// clipped returns the start of a value, for a question.
func clipped(s string) string {
	if r := []rune(s[:min(len(s), 256)]); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
