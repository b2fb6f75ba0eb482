package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

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
		to := from + batch(texts[from:])
		vectors, err := ask(ctx, texts[from:to])
		if err != nil {
			return nil, inBatch(err, from, to, len(texts))
		}
		all = append(all, vectors...)
		// A server that was changed between two batches may answer with another model. Vectors of
		// two sizes cannot be compared.
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

// batch returns how many of texts are sent together. A text that is too large for a batch is sent
// alone, and the server decides about it.
func batch(texts []string) int {
	size := 0
	for n, t := range texts {
		size += len(t)
		if n == batchTexts || n > 0 && size > batchBytes {
			return n
		}
	}
	return len(texts)
}

// Vectors returns the want vectors that an answer lists as raw JSON. nil means that it lists none,
// and a nil element that it has no vector.
func Vectors(provider string, answer []byte, raw []json.RawMessage, want int) ([][]float32, error) {
	if raw == nil {
		return nil, Broken(provider, "the answer is no list of vectors: %s", Excerpt(answer))
	}
	out := make([][]float32, len(raw))
	for i := range raw {
		var fault string
		out[i], fault = vector(raw[i])
		if fault != "" {
			return nil, Broken(provider, "vector %d: %s", i, fault)
		}
	}
	if len(out) != want {
		return nil, Broken(provider, "%d vectors came for %d texts", len(out), want)
	}
	return out, nil
}

// vector reads one vector. It has a fault if it is not a list, if the list is empty or all zero, or
// if an element does not fit a float32.
func vector(raw []byte) (out []float32, fault string) {
	var list []any
	err := json.Unmarshal(raw, &list)
	switch {
	case raw == nil:
		return nil, "there is no vector"
	case err != nil || list == nil:
		return nil, "it is no list of numbers, or one of them is out of range"
	}
	// Similarity is an angle, which a vector of zeros does not have. Such a vector comes from a
	// server with a fault.
	zero := true
	for i, v := range list {
		f, ok := v.(float64)
		x := float32(f)
		switch {
		case !ok:
			return nil, fmt.Sprintf("value %d of a vector is no number", i)
		case math.IsInf(float64(x), 0):
			return nil, fmt.Sprintf("value %d of a vector is out of range", i)
		}
		zero = zero && x == 0
		out = append(out, x)
	}
	if zero {
		return nil, fmt.Sprintf("a vector of %d values has no direction", len(out))
	}
	return out, ""
}
