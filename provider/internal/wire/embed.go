package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// These are the limits of one embedding request. 64 chunks of text stay far below the limits of
// all providers. A batch of long texts holds fewer.
const (
	batchTexts = 64
	batchBytes = 256 << 10
)

// Embed returns the vectors of texts. It calls ask for one batch after another; ask returns the
// vectors of its batch, in order. Embed returns a *llm.ProviderError if a text is empty, if
// vectors are missing or too many, or if their sizes differ. Errors count texts from 0.
func Embed(ctx context.Context, provider string, texts []string,
	ask func(ctx context.Context, batch []string) ([][]float32, error)) ([][]float32, error) {
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			return nil, Invalid(provider, "input", "text %d is empty; an empty text has no vector", i)
		}
	}
	all := make([][]float32, 0, len(texts))
	for len(all) < len(texts) {
		from := len(all)
		to, size := from, 0
		for to < len(texts) && to-from < batchTexts && (to == from || size+len(texts[to]) <= batchBytes) {
			size += len(texts[to])
			to++
		}
		vectors, err := ask(ctx, texts[from:to])
		if err != nil {
			return nil, inBatch(err, from, to, len(texts))
		}
		all = append(all, vectors...)
		for i := from; i < to; i++ {
			if len(all[i]) != len(all[0]) {
				return nil, Broken(provider, "text %d has a vector of %d values, text 0 one of %d", i, len(all[i]), len(all[0]))
			}
		}
	}
	return all, nil
}

// inBatch adds the texts of the failed request to err, if there were several.
func inBatch(err error, from, to, all int) error {
	var e *llm.ProviderError
	if all == 1 || !errors.As(err, &e) {
		return err
	}
	also := *e
	also.Message += fmt.Sprintf(" (texts %d to %d)", from, to-1)
	return &also
}

// Vectors reads a list of want vectors. item reads one element of the list.
func Vectors(provider string, c *jsonscan.Cursor, want int,
	item func(*jsonscan.Cursor) ([]float32, error)) ([][]float32, error) {
	var out [][]float32
	for c.Array(); c.More(); {
		v, err := item(c)
		var e *llm.ProviderError
		if errors.As(err, &e) {
			e.Message = fmt.Sprintf("vector %d: %s", len(out), e.Message)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if len(out) != want {
		return nil, Broken(provider, "%d vectors came for %d texts", len(out), want)
	}
	return out, nil
}

// Vector reads one vector. It returns an error if the value is not a list, if the list is empty or
// all zero, or if an element does not fit a float32.
func Vector(provider string, c *jsonscan.Cursor) ([]float32, error) {
	if c.Kind() != jsonscan.Array {
		return nil, Broken(provider, "a vector is no list of numbers")
	}
	var out []float32
	zero := true
	for c.Array(); c.More(); {
		if c.Kind() != jsonscan.Number {
			return nil, Broken(provider, "value %d of a vector is no number", len(out))
		}
		f, ok := c.Float()
		x := float32(f)
		if !ok || math.IsNaN(f) || math.IsInf(float64(x), 0) {
			return nil, Broken(provider, "value %d of a vector is out of range", len(out))
		}
		zero = zero && x == 0
		out = append(out, x)
	}
	if zero {
		return nil, Broken(provider, "a vector of %d values has no direction", len(out))
	}
	return out, nil
}
