package search

import (
	"context"
	"slices"
)

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
	var found []int
	for i, s := range scores {
		if s > 0 {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return descending(scores[a], scores[b]) })
	var hits []Hit
	for _, i := range found[:min(n, len(found))] {
		hits = append(hits, x[i])
	}
	return hits, nil
}

func (x Index) engineName() string { return "index" }
