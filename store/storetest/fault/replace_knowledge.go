package fault

import (
	"context"

	"github.com/pawl-go/pawl/store"
)

// knowledgeStore has a name that is no method of the interface, unlike Knowledge.
type knowledgeStore = store.Knowledge

// knowledge is a store.Knowledge whose methods a fault replaces.
type knowledge struct {
	knowledgeStore
	onPutDocument func(ctx context.Context, sc store.Scope, d store.Document,
		chunks []store.Chunk) (store.Document, error)
	onDocument       func(ctx context.Context, sc store.Scope, id string) (store.Document, error)
	onChunks         func(ctx context.Context, sc store.Scope, id string, from, limit int) ([]store.Chunk, error)
	onDocuments      func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Document, error)
	onDeleteDocument func(ctx context.Context, sc store.Scope, id string) error
	onSearchChunks   func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error)
}

// plantKnowledge returns db with a fault. replace sets the methods that have it.
func plantKnowledge(db store.Knowledge, replace func(f *knowledge)) store.Knowledge {
	f := &knowledge{
		knowledgeStore:   db,
		onPutDocument:    db.PutDocument,
		onDocument:       db.Document,
		onChunks:         db.Chunks,
		onDocuments:      db.Documents,
		onDeleteDocument: db.DeleteDocument,
		onSearchChunks:   db.SearchChunks,
	}
	replace(f)
	return f
}

func (f *knowledge) PutDocument(ctx context.Context, sc store.Scope, d store.Document,
	chunks []store.Chunk) (store.Document, error) {
	return f.onPutDocument(ctx, sc, d, chunks)
}

func (f *knowledge) Document(ctx context.Context, sc store.Scope, id string) (store.Document, error) {
	return f.onDocument(ctx, sc, id)
}

func (f *knowledge) Chunks(ctx context.Context, sc store.Scope, id string, from, limit int) ([]store.Chunk, error) {
	return f.onChunks(ctx, sc, id, from, limit)
}

func (f *knowledge) Documents(ctx context.Context, sc store.Scope, p store.Page) ([]store.Document, error) {
	return f.onDocuments(ctx, sc, p)
}

func (f *knowledge) DeleteDocument(ctx context.Context, sc store.Scope, id string) error {
	return f.onDeleteDocument(ctx, sc, id)
}

func (f *knowledge) SearchChunks(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
	return f.onSearchChunks(ctx, sc, q)
}
