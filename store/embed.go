package store

import (
	"context"
	"fmt"
)

// Embedder computes vectors of texts, by which texts are found by meaning. provider.OpenEmbedder
// opens embedding services. An Embedder must be safe for concurrent use.
type Embedder interface {
	// Name identifies the model; it is stored in Vector.Model. Only vectors with the same name are
	// compared.
	Name() string
	// Embed returns one vector for each text, in order, all of one size. There is no limit for the
	// number of texts; Embed sends them in batches.
	Embed(ctx context.Context, use Use, texts []string) ([][]float32, error)
}

// Use is the purpose of an embedding. Some models compute different vectors for questions and for
// documents.
type Use int

// The uses.
const (
	ForDocument Use = iota // to be found by a search
	ForQuery               // to search with
)

// Embed returns the vectors of texts. It checks the result of any e: one vector for each text, each
// valid (Vector.Check), all of one size.
func Embed(ctx context.Context, e Embedder, use Use, texts ...string) ([]Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all, err := e.Embed(ctx, use, texts)
	if err != nil {
		return nil, err
	}
	if len(all) != len(texts) {
		return nil, fmt.Errorf("%s: got %d vectors for %d texts", e.Name(), len(all), len(texts))
	}

	out := make([]Vector, len(all))
	for i, values := range all {
		out[i] = Vector{Model: e.Name(), Values: values}
		if len(values) == 0 {
			return nil, fmt.Errorf("text %d: %s returned an empty vector for it", i, e.Name())
		}
		if err := out[i].Check(); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
		if len(values) != len(all[0]) {
			return nil, fmt.Errorf("text %d: its vector by %s has %d values, and the vector of the first text has %d",
				i, e.Name(), len(values), len(all[0]))
		}
	}
	return out, nil
}
