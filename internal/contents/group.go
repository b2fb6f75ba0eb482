package contents

// group.go: Lines, which writes entries that differ in a few words as one line.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/internal/text"
)

const (
	mostGrouped = 2_000 // latest entries that are looked at
	leastGroup  = 3     // entries that share a line
	longest     = 400   // bytes of an entry that shares a line
	mostWords   = 40    // of such an entry
	mostVaried  = 3     // words in which the entries of a line differ
)

// shown is a part of a line: one call, or calls in turn with numbers in turn.
type shown struct {
	first, last *Entry
	from, to    string // the words that differ; equal for one call; empty for a line of its own
	count       int
}

// group is a line of calls that differ in a few words, or of one call.
type group struct {
	form  string // the call, with * in place of the words that differ
	parts []shown
}

// words are the arguments of a call, or a text, by words. What stands between them belongs to no
// word.
type words struct {
	entry *Entry
	spans [][2]int
	form  string // with * in place of each word; empty means that the entry has no words
}

// Lines writes calls or texts, which are given the latest first, as lines of at most most bytes
// together. Entries that differ in a few words share a line. left is the number of entries that are
// left out, which are the earliest.
func Lines(entries []*Entry, most int) (lines string, left int) {
	seen := entries[:min(len(entries), mostGrouped)]
	left = len(entries) - len(seen)

	var b strings.Builder
	groups := grouped(seen)
	full := false
	for i := range groups {
		g := &groups[i]
		g.joinNumbers()
		n := 0
		if !full {
			n = g.write(&b, most)
		}
		full = full || n < len(g.parts)
		for _, p := range g.parts[n:] {
			left += p.count
		}
	}
	return b.String(), left
}

// grouped returns the groups of entries in the order of their latest entries.
func grouped(entries []*Entry) []group {
	all := make([]words, len(entries))
	alike := map[string][]words{} // by form
	for i, e := range entries {
		all[i] = wordsOf(e)
		alike[all[i].form] = append(alike[all[i].form], all[i])
	}
	fixed := map[string][]string{}
	for form, of := range alike {
		fixed[form] = common(of)
	}

	var groups []group
	places := map[string]int{} // the index of the group of a form
	for i := range all {
		w := &all[i]
		same := fixed[w.form]
		if !w.fits(same) {
			groups = append(groups, group{
				form:  w.entry.short(),
				parts: []shown{{first: w.entry, last: w.entry, count: 1}},
			})
			continue
		}

		at, ok := places[w.form]
		if !ok {
			at = len(groups)
			places[w.form] = at
			groups = append(groups, group{form: w.formWith(same)})
		}
		varied := w.varied(same)
		groups[at].parts = append(groups[at].parts, shown{
			first: w.entry,
			last:  w.entry,
			from:  varied,
			to:    varied,
			count: 1,
		})
	}
	return groups
}

// common returns the words that most of the calls have, by place; empty means that they differ. It
// returns nil if the calls do not share a line.
func common(all []words) []string {
	if len(all) < leastGroup || len(all[0].spans) == 0 {
		return nil
	}
	fixed := make([]string, len(all[0].spans))
	differ := 0
	for place := range fixed {
		counts := map[string]int{}
		most := ""
		for i := range all {
			word := all[i].word(place)
			counts[word]++
			if counts[word] > counts[most] {
				most = word
			}
		}

		// A few other calls must not spoil the line of the rest.
		if counts[most]*5 >= len(all)*3 {
			fixed[place] = most
		} else {
			differ++
		}
	}
	if differ == 0 || differ > mostVaried {
		return nil
	}
	return fixed
}

// wordsOf returns the words of an entry. A long entry has no words and no form, and has a line of
// its own.
func wordsOf(e *Entry) words {
	w := words{entry: e}
	content := e.content()
	if len(content) > longest || text.ClipLine(content, longest) != content || e.size() != "" {
		return w
	}
	start := -1
	for i, r := range content + "\x00" {
		inside := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./", r)
		switch {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			// The end of a sentence is no part of a number.
			end := start + len(strings.TrimRight(content[start:i], ".-/"))
			if end > start {
				w.spans = append(w.spans, [2]int{start, end})
			}
			start = -1
		}
	}
	if len(w.spans) == 0 || len(w.spans) > mostWords {
		return words{entry: e}
	}
	w.form = w.formWith(nil)
	return w
}

// word returns the word at a place.
func (w *words) word(place int) string {
	span := w.spans[place]
	return w.entry.content()[span[0]:span[1]]
}

// formWith returns the entry with * in place of each word, except of those in fixed that are not
// empty.
func (w *words) formWith(fixed []string) string {
	var b strings.Builder
	content := w.entry.content()
	if w.entry.Call != "" {
		b.WriteString(w.entry.Call + " ")
	}
	at := 0
	for place, span := range w.spans {
		b.WriteString(content[at:span[0]])
		at = span[1]
		if fixed != nil && fixed[place] != "" {
			b.WriteString(fixed[place])
		} else {
			b.WriteString("*")
		}
	}
	b.WriteString(content[at:])
	return b.String()
}

// fits reports whether the call has the fixed words. nil means that no call does.
func (w *words) fits(fixed []string) bool {
	for place, word := range fixed {
		if word != "" && w.word(place) != word {
			return false
		}
	}
	return fixed != nil
}

// varied returns the words of the call that are not fixed.
func (w *words) varied(fixed []string) string {
	var out []string
	for place, word := range fixed {
		if word == "" {
			out = append(out, w.word(place))
		}
	}
	return strings.Join(out, " ")
}

// joinNumbers joins calls in turn whose words are numbers in turn. Calls that failed or were made
// again stay on their own.
func (g *group) joinNumbers() {
	var joined []shown
	for _, p := range g.parts {
		n := len(joined)
		if n > 0 && joined[n-1].follows(p) {
			joined[n-1].first = p.first
			joined[n-1].from = p.from
			joined[n-1].count++
			continue
		}
		joined = append(joined, p)
	}
	g.parts = joined
}

// follows reports whether s begins with the number after p, and both are plain successes.
func (s *shown) follows(p shown) bool {
	if !s.first.once() || !p.first.once() {
		return false
	}
	a, err := strconv.Atoi(p.to)
	if err != nil || strconv.Itoa(a) != p.to {
		return false
	}
	return s.from == strconv.Itoa(a+1)
}

// content returns the arguments of a call, or the text.
func (e *Entry) content() string {
	if e.Call != "" {
		return e.Args
	}
	return e.Text
}

// short returns the beginning of the entry.
func (e *Entry) short() string {
	if e.Call == "" {
		return fmt.Sprintf("%q%s", e.Text, e.size())
	}
	return e.Call + " " + text.ClipLine(e.Args, argsShown)
}

// once reports whether the call was made once, and succeeded.
func (e *Entry) once() bool { return len(e.IDs) <= 1 && !e.Failed }

// write writes the line of g, as far as it fits into what is left of most bytes in all, and returns
// the number of its parts that it has.
func (g *group) write(b *strings.Builder, most int) int {
	head := "- " + g.form + ": "
	if g.parts[0].from != "" {
		head = "- " + g.form + " with * = "
	}
	free := most - b.Len() - len(head)
	n := 0
	var texts []string
	for ; n < len(g.parts); n++ {
		t := g.parts[n].text()
		free -= len(t) + 2
		if free < 0 {
			break
		}
		texts = append(texts, t)
	}
	if n == 0 {
		return 0
	}

	// The model reads them in the order in which it made them.
	slices.Reverse(texts)
	b.WriteString(head + strings.Join(texts, ", ") + "\n")
	return n
}

// text returns the word of s with the ids of its results.
func (s *shown) text() string {
	e := s.first
	outcome := ""
	if e.Failed {
		outcome = ", failed"
	}
	switch {
	case s.count > 1:
		return fmt.Sprintf("%s to %s (%s to %s)", s.from, s.to, e.ID, s.last.ID)
	case len(e.IDs) > 1:
		outcome = fmt.Sprintf(", %d times, last %s%s", len(e.IDs), e.IDs[len(e.IDs)-1], outcome)
	}
	if s.from == "" {
		return e.ID + outcome
	}
	return fmt.Sprintf("%s (%s%s)", s.from, e.ID, outcome)
}
