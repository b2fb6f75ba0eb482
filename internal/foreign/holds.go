package foreign

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// Holds reports whether texts hold data, so that a reader of the texts need not read it. They do if
// a text is equal JSON, or if each leaf of data stands in the texts: each string, number, boolean,
// null and empty list or object, and each name of a member that is no identifier and therefore
// data.
func Holds(texts []string, data json.RawMessage) bool {
	same := jsonform.Canonical(data)
	said := newWords()
	for _, t := range texts {
		if json.Valid([]byte(t)) {
			if string(jsonform.Canonical([]byte(t))) == string(same) {
				return true
			}
			said.leaves(t)
		}
		said.texts = append(said.texts, t)
	}
	return said.hold(leavesOf(data))
}

// maxSearch bounds the search for leaves: their number times the bytes of the texts.
const maxSearch = 64 << 20

// words are what texts say.
type words struct {
	texts []string
	exact map[string]bool // the leaves of the texts that are JSON
}

func newWords() *words { return &words{exact: map[string]bool{}} }

func (w *words) leaves(text string) {
	for leaf := range leavesOf(json.RawMessage(text)) {
		w.exact[leaf] = true
	}
}

// hold reports whether all leaves stand in the texts. It reports false if the search would take too
// long: to read something twice is better than not to read it.
func (w *words) hold(leaves map[string]bool) bool {
	size := 0
	for _, t := range w.texts {
		size += len(t)
	}
	searched := 0
	for leaf := range leaves {
		if w.exact[leaf] {
			continue
		}
		searched += size
		if searched > maxSearch || !w.say(leaf) {
			return false
		}
	}
	return true
}

// say reports whether a leaf stands in the texts as a word of its own.
func (w *words) say(leaf string) bool {
	for _, t := range w.texts {
		if stands(t, leaf) {
			return true
		}
	}
	return false
}

// stands reports whether word occurs in text and no letter or digit continues it.
func stands(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		if apart(text[:i], word) && apart(word, text[end:]) {
			return true
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		from = i + n
	}
}

// apart reports whether no word goes from the end of a to the beginning of b. A sign, and a point
// or a comma between digits, continue a number.
func apart(a, b string) bool {
	if a == "" || b == "" {
		return true
	}
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	switch {
	case isWordRune(last):
		return !isWordRune(first) && !(unicode.IsDigit(last) && continuesNumber(b))
	case strings.ContainsRune("-.,", last):
		return !unicode.IsDigit(first)
	}
	return true
}

// continuesNumber reports whether a text begins with a point or a comma and a digit.
func continuesNumber(text string) bool {
	if text[0] != '.' && text[0] != ',' {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[1:])
	return unicode.IsDigit(next)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// leavesOf returns the leaves of data. Numbers have one form for each value.
func leavesOf(data json.RawMessage) map[string]bool {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	all := map[string]bool{}
	var v any
	if d.Decode(&v) == nil {
		addLeaves(v, all)
	}
	return all
}

func addLeaves(v any, all map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			all["{}"] = true
		}
		for name, member := range v {
			if !isIdentifier(name) {
				all[name] = true
			}
			addLeaves(member, all)
		}
	case []any:
		if len(v) == 0 {
			all["[]"] = true
		}
		for _, e := range v {
			addLeaves(e, all)
		}
	case string:
		if s := strings.TrimSpace(v); s != "" {
			all[s] = true
		}
	case json.Number:
		all[plainNumber(v)] = true
	case bool:
		all[strconv.FormatBool(v)] = true
	case nil:
		all["null"] = true
	}
}

// plainNumber returns a number as people write it: 1.50 and 1.5e0 are 1.5.
func plainNumber(n json.Number) string {
	f, err := n.Float64()
	isWhole := !strings.ContainsAny(string(n), ".eE")
	if isWhole || err != nil || math.Abs(f) > 1e15 {
		return string(n)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// isIdentifier reports whether a name of a member is a word of the program that wrote it.
func isIdentifier(name string) bool {
	for i, r := range name {
		switch {
		case r == '_' || r == '$' || unicode.IsLetter(r):
		case i > 0 && (unicode.IsDigit(r) || r == '-'):
		default:
			return false
		}
	}
	return name != ""
}
