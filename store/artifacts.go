package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/llm"
)

// MaxArtifacts is the number of bytes of artifacts that a scope can hold.
const MaxArtifacts = 64 << 20

// Artifacts stores content that was too large for a tool result, beyond the end of the process.
// KeepArtifacts converts it to pawl.Artifacts. A run's artifacts are stored under its name. Methods
// must be safe for concurrent use.
type Artifacts interface {
	// PutArtifact stores a for a run, in place of an existing one with its Key. If the scope
	// exceeds MaxArtifacts bytes, the oldest artifacts are deleted. A single artifact that is
	// larger is an error.
	PutArtifact(ctx context.Context, s Scope, run string, a pawl.Artifact) error
	// Artifact returns a stored artifact.
	Artifact(ctx context.Context, s Scope, run string, key llm.Key) (pawl.Artifact, error)
	// DeleteArtifacts deletes the artifacts of a run. It is not an error if there are none.
	DeleteArtifacts(ctx context.Context, s Scope, run string) error
}

// KeepArtifacts returns pawl.Artifacts for an agent that store artifacts in a, under scope. A nil
// scope means the scope in the context (see WithScope); without one, its methods fail.
func KeepArtifacts(a Artifacts, scope *Scope) pawl.Artifacts { return scoped{store: a, scope: scope} }

type scoped struct {
	artifact.Reader

	store Artifacts
	scope *Scope
}

var errNoScope = errors.New("there is no scope: see store.WithScope")

// Put stores a.
func (k scoped) Put(ctx context.Context, run string, a pawl.Artifact) error {
	s, ok := ActingScope(ctx, k.scope)
	if !ok {
		return fmt.Errorf("artifact %s: %w", a.Key, errNoScope)
	}
	return k.store.PutArtifact(ctx, s, run, a)
}

// Get returns a stored artifact.
func (k scoped) Get(ctx context.Context, run string, key llm.Key) (pawl.Artifact, error) {
	s, ok := ActingScope(ctx, k.scope)
	if !ok {
		return pawl.Artifact{}, fmt.Errorf("artifact %s: %w", key, errNoScope)
	}
	a, err := k.store.Artifact(ctx, s, run, key)
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("artifact %s: %w", key, pawl.ErrNotFound)
	}
	return a, err
}

// CheckArtifact returns an error for an artifact that stores do not accept. Stores call it.
func CheckArtifact(run string, a pawl.Artifact) error {
	if err := errors.Join(CheckID(run), CheckID(string(a.Key))); err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	if n := len(a.Text) + len(a.Data); n > MaxArtifacts {
		return fmt.Errorf("artifact %s: %d bytes are more than the %d that can be kept", a.Key, n, MaxArtifacts)
	}
	return nil
}
