package storetest_test

import (
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/store/storetest"
)

func open(t *testing.T) store.Store {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// opened returns a store of which the suite sees one interface.
func opened[S any](of func(store.Store) S) func(t *testing.T) S {
	return func(t *testing.T) S {
		db := open(t)
		t.Cleanup(func() { db.Close() })
		return of(db)
	}
}

// The suite of each interface finds each fault in an implementation of it.
func TestScores(t *testing.T) {
	whole := func(t *testing.T, score mutant.Score) {
		if len(score.Survived)+len(score.LeftOut) > 0 {
			t.Errorf("%s", score)
		}
	}
	for name, test := range map[string]func(t *testing.T) mutant.Score{
		"threads": func(t *testing.T) mutant.Score {
			return storetest.ScoreThreads(t, opened(func(db store.Store) store.Threads { return db }))
		},
		"knowledge": func(t *testing.T) mutant.Score {
			return storetest.ScoreKnowledge(t, opened(func(db store.Store) store.Knowledge { return db }))
		},
		"memories": func(t *testing.T) mutant.Score {
			return storetest.ScoreMemories(t, opened(func(db store.Store) store.Memories { return db }))
		},
		"skills": func(t *testing.T) mutant.Score {
			return storetest.ScoreSkills(t, opened(func(db store.Store) store.Skills { return db }))
		},
		"schedules": func(t *testing.T) mutant.Score {
			return storetest.ScoreSchedules(t, opened(func(db store.Store) store.Schedules { return db }))
		},
		"traces": func(t *testing.T) mutant.Score {
			return storetest.ScoreTraces(t, opened(func(db store.Store) store.Traces { return db }))
		},
		"artifacts": func(t *testing.T) mutant.Score {
			return storetest.ScoreArtifacts(t, opened(func(db store.Store) store.Artifacts { return db }))
		},
		"journal": func(t *testing.T) mutant.Score { return storetest.ScoreJournal(t, inMemory) },
		"together": func(t *testing.T) mutant.Score {
			return storetest.ScoreStore(t, opened(func(db store.Store) store.Store { return db }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole(t, test(t))
		})
	}
}

func inMemory(*testing.T) store.Journal { return new(store.MemoryJournal) }
