package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Document is a searchable document: a file, a page or a note.
type Document struct {
	ID     string `json:"id"`              // unique in the scope
	Title  string `json:"title,omitzero"`  // shown with its chunks; "" means none
	Source string `json:"source,omitzero"` // origin: an address or a path
	Kind   string `json:"kind,omitzero"`   // media type
	// Digest is the digest of its source. A document with the same digest need not be added again.
	Digest  string          `json:"digest,omitzero"`
	Meta    json.RawMessage `json:"meta,omitzero"`    // a JSON value of the program; nil means none
	Chunks  int             `json:"chunks"`           // number of chunks; set by the store
	Created time.Time       `json:"created,omitzero"` // set by the store if it is zero
	Updated time.Time       `json:"updated,omitzero"` // set by the store
}

// Chunk is a piece of a document of a size that suits a model.
type Chunk struct {
	Document string `json:"document"`         // set by the store
	Index    int    `json:"index"`            // position in the document; set by the store
	Heading  string `json:"heading,omitzero"` // the headings above it
	Text     string `json:"text"`             // what a model reads
	Vector   Vector `json:"vector,omitzero"`  // zero means that it is found by its words only
}

// ID returns the ID of the chunk.
func (c *Chunk) ID() string { return fmt.Sprintf("%s#%d", c.Document, c.Index) }

// Vector is the embedding of a text. Vectors of different models are not comparable and are never
// compared.
type Vector struct {
	Model  string    `json:"model"`  // such as "openai:text-embedding-3-small"
	Values []float32 `json:"values"` // as many as the model returns; nil means no vector
}

// Check returns an error for a vector without a direction: it has no model or no values, all values
// are zero, or one is not a number. The zero Vector means no vector and is valid.
func (v Vector) Check() error {
	if v.Model == "" && len(v.Values) == 0 {
		return nil
	}
	if v.Model == "" {
		return fmt.Errorf("a vector of %d values has no model", len(v.Values))
	}
	sum := 0.0
	for i, x := range v.Values {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("value %d of a vector by %s is %v", i, v.Model, x)
		}
		sum += f * f
	}
	if sum == 0 {
		return fmt.Errorf("a vector by %s has no direction", v.Model)
	}
	return nil
}

// Query is a search by words, by meaning, or by both. With both, the two rankings are fused.
type Query struct {
	// Text contains words in any order. Texts with more of the words, and with rarer ones, rank
	// higher. Words that occur in every English text (the, is) may be ignored if there are others.
	Text   string
	Vector Vector // zero means words only
	Limit  int    // 0 means 10; at most 200
	// Shared also searches Scope.Shared. It applies to documents only: memories, messages and
	// skills are searched in their scope alone.
	Shared bool
}

// Size returns the maximum number of hits.
func (q Query) Size() int {
	if q.Limit <= 0 {
		return 10
	}
	return min(q.Limit, 200)
}

// ChunkHit is a chunk found by a search.
type ChunkHit struct {
	Chunk
	Title  string  `json:"title,omitzero"`  // title of its document
	Source string  `json:"source,omitzero"` // origin of its document
	Score  float64 `json:"score"`           // see Fuse
	// Shared says that its document is stored under Scope.Shared and was found from another scope.
	Shared bool `json:"shared,omitzero"`
}

// Knowledge stores documents as chunks. Methods must be safe for concurrent use.
type Knowledge interface {
	// PutDocument stores a document with its chunks atomically, in place of an existing one with
	// that ID.
	PutDocument(ctx context.Context, s Scope, d Document, chunks []Chunk) (Document, error)
	// Document returns a document without its chunks.
	Document(ctx context.Context, s Scope, id string) (Document, error)
	// Chunks returns up to limit chunks of a document, in order, beginning with index from. Limit 0
	// means all.
	Chunks(ctx context.Context, s Scope, id string, from, limit int) ([]Chunk, error)
	// Documents lists documents by ID.
	Documents(ctx context.Context, s Scope, p Page) ([]Document, error)
	// DeleteDocument deletes a document.
	DeleteDocument(ctx context.Context, s Scope, id string) error
	// SearchChunks finds chunks, the best first: the chunks in s and, with q.Shared, the chunks
	// in s.Shared(). A query with neither words nor a vector finds nothing.
	SearchChunks(ctx context.Context, s Scope, q Query) ([]ChunkHit, error)
}

// fuseConstant is the constant k of reciprocal rank fusion, with the value of Cormack, Clarke and
// Büttcher, SIGIR 2009.
const fuseConstant = 60

// Fuse combines rankings of IDs, each with the best first, by reciprocal rank fusion. The score is
// 1 for an ID that is first in every ranking, and falls with the ranks. It expresses the position
// of an ID, not how well it fits. Equal scores are in the order of their IDs. An ID counts once in
// a ranking.
func Fuse(rankings ...[]string) []Ranked {
	if len(rankings) == 0 {
		return nil
	}
	most := float64(len(rankings)) / (fuseConstant + 1)
	scores := map[string]float64{}
	for _, list := range rankings {
		seen := make(map[string]bool, len(list))
		for rank, id := range list {
			if !seen[id] {
				seen[id] = true
				scores[id] += 1 / float64(fuseConstant+1+rank) / most
			}
		}
	}
	out := make([]Ranked, 0, len(scores))
	for id, score := range scores {
		out = append(out, Ranked{id, score})
	}
	slices.SortFunc(out, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Ranked is an ID with its score.
type Ranked struct {
	ID    string  // of the passage
	Score float64 // greater than 0, at most 1
}
