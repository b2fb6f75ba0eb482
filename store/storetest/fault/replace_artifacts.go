package fault

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// artifactStore has a name that is no method of the interface, unlike Artifacts.
type artifactStore = store.Artifacts

// artifacts is a store.Artifacts whose methods a fault replaces.
type artifacts struct {
	artifactStore
	onPutArtifact     func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error
	onArtifact        func(ctx context.Context, sc store.Scope, run string, key llm.Key) (pawl.Artifact, error)
	onDeleteArtifacts func(ctx context.Context, sc store.Scope, run string) error
}

// plantArtifacts returns db with a fault. replace sets the methods that have it.
func plantArtifacts(db store.Artifacts, replace func(f *artifacts)) store.Artifacts {
	f := &artifacts{
		artifactStore:     db,
		onPutArtifact:     db.PutArtifact,
		onArtifact:        db.Artifact,
		onDeleteArtifacts: db.DeleteArtifacts,
	}
	replace(f)
	return f
}

func (f *artifacts) PutArtifact(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
	return f.onPutArtifact(ctx, sc, run, a)
}

func (f *artifacts) Artifact(ctx context.Context, sc store.Scope, run string, key llm.Key) (pawl.Artifact, error) {
	return f.onArtifact(ctx, sc, run, key)
}

func (f *artifacts) DeleteArtifacts(ctx context.Context, sc store.Scope, run string) error {
	return f.onDeleteArtifacts(ctx, sc, run)
}
