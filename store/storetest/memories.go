package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

func memoryParts() []part[store.Memories] {
	return []part[store.Memories]{
		{"life", memoryLife},
		{"summaries", memorySummaries},
		{"confirmed", memoryConfirmed},
		{"scopes", func(s *suite[store.Memories]) { s.scopes(memoryItems(s.db)) }},
		{"property", func(s *suite[store.Memories]) { s.property(memoryItems(s.db)) }},
		{"bad input", memoryBad},
	}
}

// memoryItems are memories. The store makes their IDs.
func memoryItems(db store.Memories) items {
	type place struct {
		scope store.Scope
		name  string
	}
	ids := map[place]string{}
	others := map[string]string{} // the ID of the newest memory with a name, of any scope
	id := func(sc store.Scope, name string) string {
		if own, ok := ids[place{sc, name}]; ok {
			return own
		}
		return others[name]
	}
	return items{
		kind: "memory",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			if old, ok := ids[place{sc, name}]; ok {
				if err := db.ForgetMemory(ctx, sc, old); err != nil {
					return err
				}
			}
			m, added, err := db.AddMemory(ctx, sc, store.Memory{Text: words, Vector: vector})
			if err == nil && !added {
				err = fmt.Errorf("%q was there before", words)
			}
			ids[place{sc, name}] = m.ID
			others[name] = m.ID
			return err
		},
		remove: func(ctx context.Context, sc store.Scope, name string) error {
			if own, ok := ids[place{sc, name}]; ok {
				delete(ids, place{sc, name})
				return db.ForgetMemory(ctx, sc, own)
			}
			for at, other := range ids {
				if at.name != name {
					continue
				}
				if err := db.ForgetMemory(ctx, sc, other); !isAbsent(err) {
					return err
				}
			}
			return store.ErrNotFound
		},
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			if id(sc, name) == "" {
				return "", store.ErrNotFound
			}
			m, err := db.Memory(ctx, sc, id(sc, name))
			return m.Text, err
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(m store.Memory) string { return m.Text })(db.Memories(ctx, sc, store.Page{}))
		},
		find: func(ctx context.Context, sc store.Scope, q store.Query) ([]string, error) {
			return wordsOf(func(h store.MemoryHit) string { return h.Text })(db.SearchMemories(ctx, sc, q))
		},
		vectors: true,
	}
}

func memoryLife(s *suite[store.Memories]) {
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
	own, added, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "Likes tea.",
		Source: store.Source{Agent: "clerk"}})
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
		old, _, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "likes tea", Source: when.said,
			Created: when.at})
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
	if again, _, err := s.db.AddMemory(s.ctx, alice,
		store.Memory{Text: "Likes tea."}); err != nil || again.ID == m.ID {
		s.Errorf("learnt again it is %+v, %v; an ID is not used twice", again, err)
	}
}

// memorySummaries tests that a conversation has one summary, which is not a fact.
func memorySummaries(s *suite[store.Memories]) {
	about := func(sc store.Scope, thread, text, agent string) store.Memory {
		from := store.Source{Thread: thread, Agent: agent}
		m, _, err := s.db.AddMemory(s.ctx, sc, store.Memory{Text: text, Source: from})
		s.ok(err)
		return m
	}
	about(alice, "t1", "About apples.", "")
	about(alice, "t2", "About apples.", "")
	fact, added, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "About apples."})
	s.ok(err)
	if !added {
		s.Errorf("a fact with the text of a summary is %+v", fact)
	}
	old := about(bob, "t1", "About plums.", "")

	first := about(alice, "t1", "About pears.", "")
	next, added, err := s.db.AddMemory(s.ctx, alice,
		store.Memory{Text: "About pears.", Source: store.Source{Thread: "t1", Agent: "clerk"}})
	s.ok(err)
	if added || next.Text != "About pears." || next.ID == first.ID {
		s.Errorf("the next summary is %+v, added %v", next, added)
	}
	list := must(s.db.Memories(s.ctx, alice, store.Page{}))
	if len(list) != 3 || list[0].Source.Thread != "t2" || list[1].ID != fact.ID {
		s.Fatalf("after four summaries of two threads there are %+v", list)
	}
	s.same(next, list[2])
	for text, n := range map[string]int{"apples": 2, "pears": 1, "plums": 0} {
		if hits := must(s.db.SearchMemories(s.ctx, alice, store.Query{Text: text})); len(hits) != n {
			s.Errorf("%s finds %+v", text, hits)
		}
	}
	s.same(old, must(s.db.Memory(s.ctx, bob, old.ID)))
}

// memoryConfirmed: what a person has seen: a memory that was forgotten or replaced in between stays
// gone, also if both happen at once.
func memoryConfirmed(s *suite[store.Memories]) {
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
		if _, again, gone := s.db.AddMemory(s.ctx, alice, yes); added || again || !errors.Is(gone,
			store.ErrNotFound) ||
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

func memoryBad(s *suite[store.Memories]) {
	s.refused(second(s.db.AddMemory(s.ctx, alice, store.Memory{Text: " "})), "an empty memory")
	nowhere := store.Vector{Model: "m", Values: []float32{0, 0}}
	s.refused(second(s.db.AddMemory(s.ctx, alice, store.Memory{Text: "x", Vector: nowhere})),
		"a vector without a direction")
	s.refused(only(s.db.Memories(s.ctx, alice, store.Page{After: "x"})), "a page after no memory")
	s.refused(only(s.db.Memories(s.ctx, store.Scope{User: "\xff"}, store.Page{})), "a user that is no UTF-8")
	if err := second(s.db.AddMemory(s.ended(), alice, store.Memory{Text: "x"})); err == nil {
		s.Errorf("a memory was taken under a context that has ended")
	}
}
