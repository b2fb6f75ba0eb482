package origin

// tokens.go: the tokens by which a private value is found again in any form of text.

import (
	"strings"
)

// minToken is the length of the shortest token. Shorter ones stand in too many texts.
const minToken = 3

// addTokens adds to all the tokens of a plain text: words with a digit or an @, and numbers whose
// digits have signs or a space between them, without these. A card number is the same token with
// blanks and with dashes.
func addTokens(all map[string]bool, text string) {
	if !strings.ContainsAny(text, "0123456789@") {
		return
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) && !strings.ContainsRune(".-+", r) })
	for _, w := range words {
		w = strings.Trim(w, ".-+")
		if len(w) >= minToken && strings.ContainsAny(w, "0123456789@") {
			all[w] = true
		}
	}
	addNumbers(all, text)
}

// addNumbers adds the numbers of text, with and without the groups that they are joined from.
func addNumbers(all map[string]bool, text string) {
	var joined, group []byte
	apart := 0 // signs since the last digit
	add := func(number []byte) {
		if len(number) >= minToken {
			all[string(number)] = true
		}
	}
	flush := func() {
		add(group)
		add(joined)
		group = group[:0]
		joined = joined[:0]
	}
	for i := range len(text) {
		b := text[i]
		switch {
		case b >= '0' && b <= '9':
			if apart > 0 {
				add(group)
				group = group[:0]
			}
			apart = 0
			group = append(group, b)
			joined = append(joined, b)
		// A number may be written in groups, such as an account or a phone number. Two signs in a
		// row end it.
		case len(joined) > 0 && apart == 0 && strings.IndexByte(" .-/:", b) >= 0:
			apart++
		default:
			apart = 0
			flush()
		}
	}
	flush()
}
