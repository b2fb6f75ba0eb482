// Package skill provides tools with which a model finds, reads, writes and improves skills: texts
// that explain how to do something.
//
//	skills, err := skill.New(db, &skill.Options{Dirs: []string{"skills"}})
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{skills}}
//
// A Set is a pawl.Toolset of four tools. Each of them can also be offered alone:
//
//	skill_search  EffectRead   finds skills for a task: names and descriptions
//	skill_load    EffectRead   returns the text of a skill, or one of its other files
//	skill_create  EffectWrite  stores a new skill
//	skill_update  EffectWrite  changes a skill; its old versions stay
//
// Skills come from two places. Folders contain skills in the common format: DIR/NAME/SKILL.md with
// a name and a description in its front matter, and other files next to it. The model cannot change
// these. All other skills are in a store, in the scope of their owner: by Options.Scope, or by the
// context of the run. A name is unique for its owner, and the name of a folder cannot be used for
// another skill.
package skill

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

// Set holds the skill tools. It is safe for concurrent use. Close it when no call is running any
// more.
type Set struct {
	Search *pawl.Tool // skill_search
	Load   *pawl.Tool // skill_load
	Create *pawl.Tool // skill_create; nil without a store
	Update *pawl.Tool // skill_update; nil without a store

	db      store.Skills
	scope   *store.Scope
	folders folders
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value read no folders and take the scope from
// the context of each call.
type Options struct {
	Dirs  []string     // folders of skills; of two skills with the same name the first is used
	Scope *store.Scope // owner of the skills in every run; nil means store.ScopeFrom
}

// New returns the tools over db. If db is nil, there are only the skills of Options.Dirs, and no
// skill can be created. The error is meant for the operator: a folder does not exist, or a skill
// has no name.
func New(db store.Skills, opts *Options) (*Set, error) {
	s := &Set{db: db}
	if opts != nil {
		s.scope = opts.Scope
		var err error
		s.folders, err = openFolders(opts.Dirs)
		if err != nil {
			return nil, fmt.Errorf("skill tools: %w", err)
		}
	}
	s.Search = toolrun.Define(definitions, "search", &pawl.Tool{Name: "skill_search", Effect: pawl.EffectRead,
		Run: toolrun.Func(s.search)})
	// The size of a file is bounded.
	s.Load = toolrun.Define(definitions, "load", &pawl.Tool{Name: "skill_load", Effect: pawl.EffectRead, MaxResult: -1,
		Run: toolrun.Func(s.load)})
	if db != nil {
		s.Create = toolrun.Define(definitions, "create", &pawl.Tool{Name: "skill_create", Effect: pawl.EffectWrite,
			Serial: serial, Run: toolrun.Func(s.create)}, "namePattern", `"`+namePattern+`"`)
		s.Update = toolrun.Define(definitions, "update", &pawl.Tool{Name: "skill_update", Effect: pawl.EffectWrite,
			Serial: serial, Run: toolrun.Func(s.update)}, "namePattern", `"`+namePattern+`"`)
	}
	return s, nil
}

// Tools returns the tools in the order skill_search, skill_load, skill_create, skill_update.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	if s.db == nil {
		return []*pawl.Tool{s.Search, s.Load}, nil
	}
	return []*pawl.Tool{s.Search, s.Load, s.Create, s.Update}, nil
}

// Close closes the folders.
func (s *Set) Close() error { return s.folders.close() }

// errNoScope ends a run: only its program can say whose skills are stored.
var errNoScope = pawl.AbortError(errors.New("there are no stored skills here: the program did not say whose they are; " +
	"set store.WithScope in the context of the run, or Options.Scope"))

// whose returns the scope that a call uses.
func (s *Set) whose(ctx context.Context) (store.Scope, error) {
	if sc, ok := store.ActingScope(ctx, s.scope); ok {
		return sc, nil
	}
	return store.Scope{}, errNoScope
}
