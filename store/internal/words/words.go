// Package words defines the words of a text, for all stores: the words that a query searches for,
// and the form in which a text is indexed. Each index reduces words itself (stems, letters without
// accents).
package words

import (
	"strings"
	"unicode"
)

// maxTerms limits the words of a query.
const maxTerms = 64

// Spaced returns text for an index: letters of scripts without spaces between words are separated
// by spaces.
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

// spaceless reports whether r belongs to a script without spaces between words.
func spaceless(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Part reports whether r is part of a word.
func Part(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// Terms returns the search terms of a query, at most 64. A term is one word, or consecutive letters
// of a script without spaces, separated by spaces, which are searched as a phrase. Words that occur
// in every English text are dropped if there are others, because they match everything and are
// slow.
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

// everywhere contains English words that do not describe the subject of a text.
var everywhere = set("a about after all also am an and any are as at be been but by can could did do does " +
	"for from had has have he her his how i if in into is it its " +
	"me my no not of on or our she should so some than that the their them then there these they this those to " +
	"was we were what when where which who why will with would you your")

func set(list string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		all[w] = true
	}
	return all
}
