package storetest

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// storeParts are the parts of all interfaces, and the parts that concern several.
func storeParts() []part[store.Store] {
	return slices.Concat(
		of("threads", threadParts(), func(db store.Store) store.Threads { return db }),
		of("knowledge", knowledgeParts(), func(db store.Store) store.Knowledge { return db }),
		of("memories", memoryParts(), func(db store.Store) store.Memories { return db }),
		of("skills", skillParts(), func(db store.Store) store.Skills { return db }),
		of("schedules", scheduleParts(), func(db store.Store) store.Schedules { return db }),
		of("traces", traceParts(), func(db store.Store) store.Traces { return db }),
		of("artifacts", artifactParts(), func(db store.Store) store.Artifacts { return db }),
		of("journal", journalParts(), func(db store.Store) store.Journal { return db }),
		togetherParts(),
	)
}

func togetherParts() []part[store.Store] {
	return []part[store.Store]{
		{"together/summaries", summaryOfDeletedThread},
		{"together/runs", deletedJournal},
		{"together/property", func(s *suite[store.Store]) { s.property(allItems(s.db)...) }},
	}
}

func allItems(db store.Store) []items {
	return []items{
		threadItems(db), documentItems(db), memoryItems(db), skillItems(db),
		scheduleItems(db), artifactItems(db), journalItems(db),
	}
}

// summaryOfDeletedThread tests that the summary of a conversation is deleted with it, and no other
// memory.
func summaryOfDeletedThread(s *suite[store.Store]) {
	var summaries []store.Memory
	for _, sc := range []store.Scope{alice, bob} {
		for _, id := range []string{"t1", "t2"} {
			must(s.db.PutThread(s.ctx, sc, store.Thread{ID: id}))
			from := store.Source{Thread: id}
			m, _, err := s.db.AddMemory(s.ctx, sc, store.Memory{Text: "About apples.", Source: from})
			s.ok(err)
			summaries = append(summaries, m)
		}
	}
	fact, _, err := s.db.AddMemory(s.ctx, alice, store.Memory{Text: "About apples."})
	s.ok(err)

	s.ok(s.db.DeleteThread(s.ctx, alice, "t1"))
	s.same([]store.Memory{summaries[1], fact}, must(s.db.Memories(s.ctx, alice, store.Page{})))
	s.same(summaries[2:], must(s.db.Memories(s.ctx, bob, store.Page{})))
	if hits := must(s.db.SearchMemories(s.ctx, alice, store.Query{Text: "apples"})); len(hits) != 2 {
		s.Errorf("apples finds %+v", hits)
	}
}

// deletedJournal tests that a run is deleted with its artifacts and its trace, and no other run.
func deletedJournal(s *suite[store.Store]) {
	for _, sc := range []store.Scope{alice, bob} {
		for _, id := range []string{"r1", "r2"} {
			run := store.JournalRun{ID: id, State: store.JournalOpen}
			must(s.db.BeginJournal(s.ctx, sc, run, "me", noon.Add(time.Hour), record("begin", `1`)))
			s.ok(s.db.PutRun(s.ctx, sc, store.Run{ID: id}))
			s.ok(s.db.AppendEvents(s.ctx, sc, id, pawl.Event{Kind: pawl.EventText, Seq: 1, Text: "x"}))
			s.ok(s.db.PutArtifact(s.ctx, sc, id, pawl.Artifact{Key: "k", Text: "x"}))
		}
	}
	s.ok(s.db.DeleteJournal(s.ctx, alice, "r1"))

	_, err := s.db.Artifact(s.ctx, alice, "r1", "k")
	s.is(err, store.ErrNotFound, "an artifact of a deleted run")
	_, err = s.db.Run(s.ctx, alice, "r1")
	s.is(err, store.ErrNotFound, "the trace of a deleted run")
	_, err = s.db.Events(s.ctx, alice, "r1", 0, 0)
	s.is(err, store.ErrNotFound, "its events")
	for _, other := range []struct {
		scope store.Scope
		id    string
	}{{alice, "r2"}, {bob, "r1"}, {bob, "r2"}} {
		must(s.db.Artifact(s.ctx, other.scope, other.id, "k"))
		must(s.db.Run(s.ctx, other.scope, other.id))
		must(s.db.JournalRun(s.ctx, other.scope, other.id))
		if n := len(must(s.db.Events(s.ctx, other.scope, other.id, 0, 0))); n != 1 {
			s.Errorf("the run %s of %s has %d events", other.id, other.scope.User, n)
		}
	}
}
