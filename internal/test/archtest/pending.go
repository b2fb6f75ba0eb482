package archtest

import (
	"fmt"
	"maps"
	"slices"
)

// The rules of columns.go and words.go apply to one place after another. A place is a package
// ("durable"), the tests of a package ("durable tests") or a document ("docs/mcp.md").
// language_pending.txt lists the places that are not rewritten yet; it only gets shorter.

// place returns the place of a Go file.
func (f *goFile) place() string {
	if f.test() {
		return f.dir() + " tests"
	}
	return f.dir()
}

// language returns the violations of columns and words in each place. A place without violations
// has an empty list.
func language(files []*goFile, pages []page, exceptions []*exception) map[string][]string {
	faults := map[string][]string{}
	for _, f := range files {
		bad := slices.Concat(checkColumns(f), checkWords(f.passages(), exceptions), checkHead(f))
		faults[f.place()] = append(faults[f.place()], bad...)
	}
	for _, p := range pages {
		faults[p.path] = checkWords([]passage{p.passage()}, exceptions)
	}
	return faults
}

// checkPending returns the violations in places that pending does not list, and the entries of
// pending that are out of date.
func checkPending(faults map[string][]string, pending []string) []string {
	var bad []string
	for _, place := range slices.Sorted(maps.Keys(faults)) {
		if !slices.Contains(pending, place) {
			bad = append(bad, faults[place]...)
		}
	}
	for i, place := range pending {
		found, exists := faults[place]
		switch {
		case slices.Contains(pending[:i], place):
			bad = append(bad, fmt.Sprintf("language_pending.txt names %s twice", place))
		case !exists:
			bad = append(bad, fmt.Sprintf("language_pending.txt names %s, which does not exist: remove it from the list", place))
		case len(found) == 0:
			bad = append(bad, fmt.Sprintf("%s follows the rules of language: remove it from language_pending.txt", place))
		}
	}
	return bad
}
