package origin

// report.go: why a call needs a question, in words and as data for the person who answers it.

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
)

// Bounds of a question: its reasons, and the characters of a sentence.
const (
	maxReasons  = 3
	maxSentence = 90
)

// The classes of doubts; see pawl.Doubt.
const (
	classStranger = "stranger"
	classMadeUp   = "made_up"
	classLeaves   = "leaves"
	classNotSaid  = "not_said"
	classRecord   = "record"
)

// classWords are the classes in words, for people.
var classWords = map[string]string{
	classStranger: "A STRANGER'S TEXT NAMES IT",
	classMadeUp:   "NO TEXT NAMES IT",
	classLeaves:   "IT MAY GIVE AWAY WHAT WAS READ",
	classNotSaid:  "NOT WHAT YOU SAID",
	classRecord:   "A RECORD HAS IT, WHICH YOU DID NOT NAME",
}

// Question is why a call needs one. Without reasons it needs none.
type Question struct {
	Doubts  []pawl.Doubt
	reasons []string // of each doubt
}

// add adds what is wrong with an argument. text says it in words, after the name and the value.
func (q *Question) add(a Argument, d pawl.Doubt, text string) {
	d.Arg = a.name
	d.Value = clipped(a.value)
	reason := fmt.Sprintf("%s: %s %q %s", classWords[d.Class], d.Arg, d.Value, text)
	if d.Sentence != "" {
		reason += fmt.Sprintf(": %q", d.Sentence)
	}
	if !slices.Contains(q.reasons, reason) {
		q.Doubts = append(q.Doubts, d)
		q.reasons = append(q.reasons, reason)
	}
}

// describe adds the argument a because of the value v. before stands before the words that say
// where v stands.
func (q *Question) describe(ix *Index, a Argument, v, before string) {
	d, text := ix.describe(v)
	q.add(a, d, before+text)
}

// Text returns the first reasons, how many more there are, and the user's own words. Empty means
// that no question is needed. The class of the first reason comes first, because an attack and an
// errand differ in it.
func (q *Question) Text() string {
	if len(q.reasons) == 0 {
		return ""
	}
	all := q.reasons
	if len(all) > maxReasons {
		more := fmt.Sprintf("and %d more", len(all)-maxReasons)
		all = append(all[:maxReasons:maxReasons], more)
	}
	text := strings.Join(all, "; ")
	if said := q.Doubts[0].Said; said != "" {
		text += fmt.Sprintf("; you asked: %q", said)
	}
	return text
}

// describe says where v stands, for a question: as a doubt, and in words.
func (ix *Index) describe(v string) (d pawl.Doubt, text string) {
	d.Said = ix.lastSaid()
	if s := ix.search(v); s.where != "" {
		d.Class = classStranger
		d.Source = s.where
		d.Sentence = ix.texts[s.first].excerpt(v)
		return d, "stands only in " + s.where
	}
	for s := range ix.spotsOf(v) {
		d.Class = classRecord
		d.Source = "a record that " + s.tool.name + " returned"
		if s.record != nil {
			d.Sentence = oneLine(strings.Join(s.record.texts[:min(len(s.record.texts), 4)], ", "), maxSentence)
		}
		return d, "stands only in " + d.Source + " and the user's words do not name"
	}

	d.Class = classMadeUp
	if _, ok := ix.last[v]; ok {
		return d, "stands in results only where an earlier call put it"
	}
	return d, "stands neither in the user's words nor in a result"
}

// doubt returns a doubt of a class that no place of a value explains.
func (ix *Index) doubt(class string) pawl.Doubt {
	return pawl.Doubt{Class: class, Said: ix.lastSaid()}
}

// lastSaid returns the last words of the user, in one line.
func (ix *Index) lastSaid() string {
	if ix.asked == "" {
		return outside(ix, (*Index).lastSaid)
	}
	return ix.asked
}

// excerpt returns the text around v in p, in one line.
func (p *passage) excerpt(v string) string {
	text := p.raw
	at := indexFold(text, bareLink(v))
	if at < 0 { // the white space differs
		text = p.text
		at = find(text, bareLink(v), 0)
	}
	if at < 0 {
		return ""
	}

	half := (maxSentence - min(len(v), maxSentence/2)) / 2
	from := max(0, at-half)
	to := min(len(text), at+len(v)+half)
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	if from > 0 { // no half of a word
		for from < at && !unicode.IsSpace(rune(text[from-1])) {
			from++
		}
	}

	around := oneLine(text[from:to], maxSentence)
	if from > 0 {
		around = "…" + around
	}
	if to < len(text) {
		around += "…"
	}
	return around
}

// indexFold returns the place of the plain text v in text, without regard to case; -1 means none.
func indexFold(text, v string) int {
	lower := strings.ToLower(text)
	if len(lower) != len(text) {
		return -1 // the places would differ
	}
	return find(lower, v, 0)
}

// oneLine returns the first n characters of text as one line without control characters.
func oneLine(text string, n int) string {
	visible := func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}
	line := []rune(strings.Join(strings.Fields(strings.Map(visible, text)), " "))
	if len(line) > n {
		return string(line[:n]) + "…"
	}
	return string(line)
}

// clipped returns the start of a value, for a question.
func clipped(s string) string {
	if r := []rune(s[:min(len(s), 256)]); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
