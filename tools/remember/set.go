// Package remember gives a model a memory of its user: sentences that are stored, found again at
// the start of later turns, and deleted.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	memory := remember.New(db, nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{memory},
//		Middleware: []pawl.Middleware{memory.Middleware()}}
//	ctx = store.WithScope(ctx, store.Scope{User: "alice"})
//	res, err := agent.Run(ctx, llm.User("I like tea."))
//
// A Set is a pawl.Toolset of three tools. Each of them can also be offered alone:
//
//	remember       EffectIdempotent  stores a sentence; an existing one is not stored twice
//	memory_list    EffectRead        lists all memories, or the memories that match a question
//	memory_forget  EffectIdempotent  deletes one
//
// The middleware recalls the memories that fit a message of the user, and decides what may be
// written. Both are optional.
//
// The program decides whose memory it is, never the model: by Options.Scope, or by the context of
// the run. Without either, a call is refused. A memory was written by a person or a model at some
// time, so it is shown to the model as notes, not as instructions. What is written while a result
// from outside stands in the conversation is unconfirmed: people see it, and no model does.
package remember

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/conversation"
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

	opts Options
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value take the scope from the context of each
// call.
type Options struct {
	Scope    *store.Scope   // owner of the memory in every run; nil means store.ScopeFrom
	Embedder store.Embedder // nil means that memories are found by their words only
	// Agent is the name of the only agent that sees what this set stores. The set also shows what
	// all agents of the user see. Empty means that all see what this set stores.
	Agent string
	// Open opens the store at its first use, in place of the db of New. nil means db.
	Open func() (store.Memories, error)
	// Trusted are tools, or patterns, in whose results no stranger writes, in addition to this
	// package and todo. All other results are from outside.
	Trusted []string
	// NoRecall means that the middleware recalls nothing.
	NoRecall bool
	// Write is tool, end or ask. Empty means tool.
	//
	//   - tool: only the tool remember writes. The middleware lets a call wait for approval if a
	//     result from outside stands in the conversation.
	//   - end: in addition, the model is asked after an answer for at most 5 sentences, by the
	//     message of the user and the answer alone, and in a thread (pawl.RunOptions.Thread) for
	//     the summary of the conversation, which replaces the one before.
	//   - ask: as end, and a person agrees to every memory before a model is shown it.
	Write string
}

// New returns the tools over db.
func New(db store.Memories, opts *Options) *Set {
	s := new(Set)
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Open == nil {
		s.opts.Open = func() (store.Memories, error) { return db, nil }
	}
	s.opts.Trusted = append([]string{"remember", "memory_*", "todo"}, s.opts.Trusted...)
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

// Middleware returns the middleware that recalls memories at the start of a turn, by a call of
// memory_list, and that writes as Options.Write says.
func (s *Set) Middleware() pawl.Middleware {
	m := pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{
			Verdict: pawl.VerdictAsk,
			Reason:  "it counts in later conversations, and may come of a result from outside",
		}, nil
	})
	m.Approved = func(next pawl.ToolFunc) pawl.ToolFunc {
		return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			return next(context.WithValue(ctx, agreed{}, true), call)
		}
	}
	m = m.For(s.asks)
	m.Model = func(inner llm.Model) llm.Model { return &model{inner, s} }
	return m
}

// agreed marks the context of a call of remember that a person has approved.
type agreed struct{}

// asks reports whether a call waits for a person. A call within another one does not, and is stored
// as unconfirmed.
func (s *Set) asks(ctx context.Context, call llm.ToolCall) bool {
	v := pawl.InvocationFrom(ctx)
	if v == nil || call.Name != s.Remember.Name || depth(v.Key) != 2 {
		return false
	}
	return s.opts.Write == "ask" || s.heard(ctx, v)
}

// depth returns 2 for the key of a call or a request of a run, more within another call, and 0
// outside of runs.
func depth(k llm.Key) int { return strings.Count(string(k), "/") }

// heard reports whether what the call v writes may be the words of others.
func (s *Set) heard(ctx context.Context, v *pawl.Invocation) bool {
	msgs := v.Messages()
	if len(msgs) == 0 { // another process executes the call
		msgs = conversation.Of(ctx)
	}
	return len(msgs) == 0 || depth(v.Key) > 2 || s.outside(msgs)
}

// outside reports whether msgs have a part in which others may write: a result, a text of the model
// that came of others, such as a reply in a client's copy of a conversation, or an attachment.
func (s *Set) outside(msgs []llm.Message) bool {
	ours := map[string]bool{} // by the ID of the call
	for _, m := range msgs {
		for _, c := range m.Calls() {
			ours[c.ID] = s.trusts(c.Name)
		}
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				if !ours[r.CallID] {
					return true
				}
				continue
			}
			l, ok := llm.Message{Parts: []llm.Part{p}}.Label()
			if ok && l.By < llm.Trusted && !s.onlyOurs(l.From) {
				return true
			}
		}
	}
	return false
}

// trusts reports whether no stranger writes in the results of a tool.
func (s *Set) trusts(tool string) bool {
	return slices.ContainsFunc(s.opts.Trusted, func(name string) bool {
		ok, _ := path.Match(name, tool)
		return ok
	})
}

// onlyOurs reports whether the sources of a text are known, and all of them are trusted tools.
func (s *Set) onlyOurs(from []llm.Source) bool {
	isForeign := func(f llm.Source) bool { return f.Kind != "tool" || !s.trusts(f.Name) }
	return len(from) > 0 && !slices.ContainsFunc(from, isForeign)
}

// scoped returns a tool function that calls fn with the store and the owner of the memory.
func scoped[A any](s *Set, fn func(context.Context, place, A) (llm.ToolResult, error)) pawl.ToolFunc {
	return toolrun.Func(func(ctx context.Context, a A) (llm.ToolResult, error) {
		p, err := s.place(ctx)
		if err != nil {
			return llm.ToolResult{}, err
		}
		return fn(ctx, p, a)
	})
}

// place is the store with the owner of the memory.
type place struct {
	store.Memories
	scope store.Scope
}

// errNoScope ends a run: only its program can say whose memory it is.
var errNoScope = pawl.AbortError(errors.New("nothing is remembered here: the program did not say whose memory this is; " +
	"set store.WithScope in the context of the run, or Options.Scope"))

func (s *Set) place(ctx context.Context) (p place, err error) {
	var ok bool
	p.scope, ok = store.ActingScope(ctx, s.opts.Scope)
	if !ok {
		return p, errNoScope
	}
	p.Memories, err = s.opts.Open()
	return p, err
}

// ours reports whether a memory is for all agents or for the agent of this set.
func (s *Set) ours(m store.Memory) bool {
	return m.Source.Agent == "" || m.Source.Agent == s.opts.Agent
}

// sees reports whether a model is shown a memory.
func (s *Set) sees(m store.Memory) bool { return s.ours(m) && !m.Source.Unconfirmed }

// maxMemories is the number of memories of a scope. Beyond it a new memory replaces an old one of
// the agent that has most: an unconfirmed memory, else a summary of a conversation, else the
// oldest. Storing a text again renews it.
const maxMemories = 1000

// stored is a memory after it was stored.
type stored struct {
	store.Memory
	added     bool
	forgotten *store.Memory // deleted to make room; nil means none
}

// add stores m with its vector.
func (s *Set) add(ctx context.Context, p place, m store.Memory) (now stored, err error) {
	m.Source.Agent, m.Vector = s.opts.Agent, s.vector(ctx, store.ForDocument, m.Text)
	all, err := p.Memories.Memories(ctx, p.scope, store.Page{Limit: maxMemories})
	if err != nil {
		return now, err
	}
	now.Memory, now.added, err = p.AddMemory(ctx, p.scope, m)
	if err != nil || !now.added || len(all) < maxMemories {
		return now, err
	}

	old := leastWorth(all)
	now.forgotten = &old
	return now, p.ForgetMemory(ctx, p.scope, old.ID)
}

// leastWorth returns the memory that a new one replaces.
func leastWorth(all []store.Memory) store.Memory {
	count := map[string]int{} // by agent
	for _, o := range all {
		count[o.Source.Agent]++
	}
	worth := func(m store.Memory) int {
		switch {
		case m.Source.Unconfirmed:
			return 0
		// A model can write the summary of a conversation again, and not what the user said.
		case m.Source.Thread != "":
			return 1
		case m.Source.Always:
			return 3
		}
		return 2
	}

	// The agent with the most memories loses one first: an agent that remembers everything must not
	// push out the others.
	return slices.MinFunc(all, func(a, b store.Memory) int {
		return cmp.Or(count[b.Source.Agent]-count[a.Source.Agent], worth(a)-worth(b), a.Created.Compare(b.Created))
	})
}

// vector returns the vector of a text. Without one, memories are found by their words.
func (s *Set) vector(ctx context.Context, use store.Use, text string) (v store.Vector) {
	if s.opts.Embedder != nil && strings.TrimSpace(text) != "" {
		if all, err := store.Embed(ctx, s.opts.Embedder, use, text); err == nil {
			v = all[0]
		}
	}
	return v
}
