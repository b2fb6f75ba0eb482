package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

func artifactParts() []part[store.Artifacts] {
	return []part[store.Artifacts]{
		{"life", artifactLife},
		{"scope of the context", artifactScope},
		{"limit", artifactLimit},
		{"scopes", func(s *suite[store.Artifacts]) { s.scopes(artifactItems(s.db)) }},
		{"property", func(s *suite[store.Artifacts]) { s.property(artifactItems(s.db)) }},
		{"bad input", artifactBad},
	}
}

// artifactItems are artifacts of a run each. No journal has the names of these runs, because it
// would be deleted with its artifacts.
func artifactItems(db store.Artifacts) items {
	run := func(name string) string { return "of " + name }
	return items{
		kind: "artifact",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			return db.PutArtifact(ctx, sc, run(name), pawl.Artifact{Key: "k", Text: words})
		},
		remove: func(ctx context.Context, sc store.Scope, name string) error {
			_, absent := db.Artifact(ctx, sc, run(name), "k")
			if err := db.DeleteArtifacts(ctx, sc, run(name)); err != nil {
				return err
			}
			return absent
		},
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			a, err := db.Artifact(ctx, sc, run(name), "k")
			return a.Text, err
		},
	}
}

func artifactLife(s *suite[store.Artifacts]) {
	text := pawl.Artifact{Key: "run/1/0", MIME: "text/plain", Text: "all of it: \x00 \xff héllo"}
	image := pawl.Artifact{Key: "run/1/0/m2", MIME: "image/png", Data: []byte{0x89, 0, 0xff}}
	for _, a := range []pawl.Artifact{text, image} {
		s.ok(s.db.PutArtifact(s.ctx, alice, "r", a))
		got := must(s.db.Artifact(s.ctx, alice, "r", a.Key))
		if got.Key != a.Key || got.MIME != a.MIME || got.Text != a.Text || !bytes.Equal(got.Data, a.Data) {
			s.Errorf("%+v came back as %+v", a, got)
		}
	}
	text.Text = "another"
	s.ok(s.db.PutArtifact(s.ctx, alice, "r", text))
	if got := must(s.db.Artifact(s.ctx, alice, "r", text.Key)).Text; got != "another" {
		s.Errorf("what was put in its place is %q", got)
	}
	_, err := s.db.Artifact(s.ctx, alice, "other", text.Key)
	s.is(err, store.ErrNotFound, "another run's artifact")

	s.ok(s.db.PutArtifact(s.ctx, alice, "other", image))
	s.ok(s.db.DeleteArtifacts(s.ctx, alice, "r"))
	for _, key := range []llm.Key{text.Key, image.Key} {
		_, err = s.db.Artifact(s.ctx, alice, "r", key)
		s.is(err, store.ErrNotFound, "a deleted artifact")
	}
	must(s.db.Artifact(s.ctx, alice, "other", image.Key))
	s.ok(s.db.DeleteArtifacts(s.ctx, alice, "r"))
}

// artifactScope tests that an agent's artifacts use the scope of the context.
func artifactScope(s *suite[store.Artifacts]) {
	fixed, acting := store.KeepArtifacts(s.db, &alice), store.KeepArtifacts(s.db, nil)
	a := pawl.Artifact{Key: "k", Text: "hers"}
	s.ok(fixed.Put(s.ctx, "r", a))
	if got := must(acting.Get(store.WithScope(s.ctx, alice), "r", "k")); got.Text != "hers" {
		s.Errorf("under her scope it is %+v", got)
	}
	_, err := acting.Get(store.WithScope(s.ctx, bob), "r", "k")
	s.is(err, pawl.ErrNotFound, "Bob looks for it")
	if _, err := acting.Get(s.ctx, "r", "k"); err == nil || errors.Is(err, pawl.ErrNotFound) {
		s.Errorf("without a scope: %v", err)
	}
	if err := acting.Put(context.Background(), "r", a); err == nil {
		s.Errorf("stored without a scope")
	}
}

// artifactLimit tests that the oldest artifacts of a scope are deleted when there are too many, and
// no artifacts of another scope.
func artifactLimit(s *suite[store.Artifacts]) {
	part := bytes.Repeat([]byte("0123456789abcdef"), store.MaxArtifacts/16/4)
	s.ok(s.db.PutArtifact(s.ctx, bob, "r", pawl.Artifact{Key: "his", Data: part}))
	for i := range 5 {
		s.ok(s.db.PutArtifact(s.ctx, alice, fmt.Sprint("r", i), pawl.Artifact{Key: "k", Data: part}))
	}
	_, err := s.db.Artifact(s.ctx, alice, "r0", "k")
	s.is(err, store.ErrNotFound, "the oldest of five, where four have room")
	for i := 1; i < 5; i++ {
		if got := must(s.db.Artifact(s.ctx, alice, fmt.Sprint("r", i), "k")); !bytes.Equal(got.Data, part) {
			s.Errorf("number %d came back with %d bytes", i, len(got.Data))
		}
	}
	// now it is the newest
	s.ok(s.db.PutArtifact(s.ctx, alice, "r1", pawl.Artifact{Key: "k", Data: part}))
	s.ok(s.db.PutArtifact(s.ctx, alice, "r5", pawl.Artifact{Key: "k", Text: "small"}))
	_, err = s.db.Artifact(s.ctx, alice, "r2", "k")
	s.is(err, store.ErrNotFound, "the oldest artifact")
	must(s.db.Artifact(s.ctx, alice, "r1", "k"))
	must(s.db.Artifact(s.ctx, bob, "r", "his"))
}

func artifactBad(s *suite[store.Artifacts]) {
	put := func(run string, a pawl.Artifact) error { return s.db.PutArtifact(s.ctx, alice, run, a) }
	s.refused(put("", pawl.Artifact{Key: "k", Text: "x"}), "an artifact without a run")
	s.refused(put("r", pawl.Artifact{Text: "x"}), "an artifact without a key")
	s.refused(put("r", pawl.Artifact{Key: "k", Data: make([]byte, store.MaxArtifacts+1)}),
		"an artifact that is too large")
	if err := s.db.PutArtifact(s.ended(), alice, "r", pawl.Artifact{Key: "k", Text: "x"}); err == nil {
		s.Errorf("an artifact was taken under a context that has ended")
	}
}
