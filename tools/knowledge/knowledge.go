// Package knowledge lets a model search documents and past conversations, and takes documents in.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	set := knowledge.New(db, &knowledge.Options{Threads: db})
//	added, err := set.AddFile(ctx, alice, "handbook.pdf")
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{set}}
//	res, err := agent.Run(store.WithScope(ctx, alice), llm.User("How many days of leave do I have?"))
//
// A Set is a pawl.Toolset of one tool, knowledge_search, whose effect is Read. Taking in is the program's, or that of who runs pawl knowledge add.
//
//	file, page, text ─ document.Read ─▶ blocks ─ Chunks ─▶ chunks ─ Embedder ─▶ store.Knowledge
//	query ─▶ words, and its vector ─▶ store.Knowledge, store.Threads ─▶ what was found, with its source
//
// Words are always searched; with an Embedder meaning is too, and the two rankings are fused. Where the Embedder fails, words alone are searched and the
// result says so.
//
// Whose documents and conversations are searched is the program's to say, never the model's: by Options.Scope, or by the context of the run. Without
// either, a call is refused. With Options.Shared the documents that the tenant shares are searched beside the user's. All threads of the user are searched but the one that the run is in, which the model sees anyway. What was found is shown as
// quoted data, not as instructions.
package knowledge

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Set is the knowledge tool over a store, and the way in for documents. It may be used concurrently.
type Set struct {
	Search *pawl.Tool // knowledge_search

	db   store.Knowledge
	opts Options
}

var _ pawl.Toolset = (*Set)(nil)

// Options are what New can be told. Nil and the zero value search documents by their words, in the scope of the context of each call.
type Options struct {
	Scope    *store.Scope   // whose documents are searched, in every run; nil: store.ScopeFrom
	Threads  store.Threads  // past conversations; nil: they are not searched
	Embedder store.Embedder // nil: words only
	Shared   bool           // search the documents that the user's tenant shares, too: those that were taken in under store.Scope.Shared

	// Allow names what AddPage may reach although it is not public: "localhost:8080", "*.example.com", a network such as "10.1.0.0/16".
	Allow []string
}

// New returns the tool over db.
func New(db store.Knowledge, opts *Options) *Set {
	s := &Set{db: db}
	if opts != nil {
		s.opts = *opts
	}
	s.Search = s.searchTool()
	return s
}

// Tools returns knowledge_search.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) { return []*pawl.Tool{s.Search}, nil }

var errNoScope = errors.New("nothing is searched here: the program did not say whose documents these are")

// whose returns the scope that a call acts for.
func (s *Set) whose(ctx context.Context) (store.Scope, error) {
	if sc, ok := store.ActingScope(ctx, s.opts.Scope); ok {
		return sc, nil
	}
	return store.Scope{}, errNoScope
}
