package search

import (
	"context"
	"math"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/store"
)

// The constants of BM25, with the values of Robertson and Zaragoza, 2009.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// byWords scores texts by BM25. A text without any word of the query scores 0.
func byWords(query string, texts []string) []float64 {
	scores := make([]float64, len(texts))
	terms := words(query)
	counts := make([]map[string]int, len(texts)) // of the terms in each text
	lengths := make([]int, len(texts))
	having := map[string]int{} // the number of texts with a term
	total := 0
	for i, text := range texts {
		all := words(text)
		lengths[i] = len(all)
		total += len(all)

		counts[i] = occurrences(terms, all)
		for w := range counts[i] {
			having[w]++
		}
	}
	if total == 0 {
		return scores
	}

	number := float64(len(texts))
	mean := float64(total) / number
	for i := range texts {
		length := 1 - lengthPart + lengthPart*float64(lengths[i])/mean
		// in the order of the query, so that sums are deterministic
		for _, w := range terms {
			n := float64(counts[i][w])
			if n == 0 {
				continue
			}
			with := float64(having[w])
			rare := math.Log(1 + (number-with+0.5)/(with+0.5))
			scores[i] += rare * n * (saturation + 1) / (n + saturation*length)
		}
	}
	return scores
}

// occurrences counts the terms among words.
func occurrences(terms, words []string) map[string]int {
	wanted := map[string]bool{}
	for _, w := range terms {
		wanted[w] = true
	}
	counts := map[string]int{}
	for _, w := range words {
		if wanted[w] {
			counts[w]++
		}
	}
	return counts
}

// share returns the fraction of the query's words that a text contains.
func share(query, text string) float64 {
	have := map[string]bool{}
	for _, w := range words(text) {
		have[w] = true
	}
	terms := words(query)
	n := 0
	for _, w := range terms {
		if have[w] {
			n++
		}
	}
	if len(terms) == 0 {
		return 1
	}
	return float64(n) / float64(len(terms))
}

// words returns the words of a text in lower case. In scripts without spaces each character is a
// word.
func words(s string) []string {
	var out []string
	from := -1
	flush := func(to int) {
		if from >= 0 {
			out = append(out, strings.ToLower(s[from:to]))
			from = -1
		}
	}

	for i, r := range s {
		switch {
		// A sentence would be one word, which no query contains.
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			flush(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if from < 0 {
				from = i
			}
		default:
			flush(i)
		}
	}
	flush(len(s))
	return out
}

// fits is the cosine from which a passage counts as relevant to the query.
const fits = 0.35

// byMeaning scores texts by the cosine of their vectors and the vector of the query.
func byMeaning(ctx context.Context, e store.Embedder, query string, texts []string) ([]float64, error) {
	q, err := store.Embed(ctx, e, store.ForQuery, query)
	if err != nil {
		return nil, err
	}
	all, err := store.Embed(ctx, e, store.ForDocument, texts...)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(texts))
	for i, v := range all {
		if len(v.Values) != len(q[0].Values) {
			return nil, &Error{Text: "the vectors of the query and of the passages differ in size"}
		}
		scores[i] = cosine(q[0].Values, v.Values)
	}
	return scores, nil
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x := float64(a[i])
		y := float64(b[i])
		ab += x * y
		aa += x * x
		bb += y * y
	}
	return ab / math.Sqrt(aa*bb)
}

// Index is an engine in memory, for tests and for stored pages. It finds pages by their words. It
// must not be changed after its first use.
type Index []Hit

var _ Engine = Index(nil)

// Search ranks the pages that contain a word of the query in their title or text.
func (x Index) Search(_ context.Context, query string, n int) ([]Hit, error) {
	texts := make([]string, len(x))
	for i, h := range x {
		texts[i] = h.Title + "\n" + h.Snippet + "\n" + h.Text
	}
	scores := byWords(query, texts)
	var hits []Hit
	for _, i := range sorted(scores) {
		if scores[i] > 0 && len(hits) < n {
			hits = append(hits, x[i])
		}
	}
	return hits, nil
}

func (x Index) engineName() string { return "index" }
