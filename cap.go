package pawl

import (
	"slices"
	"unicode/utf8"

	"github.com/pawl-go/pawl/llm"
)

// tellable leaves out of a result what is neither Text nor Media with something in it: no provider could send it, and a stored
// transcript could not be read.
func tellable(parts []llm.Part) []llm.Part {
	odd := func(p llm.Part) bool {
		switch p := p.(type) {
		case llm.Text:
			return false
		case llm.Media:
			return (p.URL == "") == (len(p.Data) == 0)
		}
		return true
	}
	if slices.ContainsFunc(parts, odd) {
		parts = slices.DeleteFunc(slices.Clone(parts), odd)
	}
	return parts
}

// textLen is how many bytes of text parts have.
func textLen(parts []llm.Part) (n int) {
	for _, p := range parts {
		if t, ok := p.(llm.Text); ok {
			n += len(t.Text)
		}
	}
	return n
}

// capped bounds the text of a result, which is longer, to limit bytes: its head and its tail, and between them the mark for what is lost and for
// the place where that begins.
func capped(parts []llm.Part, limit int, mark func(lost, at int) string) []llm.Part {
	total := textLen(parts)
	keep := max(0, limit-len(mark(total, total)))
	head := keep * 2 / 3
	tail := total - (keep - head) // where it begins
	out := make([]llm.Part, 0, len(parts))
	at, lost, cut, marked := 0, 0, 0, -1
	for _, p := range parts {
		t, ok := p.(llm.Text)
		if !ok {
			out = append(out, p)
			continue
		}
		n := len(t.Text)
		a := runeBefore(t.Text, min(max(head-at, 0), n))
		b := max(a, runeAfter(t.Text, min(max(tail-at, 0), n)))
		at += n
		lost += b - a
		switch {
		case b == a:
			out = append(out, t)
		case marked < 0: // the first that is cut
			marked, cut = len(out), at-n+a
			out = append(out, llm.Text{Text: t.Text[:a]}, llm.Text{Text: t.Text[b:]})
		case a > 0 || b < n:
			out = append(out, llm.Text{Text: t.Text[:a] + t.Text[b:]})
		}
	}
	first, second := out[marked].(llm.Text), out[marked+1].(llm.Text)
	out[marked] = llm.Text{Text: first.Text + mark(lost, cut) + second.Text}
	return slices.Delete(out, marked+1, marked+2)
}

// runeBefore and runeAfter move a place in s to the start of a rune, at most three bytes.
func runeBefore(s string, i int) int {
	for n := i; n > i-utf8.UTFMax && n >= 0; n-- {
		if n == len(s) || utf8.RuneStart(s[n]) {
			return n
		}
	}
	return i
}

func runeAfter(s string, i int) int {
	for n := i; n < i+utf8.UTFMax && n <= len(s); n++ {
		if n == len(s) || utf8.RuneStart(s[n]) {
			return n
		}
	}
	return i
}
