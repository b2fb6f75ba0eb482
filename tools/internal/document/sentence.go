package document

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentence is a sentence and the white space after it: "\n" for a line break, " " for other white
// space, "" for none.
type sentence struct{ text, after string }

// sentences splits text after . ! ? before a space and a capital letter, a line break or the end.
// It also splits after Chinese and Japanese full stops anywhere. A stop after an abbreviation or an
// initial, or inside a number, does not end a sentence.
func sentences(text string) []sentence {
	var out []sentence
	begin := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		at := i
		i += size
		cjk := r == '。' || r == '！' || r == '？' || r == '｡'
		if !cjk && r != '.' && r != '!' && r != '?' {
			continue
		}
		for i < len(text) { // closing marks belong to the sentence
			r, size := utf8.DecodeRuneInString(text[i:])
			if !strings.ContainsRune(`"')]}”’»」』.!?。！？`, r) {
				break
			}
			i += size
		}
		space := i
		for space < len(text) && (text[space] == ' ' || text[space] == '\n' || text[space] == '\t') {
			space++
		}
		if !cjk && !ends(text, begin, at, i, space) {
			continue
		}
		after := ""
		if gap := text[i:space]; strings.Contains(gap, "\n") {
			after = "\n"
		} else if gap != "" {
			after = " "
		}
		out = append(out, sentence{text[begin:i], after})
		begin, i = space, space
	}
	if begin < len(text) {
		out = append(out, sentence{text[begin:], ""})
	}
	return out
}

// ends reports whether the stop at text[at] ends its sentence. The sentence continues to from, and
// spaces follow up to next.
func ends(text string, begin, at, from, next int) bool {
	if next == len(text) {
		return true
	}
	if next == from { // no space: a decimal, an address or a version
		return false
	}
	if text[at] == '.' && abbreviated(text[begin:at]) {
		return false
	}
	if strings.Contains(text[from:next], "\n") {
		return true
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[next:min(len(text), next+8)], `"'([{“‘«`))
	return unicode.IsUpper(r) || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// abbreviated reports whether text ends in an abbreviation or in an initial.
func abbreviated(text string) bool {
	const longest = 8
	tail := text[max(0, len(text)-longest):]
	word := tail[strings.LastIndexAny(tail, " \n\t(\"'[")+1:]
	if len(word) == 1 && word[0] >= 'A' && word[0] <= 'Z' {
		return true
	}
	switch strings.ToLower(word) {
	case "mr", "mrs", "ms", "dr", "prof", "sr", "jr", "st", "vs", "etc", "e.g", "i.e", "cf", "al", "fig", "figs", "no", "nos", "vol", "pp", "p", "ch", "sec", "eq", "ed", "eds",
		"inc", "ltd", "co", "corp", "dept", "approx", "est", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "z.b", "d.h", "u.a", "bzw", "ca":
		return true
	}
	return false
}
