// Package storetest tests implementations of the interfaces of package store, also those outside
// this module. Each interface has a suite of its own, and a Store has the suite of all of them.
//
//	func TestThreads(t *testing.T) {
//		storetest.TestThreads(t, func(t *testing.T) store.Threads { … a new, empty one … })
//	}
//
// A suite has a list of faults (package store/storetest/fault), and its Score function plants them
// in an implementation: it shows what the suite finds.
package storetest

import (
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/storetest/fault"
)

// T is the part of a test that the suites need. *testing.T implements it.
type T[Self any] interface{ mutant.T[Self] }

// TestStore runs the suites of all interfaces, and tests what concerns several of them. open
// returns a new, empty Store each time, which the suite closes.
func TestStore[TT T[TT]](t TT, open func(t TT) store.Store) {
	t.Helper()
	closed := func(t TT) store.Store {
		db := open(t)
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return db
	}
	runParts(t, closed, storeParts())
}

// TestThreads runs the suite of store.Threads. open returns a new, empty implementation each time
// and cleans it up itself, as for the suites below.
func TestThreads[TT T[TT]](t TT, open func(t TT) store.Threads) {
	t.Helper()
	runParts(t, open, threadParts())
}

// TestKnowledge runs the suite of store.Knowledge.
func TestKnowledge[TT T[TT]](t TT, open func(t TT) store.Knowledge) {
	t.Helper()
	runParts(t, open, knowledgeParts())
}

// TestMemories runs the suite of store.Memories.
func TestMemories[TT T[TT]](t TT, open func(t TT) store.Memories) {
	t.Helper()
	runParts(t, open, memoryParts())
}

// TestSkills runs the suite of store.Skills.
func TestSkills[TT T[TT]](t TT, open func(t TT) store.Skills) {
	t.Helper()
	runParts(t, open, skillParts())
}

// TestSchedules runs the suite of store.Schedules.
func TestSchedules[TT T[TT]](t TT, open func(t TT) store.Schedules) {
	t.Helper()
	runParts(t, open, scheduleParts())
}

// TestTraces runs the suite of store.Traces.
func TestTraces[TT T[TT]](t TT, open func(t TT) store.Traces) {
	t.Helper()
	runParts(t, open, traceParts())
}

// TestArtifacts runs the suite of store.Artifacts.
func TestArtifacts[TT T[TT]](t TT, open func(t TT) store.Artifacts) {
	t.Helper()
	runParts(t, open, artifactParts())
}

// TestJournal runs the suite of store.Journal.
func TestJournal[TT T[TT]](t TT, open func(t TT) store.Journal) {
	t.Helper()
	runParts(t, open, journalParts())
}

// ScoreStore plants the faults of fault.Stores, one at a time, in the Store that open returns. They
// concern several interfaces; each interface has a Score function of its own. A fault that the
// suite does not find is an error. So is a fault that it finds without a planted one. open cleans
// its Stores up itself.
func ScoreStore[TT T[TT]](t TT, open func(t TT) store.Store) mutant.Score {
	t.Helper()
	return score(t, fault.Stores(), open, togetherParts())
}

// ScoreThreads is ScoreStore for TestThreads, with the faults of fault.Threads.
func ScoreThreads[TT T[TT]](t TT, open func(t TT) store.Threads) mutant.Score {
	t.Helper()
	return score(t, fault.Threads(), open, threadParts())
}

// ScoreKnowledge is ScoreStore for TestKnowledge, with the faults of fault.Knowledge.
func ScoreKnowledge[TT T[TT]](t TT, open func(t TT) store.Knowledge) mutant.Score {
	t.Helper()
	return score(t, fault.Knowledge(), open, knowledgeParts())
}

// ScoreMemories is ScoreStore for TestMemories, with the faults of fault.Memories.
func ScoreMemories[TT T[TT]](t TT, open func(t TT) store.Memories) mutant.Score {
	t.Helper()
	return score(t, fault.Memories(), open, memoryParts())
}

// ScoreSkills is ScoreStore for TestSkills, with the faults of fault.Skills.
func ScoreSkills[TT T[TT]](t TT, open func(t TT) store.Skills) mutant.Score {
	t.Helper()
	return score(t, fault.Skills(), open, skillParts())
}

// ScoreSchedules is ScoreStore for TestSchedules, with the faults of fault.Schedules.
func ScoreSchedules[TT T[TT]](t TT, open func(t TT) store.Schedules) mutant.Score {
	t.Helper()
	return score(t, fault.Schedules(), open, scheduleParts())
}

// ScoreTraces is ScoreStore for TestTraces, with the faults of fault.Traces.
func ScoreTraces[TT T[TT]](t TT, open func(t TT) store.Traces) mutant.Score {
	t.Helper()
	return score(t, fault.Traces(), open, traceParts())
}

// ScoreArtifacts is ScoreStore for TestArtifacts, with the faults of fault.Artifacts.
func ScoreArtifacts[TT T[TT]](t TT, open func(t TT) store.Artifacts) mutant.Score {
	t.Helper()
	return score(t, fault.Artifacts(), open, artifactParts())
}

// ScoreJournal is ScoreStore for TestJournal, with the faults of fault.Journals.
func ScoreJournal[TT T[TT]](t TT, open func(t TT) store.Journal) mutant.Score {
	t.Helper()
	return score(t, fault.Journals(), open, journalParts())
}

// score runs the parts over an implementation with each of the faults.
func score[TT T[TT], S any](t TT, faults []mutant.Mutant[S], open func(t TT) S, parts []part[S]) mutant.Score {
	t.Helper()
	suite := func(t TT, r *mutant.Recorder, plant func(S) S) {
		runParts(r, func(*mutant.Recorder) S { return plant(open(t)) }, parts)
	}
	return mutant.Try(t, faults, nil, suite)
}
