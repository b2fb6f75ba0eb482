package store

import (
	"context"
	"time"
)

// Memory is a sentence that is worth keeping: a fact, a wish.
type Memory struct {
	ID      string    `json:"id"` // made by the store
	Text    string    `json:"text"`
	Source  string    `json:"source,omitzero"` // who or what said it
	Vector  Vector    `json:"vector,omitzero"` // zero: it is found by its words only
	Created time.Time `json:"created,omitzero"`
}

// MemoryHit is a memory that was found.
type MemoryHit struct {
	Memory
	Score float64 `json:"score"` // see Fuse
}

// Memories keeps what was learnt of a user. Methods may be called concurrently.
type Memories interface {
	// AddMemory keeps a memory. Text that the scope has already, but for case and spaces, is not kept twice: the old one is returned, and false.
	AddMemory(ctx context.Context, s Scope, m Memory) (Memory, bool, error)
	// Memory returns one.
	Memory(ctx context.Context, s Scope, id string) (Memory, error)
	// Memories lists them by ID, which is the order they came in.
	Memories(ctx context.Context, s Scope, p Page) ([]Memory, error)
	// ForgetMemory removes one.
	ForgetMemory(ctx context.Context, s Scope, id string) error
	// SearchMemories finds memories, the best first.
	SearchMemories(ctx context.Context, s Scope, q Query) ([]MemoryHit, error)
}
