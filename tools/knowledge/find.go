package knowledge

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/store"
)

// Found holds the results of a search, the best first.
type Found struct {
	Documents []store.ChunkHit
	Messages  []store.MessageHit // from past conversations
	Notes     []string           // sources that could not be searched, with the reason
}

// Find searches as knowledge_search does. limit applies to documents and to conversations
// separately; 0 means 5, and the maximum is 20. s.Thread is the conversation to leave out.
func (s *Set) Find(ctx context.Context, sc store.Scope, query string, limit int) (*Found, error) {
	if limit <= 0 {
		limit = fewHits
	}
	limit = min(limit, mostHits)
	f := new(Found)
	current := sc.Thread
	sc.Thread = ""
	// twice the limit, because chunks may be duplicates
	q := store.Query{Text: query, Limit: 2 * limit, Shared: s.opts.Shared}
	if e := s.opts.Embedder; e != nil {
		v, err := store.Embed(ctx, e, store.ForQuery, query)
		switch {
		case err == nil:
			q.Vector = v[0]
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			f.Notes = append(f.Notes, fmt.Sprintf("Meaning could not be searched (%s): these were found by their words only.", line(err.Error(), 300)))
		}
	}
	hits, err := s.db.SearchChunks(ctx, sc, q)
	if err != nil {
		return nil, err
	}
	if v := q.Vector.Model; v != "" && len(hits) > 0 &&
		!slices.ContainsFunc(hits, func(h store.ChunkHit) bool { return h.Vector.Model == v }) {
		f.Notes = append(f.Notes, fmt.Sprintf("No document was taken in with the embedding model %s: these were found by their words only.", v))
	}
	seen := map[string]bool{}
	for _, h := range hits {
		if !seen[h.Text] && len(f.Documents) < limit {
			f.Documents = append(f.Documents, h)
		}
		seen[h.Text] = true
	}
	if s.opts.Threads == nil {
		return f, nil
	}
	// many may belong to the current conversation
	messages, err := s.opts.Threads.SearchMessages(ctx, sc, store.Query{Text: query, Limit: 200})
	if err != nil {
		return nil, err
	}
	for _, h := range messages {
		text := h.Message.Message.Text()
		if h.Message.Thread != current && !seen[text] && len(f.Messages) < limit {
			f.Messages = append(f.Messages, h)
			seen[text] = true
		}
	}
	return f, nil
}
