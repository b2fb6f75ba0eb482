// Package remember gives a model a memory of its user: sentences that it keeps, looks through, and forgets.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	memory := remember.New(db, nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{memory}}
//	res, err := agent.Run(store.WithScope(ctx, store.Scope{User: "alice"}), llm.User("I like tea."))
//
// A Set is a pawl.Toolset of three tools, each of which can also be offered alone:
//
//	remember       Idempotent  keeps a sentence; one that is there already is not kept twice
//	memory_list    Read        what is kept, or what fits a question
//	memory_forget  Idempotent  removes one
//
// Whose memory it is, is the program's to say, never the model's: by Options.Scope, or by the context of the run. Without either, a call is
// refused. What was remembered was once said by somebody; it is shown to the model as notes, not as instructions.
package remember

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Set is the memory tools over a store. It may be used concurrently.
type Set struct {
	Remember *pawl.Tool // remember
	List     *pawl.Tool // memory_list
	Forget   *pawl.Tool // memory_forget

	db    store.Memories
	scope *store.Scope
}

var _ pawl.Toolset = (*Set)(nil)

// Options are what New can be told. Nil and the zero value take the scope from the context of each call.
type Options struct {
	Scope *store.Scope // whose memory it is, in every run; nil: store.ScopeFrom
}

// New returns the tools over db.
func New(db store.Memories, opts *Options) *Set {
	s := &Set{db: db}
	if opts != nil {
		s.scope = opts.Scope
	}
	s.Remember, s.List, s.Forget = s.rememberTool(), s.listTool(), s.forgetTool()
	return s
}

// Tools returns the tools in the order remember, memory_list, memory_forget.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	return []*pawl.Tool{s.Remember, s.List, s.Forget}, nil
}

var errNoScope = errors.New("nothing is remembered here: the program did not say whose memory this is")

// whose returns the scope that a call acts for.
func (s *Set) whose(ctx context.Context) (store.Scope, error) {
	if sc, ok := store.ActingScope(ctx, s.scope); ok {
		return sc, nil
	}
	return store.Scope{}, errNoScope
}
