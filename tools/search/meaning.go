package search

import (
	"context"
	"math"

	"github.com/pawl-go/pawl/store"
)

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
		x, y := float64(a[i]), float64(b[i])
		ab += x * y
		aa += x * x
		bb += y * y
	}
	return ab / math.Sqrt(aa*bb)
}
