package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

func (s *suite) documents() {
	chunks := []store.Chunk{{Heading: "Leave > Days", Text: "Everybody has twelve days."}, {Text: "Ask your manager.", Vector: store.Vector{Model: "m", Values: []float32{1, 0.5, -2}}}}
	d := must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "handbook", Title: "Handbook", Source: "handbook.md",
		Kind: "text/markdown", Digest: "d1", Meta: []byte(`[1]`)}, chunks))
	if d.Chunks != 2 || d.Created.IsZero() {
		s.Errorf("stored as %+v", d)
	}
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

// put stores texts as documents of one chunk, named by the letters from a on.
func (s *suite) put(sc store.Scope, texts ...string) {
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

func (s *suite) search() {
	s.put(alice, "The cat sat on the mat.", "A cat, a cat and another cat: three cats.", "Dogs chase balls.", "Crème brûlée is a dessert.", "東京の天気は晴れです。", "서울 날씨", "CAT-scan (x-ray) 2026", "running runners ran")
	for text, want := range map[string]string{"dog": "c", "dogs": "c", "creme brulee": "d", "CRÈME": "d", "東京": "e", "天気": "e", "京天": "", "서울": "f", "2026": "g", "run": "h",
		"nothing like it": "", "": "", "?!": "", `"cat" AND NOT`: "b a g", "cat*": "b a g", "text:cat": "b a g", "NEAR(cat mat)": "a b g", "mat cat": "a b g", "' OR 1=1 --": "", "balls; drop table chunks": "c", "ball\x00": "c"} {
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
	if hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: "How is the dessert that we had?"})); ids(hits) != "d" {
		s.Errorf("words that are in every text find %s", ids(hits))
	}
	if hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: "The is a"})); len(hits) != 3 {
		s.Errorf("words that are in every text, alone, find %s", ids(hits))
	}
	long := strings.Repeat("word ", 5000) + "cat"
	must(s.db.SearchChunks(s.ctx, alice, store.Query{Text: long}))
	s.put(bob, "cat", "cat", "cat", "cat")
	for range 3 { // equal scores are in the order of their IDs
		if got := ids(must(s.db.SearchChunks(s.ctx, bob, store.Query{Text: "cat"}))); got != "a b c d" {
			s.Errorf("four equal ones are found as %s", got)
		}
	}
}

func (s *suite) vectors() {
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
		chunks = append(chunks, store.Chunk{Text: fmt.Sprint("chunk ", i), Vector: store.Vector{Model: "m", Values: random(16)}})
	}
	chunks = append(chunks, store.Chunk{Text: "of another model", Vector: store.Vector{Model: "other", Values: random(16)}},
		store.Chunk{Text: "of another size", Vector: store.Vector{Model: "m", Values: random(8)}}, store.Chunk{Text: "none"})
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "d"}, chunks))
	for range 20 {
		q := random(16)
		var want []int
		for i := range 200 {
			want = append(want, i)
		}
		sortBy(want, func(i int) float64 { return -cosine(q, chunks[i].Vector.Values) })
		hits := must(s.db.SearchChunks(s.ctx, alice, store.Query{Vector: store.Vector{Model: "m", Values: q}, Limit: 7}))
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

// hybrid tests that an item in both rankings precedes an item in one.
func (s *suite) hybrid() {
	v := func(x, y float32) store.Vector { return store.Vector{Model: "m", Values: []float32{x, y}} }
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "words"}, []store.Chunk{{Text: "pawl pawl pawl"}}))
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "meaning"}, []store.Chunk{{Text: "a catch for a ratchet", Vector: v(1, 0)}}))
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "both"}, []store.Chunk{{Text: "a pawl is a catch", Vector: v(0.9, 0.1)}}))
	must(s.db.PutDocument(s.ctx, alice, store.Document{ID: "neither"}, []store.Chunk{{Text: "bananas", Vector: v(-1, 0)}}))
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

func (s *suite) memories() {
	from := store.Source{Kind: "model", By: "said so", Run: "r", Key: "run/1/0", Outside: true, Unconfirmed: true}
	m, added, err := s.db.AddMemory(s.ctx, alice,
		store.Memory{Text: "Likes tea.", Source: from, Vector: store.Vector{Model: "m", Values: []float32{1, 1}}})
	s.ok(err)
	if !added || m.ID == "" || m.Created.IsZero() {
		s.Errorf("added %v: %+v", added, m)
	}
	s.same(m, must(s.db.Memory(s.ctx, alice, m.ID)))
	for _, step := range []struct{ said, want store.Source }{
		{store.Source{By: "less", Unconfirmed: true}, from}, // it adds nothing
		{store.Source{Kind: "user"}, store.Source{Kind: "user"}},
		{store.Source{By: "other"}, store.Source{Kind: "user"}},
		{store.Source{By: "owner", Always: true}, store.Source{By: "owner", Always: true}},
	} {
		old, added, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: " likes  (TEA)\n", Source: step.said})
		s.ok(err)
		if added || old.ID != m.ID || old.Source != step.want {
			s.Errorf("the same again is %+v, added %v", old, added)
		}
		s.same(old, must(s.db.Memory(s.ctx, alice, m.ID)))
	}
	if _, added, err := s.db.AddMemory(s.ctx, bob, store.Memory{Text: "Likes tea."}); err != nil || !added {
		s.Errorf("Bob likes tea too: added %v, %v", added, err)
	}
	own, added, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "Likes tea.", Source: store.Source{Agent: "clerk"}})
	s.ok(err)
	again, twice, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: own.Text, Source: own.Source})
	s.ok(err)
	if !added || own.ID == m.ID || twice || again.ID != own.ID {
		s.Errorf("a memory of one agent is that of all agents, or is stored twice: %+v, %v", own, added)
	}
	s.ok(s.db.ForgetMemory(s.ctx, alice, own.ID))
	for _, when := range []struct {
		said    store.Source
		at      time.Time
		younger bool
	}{
		{store.Source{}, m.Created.Add(time.Hour), true}, {store.Source{}, m.Created.Add(-time.Hour), false},
		{store.Source{Unconfirmed: true}, m.Created.Add(2 * time.Hour), false},
	} {
		before := must(s.db.Memory(s.ctx, alice, m.ID)).Created
		old, _, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "likes tea", Source: when.said, Created: when.at})
		s.ok(err)
		if old.Created.After(before) != when.younger {
			s.Errorf("stored again at %v it is of %v, before of %v", when.at, old.Created, before)
		}
		s.same(old, must(s.db.Memory(s.ctx, alice, m.ID)))
	}
	for i := range 5 {
		_, _, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: fmt.Sprint("fact ", i)})
		s.ok(err)
	}
	list := must(s.db.Memories(s.ctx, alice, store.Page{Limit: 3}))
	rest := must(s.db.Memories(s.ctx, alice, store.Page{After: list[2].ID}))
	if len(list) != 3 || len(rest) != 3 || list[1].Text != "fact 0" || rest[2].Text != "fact 4" {
		s.Errorf("%+v and %+v are not the six in their order", list, rest)
	}
	if hits := must(s.db.SearchMemories(s.ctx, alice, store.Query{Text: "tea"})); len(hits) != 1 ||
		hits[0].ID != m.ID || hits[0].Score != 1 {
		s.Errorf("tea finds %+v", hits)
	}
	s.is(s.db.ForgetMemory(s.ctx, bob, m.ID), store.ErrNotFound, "Bob forgets for Alice")
	s.ok(s.db.ForgetMemory(s.ctx, alice, m.ID))
	if hits := must(s.db.SearchMemories(s.ctx, alice,
		store.Query{Text: "tea", Vector: store.Vector{Model: "m", Values: []float32{1, 1}}})); len(hits) > 0 {
		s.Errorf("found what was forgotten: %+v", hits)
	}
	if again, _, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "Likes tea."}); err != nil || again.ID == m.ID {
		s.Errorf("learnt again it is %+v, %v; an ID is not used twice", again, err)
	}
}

// summaries of conversations: one each, which goes with its thread.
func (s *suite) summaries() {
	about := func(thread, text, agent string) store.Memory {
		m, _, err := s.db.AddMemory(s.ctx, alice,
			store.Memory{Text: text, Source: store.Source{Thread: thread, Agent: agent}})
		s.ok(err)
		return m
	}
	for _, id := range []string{"t1", "t2"} {
		must(s.db.PutThread(s.ctx, alice, store.Thread{ID: id}))
		about(id, "About apples.", "")
	}
	fact, added, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "About apples."})
	s.ok(err)
	if !added {
		s.Errorf("a fact with the text of a summary is %+v", fact)
	}
	old, _, err := s.db.AddMemory(s.ctx, bob, store.Memory{Text: "About plums.", Source: store.Source{Thread: "t1"}})
	s.ok(err)
	first := about("t1", "About pears.", "")
	next, added, err := s.db.AddMemory(s.ctx, alice,
		store.Memory{Text: "About pears.", Source: store.Source{Thread: "t1", Agent: "clerk"}})
	s.ok(err)
	if added || next.Text != "About pears." || next.ID == first.ID {
		s.Errorf("the next summary is %+v, added %v", next, added)
	}
	list := must(s.db.Memories(s.ctx, alice, store.Page{}))
	if len(list) != 3 || list[0].Source.Thread != "t2" || list[1].ID != fact.ID {
		s.Errorf("after four summaries of two threads there are %+v", list)
	}
	s.same(next, list[2])
	for text, n := range map[string]int{"apples": 2, "pears": 1, "plums": 0} {
		if hits := must(s.db.SearchMemories(s.ctx, alice, store.Query{Text: text})); len(hits) != n {
			s.Errorf("%s finds %+v", text, hits)
		}
	}
	s.ok(s.db.DeleteThread(s.ctx, alice, "t1"))
	list = must(s.db.Memories(s.ctx, alice, store.Page{}))
	if len(list) != 2 || list[0].Source.Thread != "t2" || list[1].ID != fact.ID {
		s.Errorf("without the thread t1 there are %+v", list)
	}
	s.same(old, must(s.db.Memory(s.ctx, bob, old.ID)))
}

// confirmed is what a person has seen: a memory that was forgotten or replaced in between stays
// gone, also if both happen at once.
func (s *suite) confirmed() {
	for i := range 40 {
		m, _, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: fmt.Sprint("claim ", i),
			Source: store.Source{Unconfirmed: true, Thread: strings.Repeat("t", i%2)}})
		s.ok(err)
		yes := m
		done := make(chan error)
		yes.Source.Unconfirmed = false
		go func() { done <- s.db.ForgetMemory(s.ctx, alice, m.ID) }()
		_, added, err := s.db.AddMemory(s.ctx, alice, yes)
		s.ok(<-done)
		if _, again, gone := s.db.AddMemory(s.ctx, alice, yes); added || again || !errors.Is(gone, store.ErrNotFound) ||
			err != nil && !errors.Is(err, store.ErrNotFound) {
			s.Errorf("confirmed while it is forgotten: %v; afterwards: %v; added %v, %v", err, gone, added, again)
		}
		s.is(second(s.db.AddMemory(s.ctx, bob, m)), store.ErrNotFound, "Bob confirms for Alice")
	}
	if list := must(s.db.Memories(s.ctx, alice, store.Page{})); len(list) > 0 {
		s.Errorf("%d forgotten memories are stored again: %+v", len(list), list[0])
	}
	// The control: without the ID, the same text is a new memory.
	if _, added, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "claim 0"}); err != nil || !added {
		s.Errorf("a text without an ID is not stored: %v", err)
	}
}

func (s *suite) skills() {
	k := must(s.db.PutSkill(s.ctx, alice, store.Skill{Name: "brew", Description: "Makes coffee.",
		Text: "Grind, pour, wait.", Tags: []string{"kitchen"}, Tools: []string{"kettle"}, Model: "m", References: []string{"tea"}, By: "alice"}))
	if k.Version != 1 {
		s.Errorf("a new skill has version %d", k.Version)
	}
	_, err := s.db.PutSkill(s.ctx, alice, store.Skill{Name: "brew", Text: "x"})
	s.is(err, store.ErrConflict, "a second one of that name")
	k.Text = "Grind finely, pour, wait."
	k2 := must(s.db.PutSkill(s.ctx, alice, k))
	if k2.Version != 2 || !k2.Created.Equal(k.Created) {
		s.Errorf("changed it is %+v", k2)
	}
	_, err = s.db.PutSkill(s.ctx, alice, k)
	s.is(err, store.ErrConflict, "a change to an old version")
	_, err = s.db.PutSkill(s.ctx, alice, store.Skill{Name: "none", Text: "x", Version: 3})
	s.is(err, store.ErrNotFound, "a change to none")
	if first := must(s.db.Skill(s.ctx, alice, "brew", 1)); first.Text != "Grind, pour, wait." {
		s.Errorf("version 1 is %+v", first)
	}
	s.same(k2, must(s.db.Skill(s.ctx, alice, "brew", 0)))
	must(s.db.PutSkill(s.ctx, bob, store.Skill{Name: "brew", Text: "Bob's way"}))
	if list := must(s.db.Skills(s.ctx, alice, store.Page{})); len(list) != 1 || list[0].Version != 2 ||
		list[0].Text != "" {
		s.Errorf("listed as %+v", list)
	}
	for _, q := range []string{"finely", "kitchen", "coffee", "brew"} {
		if hits := must(s.db.SearchSkills(s.ctx, alice, store.Query{Text: q})); len(hits) != 1 ||
			hits[0].Version != 2 || hits[0].Text != "" {
			s.Errorf("%s finds %+v", q, hits)
		}
	}
	must(s.db.PutSkill(s.ctx, alice, store.Skill{Name: "tea", Text: "Steep."}))
	s.is(s.db.RenameSkill(s.ctx, alice, "brew", "tea"), store.ErrConflict, "a name that another has")
	s.is(s.db.RenameSkill(s.ctx, alice, "none", "some"), store.ErrNotFound, "renaming none")
	s.ok(s.db.RenameSkill(s.ctx, alice, "brew", "espresso"))
	if k := must(s.db.Skill(s.ctx, alice, "espresso", 1)); k.Text != "Grind, pour, wait." || k.By != "alice" {
		s.Errorf("after the renaming version 1 is %+v", k)
	}
	if a, b := must(s.db.SearchSkills(s.ctx, alice, store.Query{Text: "espresso"})),
		must(s.db.SearchSkills(s.ctx, alice, store.Query{Text: "brew"})); len(a) != 1 || len(b) != 0 {
		s.Errorf("its new name finds %v, its old one %v", a, b)
	}
	s.ok(s.db.RenameSkill(s.ctx, alice, "espresso", "brew"))
	s.ok(s.db.DeleteSkill(s.ctx, alice, "brew"))
	_, err = s.db.Skill(s.ctx, alice, "brew", 1)
	s.is(err, store.ErrNotFound, "an old version of a deleted skill")
	if must(s.db.Skill(s.ctx, bob, "brew", 0)).Text != "Bob's way" {
		s.Error("Bob's skill went with Alice's")
	}
}
