package fault

import (
	"context"
	"errors"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Artifacts returns the faults that storetest.TestArtifacts finds.
func Artifacts() []mutant.Mutant[store.Artifacts] {
	return []mutant.Mutant[store.Artifacts]{
		ofArtifacts("drops the media type", "life", func(f *artifacts) {
			next := f.onPutArtifact
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				a.MIME = ""
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("stores texts as UTF-8", "life", func(f *artifacts) {
			next := f.onPutArtifact
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				a.Text = strings.ToValidUTF8(a.Text, "?")
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("cuts texts at a NUL", "life", func(f *artifacts) {
			next := f.onPutArtifact
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				a.Text, _, _ = strings.Cut(a.Text, "\x00")
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("keeps the first of a key", "life", func(f *artifacts) {
			next, db := f.onPutArtifact, f.artifactStore
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				if _, err := db.Artifact(ctx, sc, run, a.Key); err == nil {
					return nil
				}
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("shares artifacts between runs", "life", func(f *artifacts) {
			next := f.onArtifact
			f.onArtifact = func(ctx context.Context, sc store.Scope, run string, key llm.Key) (pawl.Artifact, error) {
				a, err := next(ctx, sc, run, key)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, sc, "r", key)
				}
				return a, err
			}
		}),
		ofArtifacts("keeps deleted artifacts", "life", func(f *artifacts) {

			f.onDeleteArtifacts = func(ctx context.Context, sc store.Scope, run string) error {
				return nil
			}
		}),
		ofArtifacts("wants something to delete", "life", func(f *artifacts) {
			next, db := f.onDeleteArtifacts, f.artifactStore
			f.onDeleteArtifacts = func(ctx context.Context, sc store.Scope, run string) error {
				if _, err := db.Artifact(ctx, sc, run, "run/1/0"); err != nil {
					return err
				}
				return next(ctx, sc, run)
			}
		}),
		ofArtifacts("ignores the user", "scope of the context", func(f *artifacts) {
			next := f.onArtifact
			f.onArtifact = func(ctx context.Context, sc store.Scope, run string, key llm.Key) (pawl.Artifact, error) {
				a, err := next(ctx, sc, run, key)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, store.Scope{Tenant: "acme", User: "alice"}, run, key)
				}
				return a, err
			}
		}),
		ofArtifacts("refuses the fifth", "limit", func(f *artifacts) {
			next := f.onPutArtifact
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				if run == "r4" {
					return errors.New("full")
				}
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("deletes the newest", "limit", func(f *artifacts) {
			next, db := f.onPutArtifact, f.artifactStore
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				if run == "r4" {
					if err := db.DeleteArtifacts(ctx, sc, "r3"); err != nil {
						return err
					}
				}
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("deletes artifacts of other users", "property", func(f *artifacts) {
			next := f.onDeleteArtifacts
			f.onDeleteArtifacts = func(ctx context.Context, sc store.Scope, run string) error {
				if err := next(ctx, wider(sc), run); err != nil {
					return err
				}
				return next(ctx, sc, run)
			}
		}),
		ofArtifacts("takes an artifact without a key", "bad input", func(f *artifacts) {
			next := f.onPutArtifact
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				if a.Key == "" {
					a.Key = "none"
				}
				return next(ctx, sc, run, a)
			}
		}),
		ofArtifacts("cuts what is too large", "bad input", func(f *artifacts) {
			next := f.onPutArtifact
			f.onPutArtifact = func(ctx context.Context, sc store.Scope, run string, a pawl.Artifact) error {
				a.Data = a.Data[:min(len(a.Data), store.MaxArtifacts)]
				return next(ctx, sc, run, a)
			}
		}),
	}
}

func ofArtifacts(name, part string, replace func(f *artifacts)) mutant.Mutant[store.Artifacts] {
	return mutant.Mutant[store.Artifacts]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Artifacts) store.Artifacts { return plantArtifacts(db, replace) },
	}
}
