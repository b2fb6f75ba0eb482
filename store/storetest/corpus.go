package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/store"
)

// corpus is a set of chunks with a realistic word frequency and with vectors in clusters.
type corpus struct {
	rng        *rand.Rand
	zipf       *rand.Zipf
	dimensions int
	chunks     []store.Chunk
	words      [][]int32 // words of each chunk; rare words are negative
	centres    [][]float32
}

const wordsOfChunk = 120

func newCorpus(dimensions int) *corpus {
	rng := rand.New(rand.NewPCG(1, 2))
	c := &corpus{rng: rng, zipf: rand.NewZipf(rng, 1.1, 8, 50_000), dimensions: dimensions}
	for range 50 {
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		c.centres = append(c.centres, v)
	}
	return c
}

func (c *corpus) vector() []float32 {
	v := slices.Clone(c.centres[c.rng.IntN(len(c.centres))])
	for i := range v {
		v[i] += float32(c.rng.NormFloat64())
	}
	return v
}

// make adds chunks and returns them. Every 131st chunk contains one of forty rare words, and the
// number of words varies by a tenth.
func (c *corpus) make(n int) []store.Chunk {
	from := len(c.chunks)
	for i := from; i < from+n; i++ {
		var words []int32
		for range wordsOfChunk - 12 + c.rng.IntN(24) {
			words = append(words, int32(c.zipf.Uint64()))
		}
		if i%131 == 0 {
			words = append(words, -1-int32(i/131%40))
		}
		var b strings.Builder
		for _, w := range words {
			fmt.Fprintf(&b, "%s ", wordOf(w))
		}
		c.words = append(c.words, words)
		c.chunks = append(c.chunks, store.Chunk{Document: fmt.Sprintf("doc%06d", i/1000), Index: i % 1000,
			Text: b.String(), Vector: store.Vector{Model: "m", Values: c.vector()}})
	}
	return c.chunks[from:]
}

func wordOf(w int32) string {
	if w < 0 {
		return fmt.Sprintf("rare%d", -1-w)
	}
	return fmt.Sprintf("word%d", w)
}

// ranked scores every chunk for words by BM25, as in SQLite's documentation of FTS5.
func (c *corpus) ranked(words ...int32) map[string]float64 {
	mean := 0.0
	with := make([]float64, len(words))
	times := make([][]float64, len(c.words))
	for i, all := range c.words {
		mean += float64(len(all)) / float64(len(c.words))
		times[i] = make([]float64, len(words))
		for j, w := range words {
			for _, x := range all {
				if x == w {
					times[i][j]++
				}
			}
			with[j] += min(1, times[i][j])
		}
	}
	scores := map[string]float64{}
	for i, all := range c.words {
		score := 0.0
		for j, f := range times[i] {
			weight := max(1e-6, math.Log((float64(len(c.words))-with[j]+0.5)/(with[j]+0.5)))
			score += weight * f * 2.2 / (f + 1.2*(1-0.75+0.75*float64(len(all))/mean))
		}
		if score > 0 {
			scores[c.chunks[i].ID()] = score
		}
	}
	return scores
}

// near scores every chunk by the cosine.
func (c *corpus) near(q []float32) map[string]float64 {
	scores := map[string]float64{}
	for i := range c.chunks {
		scores[c.chunks[i].ID()] = 1 + cosine(q, c.chunks[i].Vector.Values)
	}
	return scores
}

// among counts the hits that are among the best of an exhaustive search, and the number of these
// best. A hit that equals the last of them, except for rounding, counts.
func among(hits []store.ChunkHit, scores map[string]float64, limit int) (found, wanted int) {
	all := make([]float64, 0, len(scores))
	for _, s := range scores {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b float64) int { return cmp.Compare(b, a) })
	wanted = min(limit, len(all))
	if wanted == 0 {
		return 0, 0
	}
	last := all[wanted-1]
	for _, h := range hits {
		if s, ok := scores[h.ID()]; ok && s >= last-1e-4*math.Abs(last) {
			found++
		}
	}
	return found, wanted
}
