package fault

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Knowledge returns the faults that storetest.TestKnowledge finds.
func Knowledge() []mutant.Mutant[store.Knowledge] {
	return []mutant.Mutant[store.Knowledge]{
		ofKnowledge("drops the source", "life", func(f *knowledge) {
			next := f.onPutDocument
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				d.Source = ""
				return next(ctx, sc, d, chunks)
			}
		}),
		ofKnowledge("drops the digest", "life", func(f *knowledge) {
			next := f.onPutDocument
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				d.Digest = ""
				return next(ctx, sc, d, chunks)
			}
		}),
		ofKnowledge("drops the headings of chunks", "life", func(f *knowledge) {
			next := f.onPutDocument
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				kept := slices.Clone(chunks)
				for i := range kept {
					kept[i].Heading = ""
				}
				return next(ctx, sc, d, kept)
			}
		}),
		ofKnowledge("adds chunks to the chunks of before", "life", func(f *knowledge) {
			next, db := f.onPutDocument, f.knowledgeStore
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				old, err := db.Chunks(ctx, sc, d.ID, 0, 0)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return d, err
				}
				return next(ctx, sc, d, append(old, chunks...))
			}
		}),
		ofKnowledge("creates a changed document anew", "life", func(f *knowledge) {
			next, db := f.onPutDocument, f.knowledgeStore
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				if err := db.DeleteDocument(ctx, sc, d.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
					return d, err
				}
				return next(ctx, sc, d, chunks)
			}
		}),
		ofKnowledge("begins with the chunk after", "life", func(f *knowledge) {
			next := f.onChunks
			f.onChunks = func(ctx context.Context, sc store.Scope, id string, from, limit int) ([]store.Chunk,
				error) {
				return next(ctx, sc, id, from+1, limit)
			}
		}),
		ofKnowledge("keeps a deleted document", "life", func(f *knowledge) {
			db := f.knowledgeStore
			f.onDeleteDocument = func(ctx context.Context, sc store.Scope, id string) error {
				_, err := db.Document(ctx, sc, id)
				return err
			}
		}),
		ofKnowledge("ignores the vector", "vectors", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				q.Vector = store.Vector{}
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("finds the farthest first", "vectors", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				hits, err := next(ctx, sc, q)
				slices.Reverse(hits)
				return hits, err
			}
		}),
		ofKnowledge("ignores the limit of a search", "vectors", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				q.Limit = 200
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("ignores the words if there is a vector", "hybrid", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				if len(q.Vector.Values) > 0 {
					q.Text = ""
				}
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("finds nothing", "search", func(f *knowledge) {

			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				return nil, nil
			}
		}),
		ofKnowledge("reads queries as expressions", "search", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				if strings.ContainsAny(q.Text, "*:") {
					return nil, errors.New("syntax error")
				}
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("gives every hit the same score", "search", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				hits, err := next(ctx, sc, q)
				for i := range hits {
					hits[i].Score = 1
				}
				return hits, err
			}
		}),
		ofKnowledge("drops the titles of hits", "search", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				hits, err := next(ctx, sc, q)
				for i := range hits {
					hits[i].Title = ""
				}
				return hits, err
			}
		}),
		ofKnowledge("ignores where a page begins", "lists", func(f *knowledge) {
			next := f.onDocuments
			f.onDocuments = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Document, error) {
				p.After = ""
				return next(ctx, sc, p)
			}
		}),
		ofKnowledge("lists in reverse", "lists", func(f *knowledge) {
			next := f.onDocuments
			f.onDocuments = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Document, error) {
				all, err := next(ctx, sc, p)
				slices.Reverse(all)
				return all, err
			}
		}),
		ofKnowledge("finds no shared documents", "shared", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				q.Shared = false
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("hides that a document is shared", "shared", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				hits, err := next(ctx, sc, q)
				for i := range hits {
					hits[i].Shared = false
				}
				return hits, err
			}
		}),
		ofKnowledge("finds shared documents unasked", "scopes", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				q.Shared = true
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("ignores the thread in searches", "scopes", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				sc.Thread = ""
				return next(ctx, sc, q)
			}
		}),
		ofKnowledge("reads documents of the tenant", "property", func(f *knowledge) {
			next := f.onDocument
			f.onDocument = func(ctx context.Context, sc store.Scope, id string) (store.Document, error) {
				d, err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, sc.Shared(), id)
				}
				return d, err
			}
		}),
		ofKnowledge("deletes documents of the tenant", "property", func(f *knowledge) {
			next := f.onDeleteDocument
			f.onDeleteDocument = func(ctx context.Context, sc store.Scope, id string) error {
				err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, sc.Shared(), id)
				}
				return err
			}
		}),
		ofKnowledge("stores after the end of the context", "ended context", func(f *knowledge) {
			next := f.onPutDocument
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				return next(context.WithoutCancel(ctx), sc, d, chunks)
			}
		}),
		ofKnowledge("takes a vector without a model", "bad input", func(f *knowledge) {
			next := f.onPutDocument
			f.onPutDocument = func(ctx context.Context, sc store.Scope, d store.Document,
				chunks []store.Chunk) (store.Document, error) {
				for i := range chunks {
					chunks[i].Vector = store.Vector{}
				}
				return next(ctx, sc, d, chunks)
			}
		}),
		ofKnowledge("searches with a vector without values", "bad input", func(f *knowledge) {
			next := f.onSearchChunks
			f.onSearchChunks = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.ChunkHit, error) {
				if len(q.Vector.Values) == 0 {
					q.Vector = store.Vector{}
				}
				return next(ctx, sc, q)
			}
		}),
	}
}

func ofKnowledge(name, part string, replace func(f *knowledge)) mutant.Mutant[store.Knowledge] {
	return mutant.Mutant[store.Knowledge]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Knowledge) store.Knowledge { return plantKnowledge(db, replace) },
	}
}
