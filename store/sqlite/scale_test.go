package sqlite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
)

// How long searches take among many chunks, and whether they find what a search of everything finds. PAWL_SCALE=100000 makes as many chunks, of 384
// dimensions each; it takes minutes. The figures are printed with -v.
func TestScale(t *testing.T) {
	chunks, dimensions := 2000, 32
	if n, err := strconv.Atoi(os.Getenv("PAWL_SCALE")); err == nil {
		chunks, dimensions = n, 384
	}
	path := filepath.Join(t.TempDir(), "scale.db")
	db := open(t, path)
	defer db.Close()
	alice, other := store.Scope{User: "alice"}, store.Scope{User: "other"}
	c := newCorpus(dimensions)
	began := time.Now()
	const each = 1000
	for at := 0; at < chunks; at += each {
		if _, err := db.PutDocument(t.Context(), alice, store.Document{ID: fmt.Sprintf("doc%06d", at/each)}, c.make(min(each, chunks-at))); err != nil {
			t.Fatal(err)
		}
	}
	noise := newCorpus(dimensions)
	if _, err := db.PutDocument(t.Context(), other, store.Document{ID: "doc"}, noise.make(each)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d chunks of %d dimensions kept in %v, %d MiB", chunks, dimensions, time.Since(began).Round(time.Millisecond), info.Size()>>20)
	const limit = 10
	search := func(q store.Query) ([]store.ChunkHit, time.Duration) {
		t.Helper()
		q.Limit = limit
		began := time.Now()
		hits, err := db.SearchChunks(t.Context(), alice, q)
		if err != nil {
			t.Fatal(err)
		}
		return hits, time.Since(began)
	}
	var rare, common, meaning, both []time.Duration
	found, wanted := 0, 0
	for i := range 20 {
		word := fmt.Sprintf("rare%d", i)
		hits, took := search(store.Query{Text: word})
		rare = append(rare, took)
		all := c.with(word)
		if want := min(limit, len(all)); len(hits) != want {
			t.Errorf("%s is in %d chunks, and %d are found", word, len(all), len(hits))
		}
		for _, h := range hits {
			if !all[h.ID()] {
				t.Errorf("%s is not in %s, which is found", word, h.ID())
			}
		}
		_, took = search(store.Query{Text: "word1 word7 word30 " + word})
		common = append(common, took)

		q := store.Vector{Model: "m", Values: c.vector()}
		hits, took = search(store.Query{Vector: q})
		meaning = append(meaning, took)
		want := c.nearest(q.Values, limit)
		wanted += len(want)
		for _, h := range hits {
			if slices.Contains(want, h.ID()) {
				found++
			}
		}
		_, took = search(store.Query{Text: "word7 " + word, Vector: q})
		both = append(both, took)
	}
	for _, row := range []struct {
		what string
		took []time.Duration
	}{{"a rare word", rare}, {"four words, three of them common", common}, {"a vector", meaning}, {"words and a vector", both}} {
		slices.Sort(row.took)
		t.Logf("%-34s median %v, slowest of %d %v", row.what, row.took[len(row.took)/2].Round(10*time.Microsecond), len(row.took), row.took[len(row.took)-1].Round(10*time.Microsecond))
	}
	t.Logf("recall@%d of vectors against a search of everything: %.3f", limit, float64(found)/float64(wanted))
	if found < wanted*99/100 { // two that are equally near may change places
		t.Errorf("%d of the %d nearest vectors are found", found, wanted)
	}
}

// corpus is chunks of words that are as common as words are, and of vectors in clusters.
type corpus struct {
	rng        *rand.Rand
	zipf       *rand.Zipf
	dimensions int
	chunks     []store.Chunk
	centres    [][]float32
}

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

func (c *corpus) make(n int) []store.Chunk {
	from := len(c.chunks)
	for i := from; i < from+n; i++ {
		var b strings.Builder
		for range 120 {
			fmt.Fprintf(&b, "word%d ", c.zipf.Uint64())
		}
		if i%131 == 0 {
			fmt.Fprintf(&b, "rare%d", i/131%40)
		}
		c.chunks = append(c.chunks, store.Chunk{Document: fmt.Sprintf("doc%06d", i/1000), Index: i % 1000, Text: b.String(), Vector: store.Vector{Model: "m", Values: c.vector()}})
	}
	return c.chunks[from:]
}

// with are the IDs of chunks that end with a word.
func (c *corpus) with(word string) map[string]bool {
	out := map[string]bool{}
	for i := range c.chunks {
		if strings.HasSuffix(c.chunks[i].Text, " "+word) {
			out[c.chunks[i].ID()] = true
		}
	}
	return out
}

// nearest looks at every vector.
func (c *corpus) nearest(q []float32, limit int) []string {
	type near struct {
		id    string
		angle float64
	}
	all := make([]near, len(c.chunks))
	for i := range c.chunks {
		var dot, a, b float64
		for j, x := range c.chunks[i].Vector.Values {
			dot, a, b = dot+float64(x)*float64(q[j]), a+float64(x)*float64(x), b+float64(q[j])*float64(q[j])
		}
		all[i] = near{angle: dot / math.Sqrt(a*b), id: strconv.Itoa(i)}
	}
	slices.SortFunc(all, func(a, b near) int {
		switch {
		case a.angle > b.angle:
			return -1
		case a.angle < b.angle:
			return 1
		}
		return 0
	})
	var out []string
	for _, n := range all[:min(limit, len(all))] {
		i, _ := strconv.Atoi(n.id) // it was made of a number
		out = append(out, c.chunks[i].ID())
	}
	return out
}
