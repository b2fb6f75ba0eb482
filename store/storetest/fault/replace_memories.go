package fault

import (
	"context"

	"github.com/pawl-go/pawl/store"
)

// memoryStore has a name that is no method of the interface, unlike Memories.
type memoryStore = store.Memories

// memories is a store.Memories whose methods a fault replaces.
type memories struct {
	memoryStore
	onAddMemory      func(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error)
	onMemory         func(ctx context.Context, sc store.Scope, id string) (store.Memory, error)
	onMemories       func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Memory, error)
	onForgetMemory   func(ctx context.Context, sc store.Scope, id string) error
	onSearchMemories func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MemoryHit, error)
}

// plantMemories returns db with a fault. replace sets the methods that have it.
func plantMemories(db store.Memories, replace func(f *memories)) store.Memories {
	f := &memories{
		memoryStore:      db,
		onAddMemory:      db.AddMemory,
		onMemory:         db.Memory,
		onMemories:       db.Memories,
		onForgetMemory:   db.ForgetMemory,
		onSearchMemories: db.SearchMemories,
	}
	replace(f)
	return f
}

func (f *memories) AddMemory(ctx context.Context, sc store.Scope, m store.Memory) (store.Memory, bool, error) {
	return f.onAddMemory(ctx, sc, m)
}

func (f *memories) Memory(ctx context.Context, sc store.Scope, id string) (store.Memory, error) {
	return f.onMemory(ctx, sc, id)
}

func (f *memories) Memories(ctx context.Context, sc store.Scope, p store.Page) ([]store.Memory, error) {
	return f.onMemories(ctx, sc, p)
}

func (f *memories) ForgetMemory(ctx context.Context, sc store.Scope, id string) error {
	return f.onForgetMemory(ctx, sc, id)
}

func (f *memories) SearchMemories(ctx context.Context, sc store.Scope, q store.Query) ([]store.MemoryHit, error) {
	return f.onSearchMemories(ctx, sc, q)
}
