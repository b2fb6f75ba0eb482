package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// scopes stores the same items under many scopes with similar names and looks for all of them from
// each scope. A scope finds exactly the items that it holds and, for documents with Query.Shared,
// the items that the tenant shares.
func (s *suite) scopes() {
	names := []string{"", "a", "b", "A", "a ", "ab", "%", "_", "'", "a'b", "*", "a/b"}
	rng := rand.New(rand.NewPCG(3, 4))
	var all []store.Scope
	for _, tenant := range []string{"", "a", "ab", "%"} { // documents that these tenants share
		all = append(all, store.Scope{Tenant: tenant})
	}
	for len(all) < 28 {
		sc := store.Scope{Tenant: names[rng.IntN(len(names))], User: names[rng.IntN(len(names))],
			Thread: names[rng.IntN(3)]}
		if !slices.Contains(all, sc) {
			all = append(all, sc)
		}
	}
	where := func(sc store.Scope) string { return fmt.Sprintf("%q %q %q", sc.Tenant, sc.User, sc.Thread) }
	v := store.Vector{Model: "m", Values: []float32{1, 2}}
	for _, sc := range all {
		mark := "mark " + where(sc)
		must(s.db.PutDocument(s.ctx, sc, store.Document{ID: "d", Title: where(sc)},
			[]store.Chunk{{Text: mark, Vector: v}}))
		_, _, err := s.db.AddMemory(s.ctx, sc, store.Memory{Text: mark, Source: store.Source{By: where(sc)}, Vector: v})
		s.ok(err)
		must(s.db.PutSkill(s.ctx, sc, store.Skill{Name: "k", Text: mark, Description: where(sc)}))
		s.schedule(sc, "v", noon)
		s.ok(s.db.PutRun(s.ctx, sc, store.Run{ID: "r", Task: where(sc)}))
		s.ok(s.db.AppendEvents(s.ctx, sc, "r", pawl.Event{Kind: pawl.EventText, Seq: 1, Text: where(sc)}))
		s.ok(s.db.PutArtifact(s.ctx, sc, "r", pawl.Artifact{Key: "k", Text: where(sc)}))
		user := sc
		id := sc.Thread
		user.Thread = ""
		if id == "" {
			id = "none"
		}
		must(s.db.PutThread(s.ctx, user, store.Thread{ID: id}))
		s.ok(s.db.AppendMessages(s.ctx, user, id, 0, llm.User(mark)))
	}
	for _, sc := range all {
		var want []string
		for _, o := range all {
			if sc.Holds(o) {
				want = append(want, where(o))
			}
		}
		slices.Sort(want)
		same := func(what string, got []string) {
			slices.Sort(got)
			if !slices.Equal(got, want) {
				s.Errorf("%s from %s: found %v, want %v", what, where(sc), got, want)
			}
		}
		shared := slices.Clone(want)
		if !sc.Holds(sc.Shared()) && slices.Contains(all, sc.Shared()) {
			shared = append(shared, where(sc.Shared()))
		}
		for _, q := range []store.Query{{Text: "mark", Limit: 200}, {Vector: v, Limit: 200},
			{Text: "mark", Vector: v, Limit: 200}} {
			var got []string
			for _, h := range must(s.db.SearchChunks(s.ctx, sc, q)) {
				got = append(got, h.Title)
			}
			same("chunks", got)
			q.Shared = true // from here on
			s.seesShared(sc, q, where, shared)
			got = nil
			for _, h := range must(s.db.SearchMemories(s.ctx, sc, q)) {
				got = append(got, h.Source.By)
			}
			same("memories", got)
			if q.Text == "" {
				continue
			}
			got = nil
			for _, h := range must(s.db.SearchSkills(s.ctx, sc, q)) {
				got = append(got, h.Description)
			}
			same("skills", got)
			if hits := must(s.db.SearchMessages(s.ctx, sc, q)); len(hits) != len(want) {
				s.Errorf("messages from %s: found %d, want %d", where(sc), len(hits), len(want))
			}
		}
		// By name, a scope gets its own document and no other scope's, shared or not.
		if d := must(s.db.Document(s.ctx, sc, "d")); d.Title != where(sc) {
			s.Errorf("the document of %s is the document of %s", where(sc), d.Title)
		}
		if k := must(s.db.Skill(s.ctx, sc, "k", 0)); k.Description != where(sc) {
			s.Errorf("the skill of %s is the skill of %s", where(sc), k.Description)
		}
		if r := must(s.db.Run(s.ctx, sc, "r")); r.Task != where(sc) {
			s.Errorf("the run of %s is the run of %s", where(sc), r.Task)
		}
		if e := must(s.db.Events(s.ctx, sc, "r", 0, 0)); len(e) != 1 || e[0].Text != where(sc) {
			s.Errorf("the events of %s are %+v", where(sc), e)
		}
		if a := must(s.db.Artifact(s.ctx, sc, "r", "k")); a.Text != where(sc) {
			s.Errorf("the artifact of %s is the artifact of %s", where(sc), a.Text)
		}
		for what, n := range map[string]int{"documents": len(must(s.db.Documents(s.ctx, sc, store.Page{}))),
			"memories":  len(must(s.db.Memories(s.ctx, sc, store.Page{}))),
			"skills":    len(must(s.db.Skills(s.ctx, sc, store.Page{}))),
			"schedules": len(must(s.db.Schedules(s.ctx, sc, store.Page{}))), "runs": len(must(s.db.Runs(s.ctx, sc, store.Page{})))} {
			if n != 1 {
				s.Errorf("%s lists %d %s", where(sc), n, what)
			}
		}
	}
	if due := must(s.db.DueSchedules(s.ctx, noon, 0)); len(due) != len(all) {
		s.Errorf("%d schedules are due, want %d", len(due), len(all))
	}
}

// seesShared checks that a search with Query.Shared finds want, and that each hit says whether it
// belongs to another scope.
func (s *suite) seesShared(sc store.Scope, q store.Query, where func(store.Scope) string, want []string) {
	var got []string
	for _, h := range must(s.db.SearchChunks(s.ctx, sc, q)) {
		got = append(got, h.Title)
		if other := !sc.Holds(sc.Shared()) && h.Title == where(sc.Shared()); h.Shared != other {
			s.Errorf("from %s the document of %s is shared: %v, want %v", where(sc), h.Title, h.Shared, other)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("chunks, with what is shared, from %s: found %v, want %v", where(sc), got, want)
	}
}
