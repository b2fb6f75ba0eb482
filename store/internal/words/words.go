// Package words says what the words of a text are, for every store alike: which of them a query looks for, and how a text is given to an index.
// What a word is reduced to (its stem, its letters without accents) is the index's own.
package words

import (
	"strings"
	"unicode"
)

// maxTerms bounds the words of a query.
const maxTerms = 64

// Spaced returns text as it is given to an index: letters of scripts without spaces between words stand alone.
func Spaced(text string) string {
	if !strings.ContainsFunc(text, spaceless) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if spaceless(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// spaceless reports letters of scripts that put no space between words.
func spaceless(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Part reports whether r is part of a word.
func Part(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// Terms are what a query looks for, at most 64: a word each, or, with spaces between them, letters that stand side by side in a script without spaces
// and are looked for side by side. Words that stand in every English text are passed over where there are others: they find everything, slowly.
func Terms(text string) []string {
	var list, frequent []string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !Part(r) }) {
		t := strings.Join(strings.Fields(Spaced(word)), " ")
		if everywhere[strings.ToLower(word)] {
			frequent = append(frequent, t)
		} else if list = append(list, t); len(list) == maxTerms {
			break
		}
	}
	if len(list) == 0 {
		list = frequent[:min(len(frequent), maxTerms)]
	}
	return list
}

// everywhere are words of English that say nothing of what a text is about.
var everywhere = set("a about after all also am an and any are as at be been but by can could did do does for from had has have he her his how i if in into is it its " +
	"me my no not of on or our she should so some than that the their them then there these they this those to was we were what when where which who why will with would you your")

func set(list string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		all[w] = true
	}
	return all
}
