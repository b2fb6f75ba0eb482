// Package knowledge provides a tool that searches documents and past conversations, and functions
// that add documents.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	set := knowledge.New(db, &knowledge.Options{Threads: db})
//	added, err := set.AddFile(ctx, alice, "handbook.pdf")
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{set}}
//	ctx = store.WithScope(ctx, alice)
//	res, err := agent.Run(ctx, llm.User("How many days of leave do I have?"))
//
// A Set is a pawl.Toolset of one tool, knowledge_search, whose effect is EffectRead. Documents are
// added by the program or by the command pawl knowledge add, never by the model.
//
//	file, page, text ─ document.Read ─▶ blocks ─ Chunks ─▶ chunks ─ Embedder ─▶ store.Knowledge
//	query ─▶ words, and its vector ─▶ store.Knowledge, store.Threads ─▶ hits with their sources
//
// Words are always searched. With an Embedder, meaning is searched as well, and the two rankings
// are fused. If the Embedder fails, only words are searched and the result says so.
//
// The program decides whose documents and conversations are searched, never the model: by
// Options.Scope, or by the context of the run. Without either, a call is refused. With
// Options.Shared, the documents that the tenant shares are searched in addition to the user's own.
// All threads of the user are searched except the current one, which the model sees anyway. Hits
// are shown as quoted data, not as instructions.
package knowledge

import (
	"cmp"
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// Set holds the knowledge tool over a store and the functions that add documents. It is safe for
// concurrent use.
type Set struct {
	Search *pawl.Tool // knowledge_search

	db   store.Knowledge
	opts Options
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value search documents by their words, in the
// scope of the context of each call.
type Options struct {
	Scope    *store.Scope   // owner of the documents in every run; nil means store.ScopeFrom
	Threads  store.Threads  // past conversations; nil means that they are not searched
	Embedder store.Embedder // nil means that only words are searched
	// Shared also searches the documents that the user's tenant shares, which were added under
	// store.Scope.Shared.
	Shared bool

	// Allow lists hosts that AddPage may reach although they are not public: "localhost:8080",
	// "*.example.com", a network such as "10.1.0.0/16".
	Allow []string
}

// New returns the tool over db. Nil options take the defaults.
func New(db store.Knowledge, opts *Options) *Set {
	s := &Set{db: db}
	s.opts = *cmp.Or(opts, new(Options))
	// The result is bounded by maxShown.
	s.Search = toolrun.Define(definitions, "search", &pawl.Tool{Name: "knowledge_search", Effect: pawl.EffectRead,
		MaxResult: -1, Run: toolrun.Func(s.search)})
	return s
}

// Tools returns knowledge_search.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) { return []*pawl.Tool{s.Search}, nil }
