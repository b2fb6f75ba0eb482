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

// Document is something to search in: a file, a page, a note.
type Document struct {
	ID      string          `json:"id"`
	Title   string          `json:"title,omitzero"`
	Source  string          `json:"source,omitzero"` // where it came from: an address, a path
	Kind    string          `json:"kind,omitzero"`   // its media type
	Digest  string          `json:"digest,omitzero"` // of what it was made from: the same digest need not be taken in again
	Meta    json.RawMessage `json:"meta,omitzero"`   // the program's own; a JSON value; nil: none
	Chunks  int             `json:"chunks"`          // how many it has; set by the store
	Created time.Time       `json:"created,omitzero"`
	Updated time.Time       `json:"updated,omitzero"`
}

// Chunk is a piece of a document, of a size that a model reads.
type Chunk struct {
	Document string `json:"document"`         // set by the store
	Index    int    `json:"index"`            // its place in the document; set by the store
	Heading  string `json:"heading,omitzero"` // the headings above it
	Text     string `json:"text"`
	Vector   Vector `json:"vector,omitzero"` // zero: it is found by its words only
}

// ID names a chunk.
func (c *Chunk) ID() string { return fmt.Sprintf("%s#%d", c.Document, c.Index) }

// Vector is what an embedding model makes of a text. Vectors of different models say nothing of each other and are never compared.
type Vector struct {
	Model  string    `json:"model"` // "openai:text-embedding-3-small"
	Values []float32 `json:"values"`
}

// Check reports a vector that has no direction: no model, no values, all of them zero, or one that is no number. The zero Vector is none, and
// right.
func (v Vector) Check() error {
	if v.Model == "" && len(v.Values) == 0 {
		return nil
	}
	if v.Model == "" {
		return fmt.Errorf("a vector of %d values has no model", len(v.Values))
	}
	sum := 0.0
	for i, x := range v.Values {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("value %d of a vector by %s is %v", i, v.Model, x)
		} else {
			sum += f * f
		}
	}
	if sum == 0 {
		return fmt.Errorf("a vector by %s has no direction", v.Model)
	}
	return nil
}

// Query is what is searched for: words, a meaning, or both. With both, the two rankings are fused.
type Query struct {
	Text   string // words in any order; what has more of them, and rarer ones, comes first. English ones that are in every text (the, is) may be passed over beside others
	Vector Vector // zero: words only
	Limit  int    // 0: 10; at most 200
	Shared bool   // search Scope.Shared too, beside the scope's own. Documents only: memories, messages and skills are searched in their scope alone
}

// Size is how many hits there are at most.
func (q Query) Size() int {
	if q.Limit <= 0 {
		return 10
	}
	return min(q.Limit, 200)
}

// ChunkHit is a chunk that was found.
type ChunkHit struct {
	Chunk
	Title  string  `json:"title,omitzero"` // of its document
	Source string  `json:"source,omitzero"`
	Score  float64 `json:"score"`           // see Fuse
	Shared bool    `json:"shared,omitzero"` // its document is kept under Scope.Shared, and was found from another scope
}

// Knowledge keeps documents in chunks. Methods may be called concurrently.
type Knowledge interface {
	// PutDocument keeps a document with its chunks in place of the one with that ID, all at once.
	PutDocument(ctx context.Context, s Scope, d Document, chunks []Chunk) (Document, error)
	// Document returns one, without its chunks.
	Document(ctx context.Context, s Scope, id string) (Document, error)
	// Chunks returns up to limit chunks of a document from index on, in order; limit 0: all.
	Chunks(ctx context.Context, s Scope, id string, from, limit int) ([]Chunk, error)
	// Documents lists them by ID.
	Documents(ctx context.Context, s Scope, p Page) ([]Document, error)
	// DeleteDocument removes one.
	DeleteDocument(ctx context.Context, s Scope, id string) error
	// SearchChunks finds chunks, the best first: those that s holds, and with q.Shared those of s.Shared(). A query with neither words nor a vector finds
	// nothing.
	SearchChunks(ctx context.Context, s Scope, q Query) ([]ChunkHit, error)
}

// fuseConstant is the k of reciprocal rank fusion; 60 in Cormack, Clarke and Büttcher, SIGIR 2009.
const fuseConstant = 60

// Fuse joins rankings of IDs, the best first, into one by reciprocal rank fusion. The score is 1 for what is first in each of them, and falls with
// the ranks; it says how far up something is, not how well it fits. Equal scores stand in the order of their IDs. An ID counts once in a ranking.
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
	slices.SortFunc(out, func(a, b Ranked) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Ranked is an ID with its score.
type Ranked struct {
	ID    string
	Score float64 // over 0, up to 1
}
