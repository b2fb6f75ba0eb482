package fault

import (
	"context"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// threadStore has a name that is no method of the interface, unlike Threads.
type threadStore = store.Threads

// threads is a store.Threads whose methods a fault replaces.
type threads struct {
	threadStore
	onPutThread      func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error)
	onThread         func(ctx context.Context, sc store.Scope, id string) (store.Thread, error)
	onThreads        func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Thread, error)
	onDeleteThread   func(ctx context.Context, sc store.Scope, id string) error
	onAppendMessages func(ctx context.Context, sc store.Scope, id string, have int, msgs ...llm.Message) error
	onMessages       func(ctx context.Context, sc store.Scope, id string, from, limit int) ([]store.Message, error)
	onSearchMessages func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit, error)
}

// plantThreads returns db with a fault. replace sets the methods that have it.
func plantThreads(db store.Threads, replace func(f *threads)) store.Threads {
	f := &threads{
		threadStore:      db,
		onPutThread:      db.PutThread,
		onThread:         db.Thread,
		onThreads:        db.Threads,
		onDeleteThread:   db.DeleteThread,
		onAppendMessages: db.AppendMessages,
		onMessages:       db.Messages,
		onSearchMessages: db.SearchMessages,
	}
	replace(f)
	return f
}

func (f *threads) PutThread(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
	return f.onPutThread(ctx, sc, v)
}

func (f *threads) Thread(ctx context.Context, sc store.Scope, id string) (store.Thread, error) {
	return f.onThread(ctx, sc, id)
}

func (f *threads) Threads(ctx context.Context, sc store.Scope, p store.Page) ([]store.Thread, error) {
	return f.onThreads(ctx, sc, p)
}

func (f *threads) DeleteThread(ctx context.Context, sc store.Scope, id string) error {
	return f.onDeleteThread(ctx, sc, id)
}

func (f *threads) AppendMessages(ctx context.Context, sc store.Scope, id string, have int,
	msgs ...llm.Message) error {
	return f.onAppendMessages(ctx, sc, id, have, msgs...)
}

func (f *threads) Messages(ctx context.Context, sc store.Scope, id string, from, limit int) ([]store.Message, error) {
	return f.onMessages(ctx, sc, id, from, limit)
}

func (f *threads) SearchMessages(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit, error) {
	return f.onSearchMessages(ctx, sc, q)
}
