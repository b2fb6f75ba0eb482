// Package fault has the faults that the suites of package storetest find, one list for each
// interface of package store. Each is a correct implementation with one planted fault: see
// pawltest/mutant.
package fault

import (
	"context"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Stores returns the faults between several interfaces of a Store.
func Stores() []mutant.Mutant[store.Store] {
	return []mutant.Mutant[store.Store]{
		{
			Name: "keeps the summary of a deleted thread",
			Part: "together/summaries",
			Plant: func(db store.Store) store.Store {
				p := partsOf(db)
				p.threadStore = plantThreads(db, func(t *threads) {
					t.onDeleteThread = func(ctx context.Context, sc store.Scope, id string) error {
						all, err := db.Memories(ctx, sc, store.Page{})
						if err != nil {
							return err
						}
						if err := db.DeleteThread(ctx, sc, id); err != nil {
							return err
						}
						return restore(ctx, db, sc, all, id)
					}
				})
				return p
			},
		},
		{
			Name: "deletes all summaries with one thread",
			Part: "together/summaries",
			Plant: func(db store.Store) store.Store {
				p := partsOf(db)
				p.threadStore = plantThreads(db, func(t *threads) {
					t.onDeleteThread = func(ctx context.Context, sc store.Scope, id string) error {
						all, err := db.Memories(ctx, sc, store.Page{})
						for _, m := range all {
							if err == nil && m.Source.Thread != "" && m.Source.Thread != id {
								err = db.ForgetMemory(ctx, sc, m.ID)
							}
						}
						if err != nil {
							return err
						}
						return db.DeleteThread(ctx, sc, id)
					}
				})
				return p
			},
		},
		{
			Name: "keeps the artifacts of a deleted run",
			Part: "together/runs",
			Plant: func(db store.Store) store.Store {
				p := partsOf(db)
				p.journalStore = plantJournal(db, func(j *journal) {
					j.onDeleteJournal = func(ctx context.Context, sc store.Scope, id string) error {
						a, absent := db.Artifact(ctx, sc, id, "k")
						if err := db.DeleteJournal(ctx, sc, id); err != nil || absent != nil {
							return err
						}
						return db.PutArtifact(ctx, sc, id, a)
					}
				})
				return p
			},
		},
		{
			Name: "keeps the trace of a deleted run",
			Part: "together/runs",
			Plant: func(db store.Store) store.Store {
				p := partsOf(db)
				p.journalStore = plantJournal(db, func(j *journal) {
					j.onDeleteJournal = func(ctx context.Context, sc store.Scope, id string) error {
						r, absent := db.Run(ctx, sc, id)
						if err := db.DeleteJournal(ctx, sc, id); err != nil || absent != nil {
							return err
						}
						return db.PutRun(ctx, sc, r)
					}
				})
				return p
			},
		},
		{
			Name: "deletes the trace of another run",
			Part: "together/runs",
			Plant: func(db store.Store) store.Store {
				p := partsOf(db)
				p.journalStore = plantJournal(db, func(j *journal) {
					j.onDeleteJournal = func(ctx context.Context, sc store.Scope, id string) error {
						all, err := db.Runs(ctx, sc, store.Page{})
						for _, r := range all {
							if err == nil && r.ID != id {
								err = db.DeleteRun(ctx, sc, r.ID)
							}
						}
						if err != nil {
							return err
						}
						return db.DeleteJournal(ctx, sc, id)
					}
				})
				return p
			},
		},
	}
}

// restore adds the summaries of a thread again.
func restore(ctx context.Context, db store.Store, sc store.Scope, all []store.Memory, thread string) error {
	for _, m := range all {
		if m.Source.Thread != thread {
			continue
		}
		m.ID = ""
		if _, _, err := db.AddMemory(ctx, sc, m); err != nil {
			return err
		}
	}
	return nil
}

// parts is a Store whose interfaces can be replaced.
type parts struct {
	threadStore
	knowledgeStore
	memoryStore
	skillStore
	scheduleStore
	traceStore
	artifactStore
	journalStore
	close func() error
}

// Close closes the store.
func (p *parts) Close() error { return p.close() }

func partsOf(db store.Store) *parts { return &parts{db, db, db, db, db, db, db, db, db.Close} }

// wider returns a scope without its user.
func wider(sc store.Scope) store.Scope {
	sc.User = ""
	return sc
}
