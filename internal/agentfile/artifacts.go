package agentfile

// artifacts.go: artifacts, which stores what is too large of the results of an agent.

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// artifacts stores what is too large in the agent's database if that is open, such as in a durable
// run, and otherwise in memory. A plain run does not make a database for it.
type artifacts struct {
	artifact.Reader

	db     *Database
	memory artifact.Memory
}

var _ pawl.Artifacts = (*artifacts)(nil)

// Put stores a.
func (s *artifacts) Put(ctx context.Context, run string, a pawl.Artifact) error {
	if stored := s.stored(); stored != nil {
		return stored.Put(ctx, run, a)
	}
	return s.memory.Put(ctx, run, a)
}

// Get returns a stored artifact. The database may have been opened after it was stored.
func (s *artifacts) Get(ctx context.Context, run string, key llm.Key) (pawl.Artifact, error) {
	if stored := s.stored(); stored != nil {
		a, err := stored.Get(ctx, run, key)
		if !errors.Is(err, pawl.ErrNotFound) {
			return a, err
		}
	}
	return s.memory.Get(ctx, run, key)
}

// stored returns the artifacts of the database, or nil if it is not open.
func (s *artifacts) stored() pawl.Artifacts {
	db := s.db.current()
	if db == nil {
		return nil
	}
	scope := s.db.at.Scope()
	return store.KeepArtifacts(db, &scope)
}
