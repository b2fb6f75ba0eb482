package fault

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Memories returns the faults that storetest.TestMemories finds.
func Memories() []mutant.Mutant[store.Memories] {
	return []mutant.Mutant[store.Memories]{
		ofMemories("drops the source", "life", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				m.Source.By = ""
				return next(ctx, sc, m)
			}
		}),
		ofMemories("drops that a memory is unconfirmed", "life", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				m.Source.Unconfirmed = false
				return next(ctx, sc, m)
			}
		}),
		ofMemories("says of the same text that it was added", "life", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				was, _, err := next(ctx, sc, m)
				return was, err == nil, err
			}
		}),
		ofMemories("compares texts by their bytes", "life", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				m.Text = strings.Replace(m.Text, "(TEA)", "(TEA)!?x", 1)
				return next(ctx, sc, m)
			}
		}),
		ofMemories("shares the memories of one agent", "life", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				m.Source.Agent = ""
				return next(ctx, sc, m)
			}
		}),
		ofMemories("keeps the source of the first", "life", func(f *memories) {
			next, db := f.onAddMemory, f.memoryStore
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				all, err := db.Memories(ctx, sc, store.Page{})
				if err != nil {
					return m, false, err
				}
				for _, old := range all {
					if strings.EqualFold(strings.Trim(old.Text, "."),
						strings.Join(strings.Fields(strings.NewReplacer("(", "", ")", "").Replace(m.Text)),
							" ")) && m.ID == "" && old.Source.Thread == "" {
						return old, false, nil
					}
				}
				return next(ctx, sc, m)
			}
		}),
		ofMemories("lists in reverse", "life", func(f *memories) {
			next := f.onMemories
			f.onMemories = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Memory, error) {
				all, err := next(ctx, sc, p)
				slices.Reverse(all)
				return all, err
			}
		}),
		ofMemories("ignores where a page begins", "life", func(f *memories) {
			next := f.onMemories
			f.onMemories = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Memory, error) {
				p.After = ""
				return next(ctx, sc, p)
			}
		}),
		ofMemories("keeps a forgotten memory", "life", func(f *memories) {
			db := f.memoryStore
			f.onForgetMemory = func(ctx context.Context, sc store.Scope, id string) error {
				_, err := db.Memory(ctx, sc, id)
				return err
			}
		}),
		ofMemories("finds nothing", "life", func(f *memories) {

			f.onSearchMemories = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MemoryHit, error) {
				return nil, nil
			}
		}),
		ofMemories("keeps every summary of a conversation", "summaries", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				m.Source.Thread = ""
				return next(ctx, sc, m)
			}
		}),
		ofMemories("takes a fact for a summary", "summaries", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				if m.Source.Thread == "" {
					m.Source.Thread = "t1"
				}
				return next(ctx, sc, m)
			}
		}),
		ofMemories("stores a forgotten memory again", "confirmed", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				was, added, err := next(ctx, sc, m)
				if errors.Is(err, store.ErrNotFound) && m.ID != "" {
					m.ID = ""
					return next(ctx, sc, m)
				}
				return was, added, err
			}
		}),
		ofMemories("ignores the vector", "scopes", func(f *memories) {
			next := f.onSearchMemories
			f.onSearchMemories = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MemoryHit, error) {
				q.Vector = store.Vector{}
				return next(ctx, sc, q)
			}
		}),
		ofMemories("finds what the tenant shares", "scopes", func(f *memories) {
			next := f.onSearchMemories
			f.onSearchMemories = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MemoryHit, error) {
				own, err := next(ctx, sc, q)
				if err != nil || sc == sc.Shared() {
					return own, err
				}
				more, err := next(ctx, sc.Shared(), q)
				return append(own, more...), err
			}
		}),
		ofMemories("forgets memories of other users", "property", func(f *memories) {
			next := f.onForgetMemory
			f.onForgetMemory = func(ctx context.Context, sc store.Scope, id string) error {
				err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return err
			}
		}),
		ofMemories("reads memories of other users", "property", func(f *memories) {
			next := f.onMemory
			f.onMemory = func(ctx context.Context, sc store.Scope, id string) (store.Memory, error) {
				m, err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return m, err
			}
		}),
		ofMemories("takes an empty memory", "bad input", func(f *memories) {
			next := f.onAddMemory
			f.onAddMemory = func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
				if strings.TrimSpace(m.Text) == "" {
					m.Text = "x"
				}
				return next(ctx, sc, m)
			}
		}),
		ofMemories("takes a page after no memory", "bad input", func(f *memories) {
			next := f.onMemories
			f.onMemories = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Memory, error) {
				if p.After == "x" {
					p.After = ""
				}
				return next(ctx, sc, p)
			}
		}),
	}
}

func ofMemories(name, part string, replace func(f *memories)) mutant.Mutant[store.Memories] {
	return mutant.Mutant[store.Memories]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Memories) store.Memories { return plantMemories(db, replace) },
	}
}
