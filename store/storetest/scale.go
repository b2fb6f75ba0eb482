package storetest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
)

// Scale prints, under -v, the duration of searches among many chunks. It fails if they do not find
// the result of an exhaustive search, by BM25 for words and by the cosine for vectors.
// PAWL_SCALE=100000 creates that many chunks, of 384 dimensions each, which takes minutes. db must
// be empty. Scale does not close it.
func Scale(t *testing.T, db store.Store) {
	chunks := 1000
	dimensions := 16
	times := 5
	if n, err := strconv.Atoi(os.Getenv("PAWL_SCALE")); err == nil {
		chunks = n
		dimensions = 384
		times = 20
	}
	other := store.Scope{User: "other"}
	c := newCorpus(dimensions)
	began := time.Now()
	const each = 1000
	for at := 0; at < chunks; at += each {
		if _, err := db.PutDocument(t.Context(), alice, store.Document{ID: fmt.Sprintf("doc%06d", at/each)},
			c.make(min(each, chunks-at))); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d chunks of %d dimensions stored in %v", chunks, dimensions, time.Since(began).Round(time.Millisecond))
	noise := newCorpus(dimensions)
	if _, err := db.PutDocument(t.Context(), other, store.Document{ID: "doc"}, noise.make(each/5)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what  string
		words func(i int) []int32
		also  bool // with a vector
	}{
		{"a rare word", func(i int) []int32 { return []int32{rare(i)} }, false},
		{"four words, three of them common", func(i int) []int32 { return []int32{1, 7, 30, rare(i)} }, false},
		{"three common words", func(i int) []int32 { return []int32{7, 20 + int32(i), 60} }, false},
		{"three words of most texts", func(i int) []int32 { return []int32{0, 1, 2 + int32(i%2)} }, false},
		{"six words of a question", func(i int) []int32 { return []int32{3, 9, 40, 200 + int32(i), 900, 2500} }, false},
		{"a vector", nil, true},
		{"two words and a vector", func(i int) []int32 { return []int32{7, rare(i)} }, true},
	} {
		measure(t, db, c, times, row.what, row.words, row.also)
	}
}

func rare(i int) int32 { return -1 - int32(i) }

// measure runs that many searches. Searches with words and a vector are only timed, because their
// best result depends on the fusion.
func measure(t *testing.T, db store.Store, c *corpus, times int, what string, words func(i int) []int32, vector bool) {
	const limit = 10
	var took []time.Duration
	found := 0
	wanted := 0
	for i := range times {
		q := store.Query{Limit: limit}
		var best map[string]float64
		if words != nil {
			for _, w := range words(i) {
				q.Text += wordOf(w) + " "
			}
			if !vector {
				best = c.ranked(words(i)...)
			}
		}
		if vector {
			q.Vector = store.Vector{Model: "m", Values: c.vector()}
			if words == nil {
				best = c.near(q.Vector.Values)
			}
		}
		began := time.Now()
		hits, err := db.SearchChunks(t.Context(), alice, q)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		f, w := among(hits, best, limit)
		found, wanted = found+f, wanted+w
	}
	slices.Sort(took)
	recall := ""
	if wanted > 0 {
		recall = fmt.Sprintf(", recall@%d %.3f", limit, float64(found)/float64(wanted))
		// FTS5 also counts the texts of other scopes, which changes the order of a few nearly equal
		// hits
		if float64(found) < 0.97*float64(wanted) {
			t.Errorf("%s: %d of the %d best are found", what, found, wanted)
		}
	}
	t.Logf("%-33s median %v, slowest of %d %v%s", what, took[len(took)/2].Round(10*time.Microsecond), len(took),
		took[len(took)-1].Round(10*time.Microsecond), recall)
}
