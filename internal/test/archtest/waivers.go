package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// maxWaivers is the number of waivers that the project may have.
const maxWaivers = 20

// A waiver says that a rule makes one place worse. It has the form "//house:RULE reason" and stands
// on a line of its own above the place; above a function it may be part of the comment. It excuses
// the findings of its rule in the next line of code.
type waiver struct {
	rule   rule
	path   string
	line   int
	reason string
	used   bool
}

const waiverPrefix = "//house:"

// waive removes the findings that a waiver excuses, and records the waivers and their faults.
func (c *clarity) waive(f *goFile) {
	for _, comment := range f.comments() {
		text, ok := strings.CutPrefix(comment.raw, waiverPrefix)
		if !ok {
			continue
		}
		name, reason, _ := strings.Cut(text, " ")
		w := &waiver{rule: rule(name), path: f.path, line: comment.line, reason: strings.TrimSpace(reason)}
		c.waivers = append(c.waivers, w)
		c.excuse(w, f.nextCode(w.line))

		switch {
		case !slices.Contains(rules, w.rule):
			c.faults = append(c.faults, fmt.Sprintf("%s: no rule is named %q; the rules are %q", w, name, rules))
		case w.reason == "":
			c.faults = append(c.faults, fmt.Sprintf("%s: the waiver gives no reason: say why the text is better so", w))
		case !w.used:
			c.faults = append(c.faults, fmt.Sprintf("%s: the waiver excuses nothing: remove it", w))
		}
	}
}

// excuse removes the findings of the waiver's rule in a line.
func (c *clarity) excuse(w *waiver, line int) {
	c.findings = slices.DeleteFunc(c.findings, func(f finding) bool {
		excused := f.rule == w.rule && f.line == line
		w.used = w.used || excused
		return excused
	})
}

// nextCode returns the first line of code after a line. 0 means none.
func (f *goFile) nextCode(line int) int {
	for next := line + 1; next <= len(f.lines); next++ {
		if f.code[next] {
			return next
		}
	}
	return 0
}

// String returns the place, the rule and the reason of a waiver.
func (w *waiver) String() string {
	return fmt.Sprintf("%s:%d: %s%s %s", w.path, w.line, waiverPrefix, w.rule, w.reason)
}

// checkWaivers returns the faults of the project's waivers.
func checkWaivers(c *clarity) []string {
	bad := slices.Clone(c.faults)
	if len(c.waivers) > maxWaivers {
		bad = append(bad, fmt.Sprintf("%d waivers, at most %d: so many exceptions say that a rule is wrong, or the text",
			len(c.waivers), maxWaivers))
	}
	return bad
}
