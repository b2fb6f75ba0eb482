// Package skill gives a model skills: texts that teach how something is done, which it finds, reads, writes and improves.
//
//	skills, err := skill.New(db, &skill.Options{Dirs: []string{"skills"}})
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{skills}}
//
// A Set is a pawl.Toolset of four tools, each of which can also be offered alone:
//
//	skill_search  Read   what there is for a task: names and descriptions
//	skill_load    Read   the text of one, or a file beside it
//	skill_create  Write  keeps a new one
//	skill_update  Write  changes one; the old versions stay
//
// Skills come from two places. Folders hold them as the ecosystem does, DIR/NAME/SKILL.md with a head of name and description, and
// other files beside it; the model cannot change these. The others are in a store, each under the scope of who made it: by Options.Scope, or
// by the context of the run. A name is unique for its owner, and a folder's name cannot be taken.
package skill

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Set is the skill tools. It may be used concurrently. Close it when no call runs any more.
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

// Options are what New can be told. Nil and the zero value read no folders, and take the scope from the context of each call.
type Options struct {
	Dirs  []string     // folders of skills; of two with one name the first counts
	Scope *store.Scope // whose skills they are, in every run; nil: store.ScopeFrom
}

// New returns the tools over db, which may be nil: then there are only the skills of Options.Dirs, and none can be made. The error is for the
// person who runs the program: a folder that is not there, a skill without a name.
func New(db store.Skills, opts *Options) (*Set, error) {
	s := &Set{db: db}
	if opts != nil {
		s.scope = opts.Scope
		var err error
		if s.folders, err = openFolders(opts.Dirs); err != nil {
			return nil, fmt.Errorf("skill tools: %w", err)
		}
	}
	s.Search, s.Load = s.searchTool(), s.loadTool()
	if db != nil {
		s.Create, s.Update = s.createTool(), s.updateTool()
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

// Close lets the folders go.
func (s *Set) Close() error { return s.folders.close() }

var errNoScope = errors.New("there are no stored skills here: the program did not say whose they are")

// whose returns the scope that a call acts for.
func (s *Set) whose(ctx context.Context) (store.Scope, error) {
	if sc, ok := store.ActingScope(ctx, s.scope); ok {
		return sc, nil
	}
	return store.Scope{}, errNoScope
}
