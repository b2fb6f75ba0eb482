package origin

// clauses.go: which act the user's words ask for on a document: the clause that names it decides.

import (
	"regexp"
	"slices"
	"strings"
)

// The words of clauses are known in English, and the conjunctions in German too. In other languages
// a clause is longer or has no such word, so that more is asked.
var (
	clauseEnds = regexp.MustCompile(`[.;!?,](?:\s|$)|\s(?:and|then|und|dann)\s`)
	pronouns   = []string{"it", "its", "them", "their", "that"}
	articles   = set("the a an this that my our your his her their its file page document bill mail")
)

// actsOn reports whether words ask for one of verbs on the document at place: in the clause with
// the place, or in a later clause that says it, or that names the person next to the place, as in
// "visit Dora's page (www.dora.example) and invite Dora".
func actsOn(words, place string, verbs []string) bool {
	place = bareLink(place)
	has := func(clause string, values []string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return find(clause, v, 0) >= 0 })
	}

	about := pronouns
	named := false
	for _, clause := range clauseEnds.Split(words, -1) {
		at := find(clause, place, 0)
		// Only what follows the place can refer to it.
		if at >= 0 {
			named = true
			if who := nameBefore(clause[:at]); who != "" {
				about = append(slices.Clip(about), who)
			}
		}
		concerns := at >= 0 || named && has(clause, about)
		if concerns && has(clause, verbs) {
			return true
		}
	}
	return false
}

// nameBefore returns the last word of text if it may be the name of a person. Empty means no name.
func nameBefore(text string) string {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "http://"), "https://")
	words := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) })
	n := len(words)
	if n == 0 || len(words[n-1]) < minToken || articles[words[n-1]] {
		return ""
	}
	if n > 1 && articles[words[n-2]] {
		return ""
	}
	return words[n-1]
}
