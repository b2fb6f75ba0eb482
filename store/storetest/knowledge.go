package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pawl-go/pawl/store"
)

func knowledgeParts() []part[store.Knowledge] {
	return []part[store.Knowledge]{
		{"life", documentLife},
		{"search", documentSearch},
		{"vectors", documentVectors},
		{"hybrid", documentHybrid},
		{"lists", documentLists},
		{"shared", documentShared},
		{"scopes", func(s *suite[store.Knowledge]) { s.scopes(documentItems(s.db)) }},
		{"property", func(s *suite[store.Knowledge]) { s.property(documentItems(s.db)) }},
		{"ended context", documentEnded},
		{"bad input", documentBad},
	}
}

// documentItems are documents of one chunk.
func documentItems(db store.Knowledge) items {
	return items{
		kind: "document",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			chunks := []store.Chunk{{Text: words, Vector: vector}}
			return only(db.PutDocument(ctx, sc, store.Document{ID: name, Title: words}, chunks))
		},
		remove: db.DeleteDocument,
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			d, err := db.Document(ctx, sc, name)
			if err != nil {
				return "", err
			}
			chunks, err := db.Chunks(ctx, sc, name, 0, 0)
			if err != nil || len(chunks) != 1 || chunks[0].Text != d.Title {
				return "", fmt.Errorf("the chunks of %q are %+v, %v", d.Title, chunks, err)
			}
			return d.Title, nil
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(d store.Document) string { return d.Title })(db.Documents(ctx, sc, store.Page{}))
		},
		find: func(ctx context.Context, sc store.Scope, q store.Query) ([]string, error) {
			return wordsOf(func(h store.ChunkHit) string { return h.Text })(db.SearchChunks(ctx, sc, q))
		},
		vectors: true,
	}
}

func documentLife(s *suite[store.Knowledge]) {
	chunks := []store.Chunk{{Heading: "Leave > Days", Text: "Everybody has twelve days."},
		{Text: "Ask your manager.", Vector: store.Vector{Model: "m", Values: []float32{1, 0.5, -2}}}}
	want := store.Document{
		ID:     "handbook",
		Title:  "Handbook",
		Source: "handbook.md",
		Kind:   "text/markdown",
		Digest: "d1",
		Meta:   []byte(`[1]`),
	}
	d := must(s.db.PutDocument(s.ctx, alice, want, chunks))
	if d.Created.IsZero() || d.Updated.IsZero() {
		s.Errorf("stored as %+v", d)
	}
	want.Chunks = 2
	want.Created = d.Created
	want.Updated = d.Updated
	s.same(want, d)
	s.same(d, must(s.db.Document(s.ctx, alice, "handbook")))
	got := must(s.db.Chunks(s.ctx, alice, "handbook", 0, 0))
	for i := range chunks {
		chunks[i].Document = "handbook"
		chunks[i].Index = i
	}
	s.same(chunks, got)
	if part := must(s.db.Chunks(s.ctx, alice, "handbook", 1, 5)); len(part) != 1 || part[0].ID() != "handbook#1" {
		s.Errorf("from chunk 1: %+v", part)
	}
	again := must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "handbook", Title: "Handbook 2"}, chunks[:1]))
	if !again.Created.Equal(d.Created) || len(must(s.db.Chunks(s.ctx, alice, "handbook", 0, 0))) != 1 {
		s.Errorf("put again: %+v", again)
	}
	if hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: "manager"})); len(hits) > 0 {
		s.Errorf("found what is not in the document any more: %+v", hits)
	}
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "empty"}, nil))
	if list := must(s.db.Documents(s.ctx, alice, store.Page{Limit: 1})); len(list) != 1 || list[0].ID != "empty" {
		s.Errorf("the first document is %+v", list)
	}
	s.ok(s.db.DeleteDocument(s.ctx, alice, "handbook"))
	_, err := s.db.Document(s.ctx, alice, "handbook")
	s.is(err, store.ErrNotFound, "a deleted document")
	_, err = s.db.Chunks(s.ctx, alice, "handbook", 0, 0)
	s.is(err, store.ErrNotFound, "its chunks")
	s.is(s.db.DeleteDocument(s.ctx, alice, "handbook"), store.ErrNotFound, "deleting twice")
}

// putTexts stores texts as documents of one chunk, named by the letters from a on.
func putTexts(s *suite[store.Knowledge], sc store.Scope, texts ...string) {
	for i, text := range texts {
		d := store.Document{ID: string(rune('a' + i)), Title: "T"}
		must(s.db.PutDocument(s.ctx, sc, d, []store.Chunk{{Text: text}}))
	}
}

func ids(hits []store.ChunkHit) string {
	var list []string
	for _, h := range hits {
		list = append(list, h.Document)
	}
	return strings.Join(list, " ")
}

func documentSearch(s *suite[store.Knowledge]) {
	putTexts(s, alice, "The cat sat on the mat.", "A cat, a cat and another cat: three cats.",
		"Dogs chase balls.", "Crème brûlée is a dessert.", "東京の天気は晴れです。", "서울 날씨", "CAT-scan (x-ray) 2026",
		"running runners ran")
	for text, want := range map[string]string{"dog": "c", "dogs": "c", "creme brulee": "d", "CRÈME": "d",
		"東京": "e", "天気": "e", "京天": "", "서울": "f", "2026": "g", "run": "h",
		"nothing like it": "", "": "", "?!": "", `"cat" AND NOT`: "b a g", "cat*": "b a g",
		"text:cat": "b a g", "NEAR(cat mat)": "a b g", "mat cat": "a b g", "' OR 1=1 --": "",
		"balls; drop table chunks": "c", "ball\x00": "c"} {
		got := ids(must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: text})))
		if text == `"cat" AND NOT` && strings.HasPrefix(got, "b") { // "and" is a word as well
			continue
		}
		if a, b := strings.Fields(got), strings.Fields(want); len(a) != len(b) || len(a) > 0 && len(a) < 3 &&
			got != want || len(a) > 0 && a[0] != b[0] {
			s.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
	hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: "cat", Limit: 2}))
	if len(hits) != 2 || hits[0].Score != 1 || hits[1].Score >= 1 || hits[1].Score <= 0 || hits[0].Title != "T" {
		s.Errorf("two hits at most, scored from 1 down: %+v", hits)
	}
	if hits := must(s.db.SearchChunks(s.ctx, alice,
		store.Query{Text: "How is the dessert that we had?"})); ids(hits) != "d" {
		s.Errorf("words that are in every text find %s", ids(hits))
	}
	if hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: "The is a"})); len(hits) != 3 {
		s.Errorf("words that are in every text, alone, find %s", ids(hits))
	}
	long := strings.Repeat("word ", 5000) + "cat"
	must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: long}))
	putTexts(s, bob, "cat", "cat", "cat", "cat")
	for range 3 { // equal scores are in the order of their IDs
		if got := ids(must(s.db.SearchChunks(s.ctx, bob, store.Query{Text: "cat"}))); got != "a b c d" {
			s.Errorf("four equal ones are found as %s", got)
		}
	}
}

func documentVectors(s *suite[store.Knowledge]) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	var chunks []store.Chunk
	for i := range 200 {
		chunks = append(chunks, store.Chunk{Text: fmt.Sprint("chunk ", i), Vector: store.Vector{Model: "m",
			Values: random(16)}})
	}
	chunks = append(chunks, store.Chunk{Text: "of another model", Vector: store.Vector{Model: "other",
		Values: random(16)}},
		store.Chunk{Text: "of another size", Vector: store.Vector{Model: "m", Values: random(8)}},
		store.Chunk{Text: "none"})
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "d"}, chunks))
	for range 20 {
		q := random(16)
		var want []int
		for i := range 200 {
			want = append(want, i)
		}
		sortBy(want, func(i int) float64 { return -cosine(q, chunks[i].Vector.Values) })
		hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Vector: store.Vector{Model: "m", Values: q},
			Limit: 7}))
		var got []int
		for _, h := range hits {
			got = append(got, h.Index)
		}
		s.same(want[:7], got)
	}
	if hits := must(s.db.SearchChunks(s.ctx, bob,
		store.Query{Vector: store.Vector{Model: "m", Values: random(16)}})); len(hits) > 0 {
		s.Errorf("Bob found %d chunks of Alice's", len(hits))
	}
}

// documentHybrid tests that an item in both rankings precedes an item in one.
func documentHybrid(s *suite[store.Knowledge]) {
	v := func(x, y float32) store.Vector { return store.Vector{Model: "m", Values: []float32{x, y}} }
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "words"}, []store.Chunk{{Text: "pawl pawl pawl"}}))
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "meaning"},
		[]store.Chunk{{Text: "a catch for a ratchet", Vector: v(1, 0)}}))
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "both"}, []store.Chunk{{Text: "a pawl is a catch",
		Vector: v(0.9, 0.1)}}))
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "neither"}, []store.Chunk{{Text: "bananas",
		Vector: v(-1, 0)}}))
	hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: "pawl", Vector: v(1, 0)}))
	if ids(hits) != "both meaning words neither" && ids(hits) != "both words meaning neither" {
		s.Errorf("found %s", ids(hits))
	}
	for i := 1; i < len(hits); i++ {
		if hits[i].Score > hits[i-1].Score || hits[i].Score <= 0 {
			s.Errorf("the scores do not fall: %v", hits)
		}
	}
}

func documentLists(s *suite[store.Knowledge]) {
	putTexts(s, alice, "one", "two", "three")
	for _, row := range []struct {
		page store.Page
		want string
	}{
		{store.Page{}, "a b c"},
		{store.Page{Limit: 2}, "a b"},
		{store.Page{After: "a"}, "b c"},
		{store.Page{After: "a", Limit: 1}, "b"},
	} {
		got := must(wordsOf(func(d store.Document) string { return d.ID })(s.db.Documents(s.ctx, alice, row.page)))
		if is := strings.Join(got, " "); is != row.want {
			s.Errorf("%+v: %q, want %q", row.page, is, row.want)
		}
	}
}

// documentShared tests that a search with Query.Shared finds the documents of the scope and the
// documents that its tenant shares, and that each hit says whether it belongs to another scope.
func documentShared(s *suite[store.Knowledge]) {
	all := similarScopes()
	i := documentItems(s.db)
	for _, sc := range all {
		s.ok(i.put(s.ctx, sc, "d", where(sc)))
	}
	for _, sc := range all {
		want := held(sc, all)
		others := !sc.Holds(sc.Shared())
		for _, o := range all {
			if others && o == sc.Shared() {
				want = append(want, where(o))
			}
		}
		for _, q := range i.queries() {
			q.Shared = true
			s.finds(i, sc, q, want)
			for _, h := range must(s.db.SearchChunks(s.ctx, sc, q)) {
				if other := others && h.Title == where(sc.Shared()); h.Shared != other {
					s.Errorf("from %s the document of %s is shared: %v, want %v", where(sc), h.Title, h.Shared, other)
				}
			}
		}
	}
}

// documentEnded tests that a context that has ended changes nothing.
func documentEnded(s *suite[store.Knowledge]) {
	ctx := s.ended()
	err := only(s.db.PutDocument(ctx, alice, store.Document{ID: "d"}, []store.Chunk{{Text: "x"}}))
	if !errors.Is(err, context.Canceled) {
		s.Errorf("put: %v", err)
	}
	if _, err := s.db.SearchChunks(ctx, alice, store.Query{Text: "x"}); !errors.Is(err, context.Canceled) {
		s.Errorf("search: %v", err)
	}
	_, err = s.db.Document(s.ctx, alice, "d")
	s.is(err, store.ErrNotFound, "an item that was not stored")
}

func documentBad(s *suite[store.Knowledge]) {
	put := func(d store.Document, chunks ...store.Chunk) error {
		return only(s.db.PutDocument(s.ctx, alice, d, chunks))
	}
	s.refused(put(store.Document{}), "a document without an ID")
	s.refused(put(store.Document{ID: "a\x00b"}), "an ID with a NUL")
	s.refused(put(store.Document{ID: "d", Meta: []byte("{")}), "a meta that is not JSON")
	s.refused(put(store.Document{ID: "d"}, store.Chunk{Vector: store.Vector{Values: []float32{1}}}),
		"a vector without a model")
	list := func(sc store.Scope) error { return only(s.db.Documents(s.ctx, sc, store.Page{})) }
	s.refused(list(store.Scope{Tenant: strings.Repeat("t", 257)}), "a long tenant")
	s.refused(list(store.Scope{User: "\xff"}), "a user that is no UTF-8")
	search := func(v store.Vector) error { return only(s.db.SearchChunks(s.ctx, alice, store.Query{Vector: v})) }
	s.refused(search(store.Vector{Model: "m", Values: []float32{0, 0}}), "a vector without a direction")
	s.refused(search(store.Vector{Model: "m"}), "a vector without values")
}
