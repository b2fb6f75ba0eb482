package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// MaxArtifacts is how many bytes of artifacts a scope keeps.
const MaxArtifacts = 64 << 20

// Artifacts keeps what was too large for a result, beyond the process: see pawl.Artifacts, which KeepArtifacts makes of it. A run's artifacts stand under
// its name. Methods may be called concurrently.
type Artifacts interface {
	// PutArtifact keeps a for a run, in place of what had its Key there. When the scope has more than MaxArtifacts bytes, those that were put first go. One
	// that is larger by itself is an error.
	PutArtifact(ctx context.Context, s Scope, run string, a pawl.Artifact) error
	// Artifact returns what was kept.
	Artifact(ctx context.Context, s Scope, run string, key llm.Key) (pawl.Artifact, error)
	// DeleteArtifacts removes what was kept for a run; it is no error when that is nothing.
	DeleteArtifacts(ctx context.Context, s Scope, run string) error
}

// KeepArtifacts gives an agent artifacts that are kept in a: those of scope, or, when that is nil, of the scope in the context (see WithScope). Where
// nobody said a scope, they fail.
func KeepArtifacts(a Artifacts, scope *Scope) pawl.Artifacts { return kept{a, scope} }

type kept struct {
	store Artifacts
	scope *Scope
}

var errNoScope = errors.New("nobody said whose it is: see store.WithScope")

// Put keeps a.
func (k kept) Put(ctx context.Context, run string, a pawl.Artifact) error {
	s, ok := ActingScope(ctx, k.scope)
	if !ok {
		return fmt.Errorf("artifact %s: %w", a.Key, errNoScope)
	}
	return k.store.PutArtifact(ctx, s, run, a)
}

// Get returns what was kept.
func (k kept) Get(ctx context.Context, run string, key llm.Key) (pawl.Artifact, error) {
	s, ok := ActingScope(ctx, k.scope)
	if !ok {
		return pawl.Artifact{}, fmt.Errorf("artifact %s: %w", key, errNoScope)
	}
	a, err := k.store.Artifact(ctx, s, run, key)
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%s: %w", key, pawl.ErrNoArtifact)
	}
	return a, err
}

// CheckArtifact reports an artifact that no store takes. Stores call it.
func CheckArtifact(run string, a pawl.Artifact) error {
	if err := errors.Join(CheckID(run), CheckID(string(a.Key))); err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	if n := len(a.Text) + len(a.Data); n > MaxArtifacts {
		return fmt.Errorf("artifact %s: %d bytes are more than the %d that can be kept", a.Key, n, MaxArtifacts)
	}
	return nil
}
