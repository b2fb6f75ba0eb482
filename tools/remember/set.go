// Package remember provides tools that give a model a memory of its user: sentences that it stores,
// searches and deletes.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	memory := remember.New(db, nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{memory}}
//	ctx = store.WithScope(ctx, store.Scope{User: "alice"})
//	res, err := agent.Run(ctx, llm.User("I like tea."))
//
// A Set is a pawl.Toolset of three tools. Each of them can also be offered alone:
//
//	remember       EffectIdempotent  stores a sentence; an existing one is not stored twice
//	memory_list    EffectRead        lists all memories, or the memories that match a question
//	memory_forget  EffectIdempotent  deletes one
//
// The program decides whose memory it is, never the model: by Options.Scope, or by the context of
// the run. Without either, a call is refused. A memory was written by a person or a model at some
// time, so it is shown to the model as notes, not as instructions.
package remember

import (
	"context"
	"embed"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

// Set holds the memory tools over a store. It is safe for concurrent use.
type Set struct {
	Remember *pawl.Tool // remember
	List     *pawl.Tool // memory_list
	Forget   *pawl.Tool // memory_forget

	db    store.Memories
	scope *store.Scope
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value take the scope from the context of each
// call.
type Options struct {
	Scope *store.Scope // owner of the memory in every run; nil means store.ScopeFrom
}

// New returns the tools over db.
func New(db store.Memories, opts *Options) *Set {
	s := &Set{db: db}
	if opts != nil {
		s.scope = opts.Scope
	}
	s.Remember = toolrun.Define(definitions, "remember", &pawl.Tool{Name: "remember", Effect: pawl.EffectIdempotent,
		Run: scoped(s, s.remember)})
	s.List = toolrun.Define(definitions, "list", &pawl.Tool{Name: "memory_list", Effect: pawl.EffectRead,
		Run: scoped(s, s.list)})
	s.Forget = toolrun.Define(definitions, "forget", &pawl.Tool{Name: "memory_forget", Effect: pawl.EffectIdempotent,
		Run: scoped(s, s.forget)})
	return s
}

// Tools returns the tools in the order remember, memory_list, memory_forget.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	return []*pawl.Tool{s.Remember, s.List, s.Forget}, nil
}

// scoped returns a tool function that calls fn with the owner of the memory.
func scoped[A any](s *Set, fn func(context.Context, store.Scope, A) (llm.ToolResult, error)) pawl.ToolFunc {
	return toolrun.Func(func(ctx context.Context, a A) (llm.ToolResult, error) {
		scope, ok := store.ActingScope(ctx, s.scope)
		if !ok {
			return llm.ToolResult{}, errors.New("nothing is remembered here: the program did not say whose memory this is")
		}
		return fn(ctx, scope, a)
	})
}
