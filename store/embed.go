package store

import (
	"context"
	"fmt"
)

// Embedder makes vectors of texts, so that they are found by their meaning. provider.OpenEmbedder opens real ones. It may be used concurrently.
type Embedder interface {
	// Name names the model, as Vector.Model keeps it. Another name is another space: vectors are compared under one name only.
	Name() string
	// Embed returns a vector for each text, in their order, all of one size. However many texts there are: it sends them in parts.
	Embed(ctx context.Context, use Use, texts []string) ([][]float32, error)
}

// Use says what a text is embedded for. Some models make other vectors of a question than of what answers it.
type Use int

// The uses.
const (
	ForDocument Use = iota // to be found
	ForQuery               // to find with
)

// Embed returns the vectors of texts. What e gives is checked, whoever made it: as many vectors as texts, each a direction (Vector.Check), all of one
// size.
func Embed(ctx context.Context, e Embedder, use Use, texts ...string) ([]Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all, err := e.Embed(ctx, use, texts)
	if err != nil {
		return nil, err
	}
	if len(all) != len(texts) {
		return nil, fmt.Errorf("%s: %d vectors came for %d texts", e.Name(), len(all), len(texts))
	}
	out := make([]Vector, len(all))
	for i, values := range all {
		out[i] = Vector{Model: e.Name(), Values: values}
		if len(values) == 0 {
			return nil, fmt.Errorf("text %d: %s made an empty vector of it", i, e.Name())
		}
		if err := out[i].Check(); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
		if len(values) != len(all[0]) {
			return nil, fmt.Errorf("text %d: its vector by %s has %d values, that of the first text has %d", i, e.Name(), len(values), len(all[0]))
		}
	}
	return out, nil
}
