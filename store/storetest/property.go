package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// property tests that each scope sees its own data and nothing else, for any sequence of changes
// under any scopes.
func (s *suite) property() {
	for seed := range uint64(2) {
		if err := crossed(s.ctx, s.db, seed, 50); err != nil {
			s.Fatal(err)
		}
	}
}

// crossed executes steps random operations. It returns an error at the first one after which a
// scope sees data of another, or not all of its own.
func crossed(ctx context.Context, db store.Store, seed uint64, steps int) error {
	p := &player{ctx: ctx, db: db, rng: rand.New(rand.NewPCG(seed, 7)), stored: map[store.Scope]map[string]string{}}
	// each run has its own tenant, in addition to the common one
	for _, tenant := range []string{"", fmt.Sprint("t", seed)} {
		for _, user := range []string{"", "u", "u\x01"} {
			p.scopes = append(p.scopes, store.Scope{Tenant: fmt.Sprint(seed, tenant), User: user},
				store.Scope{Tenant: fmt.Sprint(seed, tenant), User: user, Thread: "t"})
		}
	}
	for step := range steps {
		what, err := p.step(step)
		if err == nil {
			err = p.look()
		}
		if err != nil {
			return fmt.Errorf("seed %d, step %d (%s): %w", seed, step, what, err)
		}
	}
	return nil
}

// player records what each scope must see: the words of the stored items, by kind and name.
type player struct {
	ctx    context.Context
	db     store.Store
	rng    *rand.Rand
	scopes []store.Scope
	stored map[store.Scope]map[string]string
}

// kinds defines how items of each kind are stored under a name with words, and how they are
// deleted.
var kinds = map[string]struct {
	put    func(ctx context.Context, db store.Store, s store.Scope, name, words string) error
	remove func(ctx context.Context, db store.Store, s store.Scope, name string) error
}{
	"document": {func(ctx context.Context, db store.Store, s store.Scope, name, words string) error {
		return only(db.PutDocument(ctx, s, store.Document{ID: name, Title: words},
			[]store.Chunk{{Text: words, Vector: store.Vector{Model: "m", Values: []float32{1, 2}}}}))
	}, func(ctx context.Context, db store.Store, s store.Scope, name string) error {
		return db.DeleteDocument(ctx, s, name)
	}},
	"skill": {func(ctx context.Context, db store.Store, s store.Scope, name, words string) error {
		old, err := db.Skill(ctx, s, name, 0)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return only(db.PutSkill(ctx, s, store.Skill{Name: name, Text: words, Description: words, Version: old.Version}))
	}, func(ctx context.Context, db store.Store, s store.Scope, name string) error {
		return db.DeleteSkill(ctx, s, name)
	}},
	"schedule": {func(ctx context.Context, db store.Store, s store.Scope, name, words string) error {
		old, err := db.Schedule(ctx, s, name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return only(db.PutSchedule(ctx, s, store.Schedule{ID: name, When: "daily", Name: words, Version: old.Version}))
	}, func(ctx context.Context, db store.Store, s store.Scope, name string) error {
		return db.DeleteSchedule(ctx, s, name)
	}},
	"run": {func(ctx context.Context, db store.Store, s store.Scope, name, words string) error {
		return db.PutRun(ctx, s, store.Run{ID: name, Task: words})
	}, func(ctx context.Context, db store.Store, s store.Scope, name string) error {
		return db.DeleteRun(ctx, s, name)
	}},
	"journal": {func(ctx context.Context, db store.Store, s store.Scope, name, words string) error {
		if err := db.DeleteJournal(ctx, s, name); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return only(db.BeginJournal(ctx, s, store.JournalRun{ID: name, Task: words, State: store.JournalOpen}, "me",
			noon.Add(time.Hour)))
	}, func(ctx context.Context, db store.Store, s store.Scope, name string) error {
		return db.DeleteJournal(ctx, s, name)
	}},
	"artifact": {func(ctx context.Context, db store.Store, s store.Scope, name, words string) error {
		return db.PutArtifact(ctx, s, name, pawl.Artifact{Key: "k", Text: words})
	}, func(ctx context.Context, db store.Store, s store.Scope, name string) error {
		if _, err := db.Artifact(ctx, s, name, "k"); err != nil {
			return err
		}
		return db.DeleteArtifacts(ctx, s, name)
	}},
}

// step stores or deletes an item under a scope. An item of another scope with that name can neither
// be deleted nor cause a conflict.
func (p *player) step(step int) (string, error) {
	s := p.scopes[p.rng.IntN(len(p.scopes))]
	names := slices.Sorted(maps.Keys(kinds))
	kind, name := names[p.rng.IntN(len(names))], string(rune('a'+p.rng.IntN(2)))
	id := kind + " " + name
	what := fmt.Sprintf("%s of %+v", id, s)
	if p.stored[s] == nil {
		p.stored[s] = map[string]string{}
	}
	if p.rng.IntN(3) > 0 {
		words := fmt.Sprintf("mark step%d", step)
		p.stored[s][id] = words
		return "putting " + what, kinds[kind].put(p.ctx, p.db, s, name, words)
	}
	_, there := p.stored[s][id]
	delete(p.stored[s], id)
	err := kinds[kind].remove(p.ctx, p.db, s, name)
	if there != (err == nil) || err != nil && !errors.Is(err, store.ErrNotFound) {
		return "removing " + what, fmt.Errorf("it was there: %v, and removing it says %v", there, err)
	}
	return "removing " + what, nil
}

// look checks, from one scope, everything that it must see.
func (p *player) look() error {
	s := p.scopes[p.rng.IntN(len(p.scopes))]
	own, seen := p.of(s, func(o store.Scope) bool { return o == s }), p.of(s, s.Holds)
	for _, kind := range slices.Sorted(maps.Keys(lists)) {
		got, err := lists[kind](p.ctx, p.db, s)
		if err != nil {
			return err
		}
		if want := own[kind]; !same(got, want) {
			return fmt.Errorf("%+v lists as %ss %q, want %q", s, kind, got, want)
		}
	}
	for _, name := range []string{"a", "b"} {
		a, err := p.db.Artifact(p.ctx, s, name, "k")
		if want, there := p.stored[s]["artifact "+name]; there != (err == nil) || a.Text != want {
			return fmt.Errorf("%+v has the artifact %q, %v, want %q", s, a.Text, err, want)
		}
	}
	for _, q := range []store.Query{{Text: "mark", Limit: 100},
		{Vector: store.Vector{Model: "m", Values: []float32{2, 1}}, Limit: 100}} {
		hits, err := p.db.SearchChunks(p.ctx, s, q)
		if err != nil {
			return err
		}
		var got []string
		for _, h := range hits {
			got = append(got, h.Text)
		}
		if want := seen["document"]; !same(got, want) {
			return fmt.Errorf("%+v finds %q, want %q", s, got, want)
		}
	}
	hits, err := p.db.SearchSkills(p.ctx, s, store.Query{Text: "mark", Limit: 100})
	if err != nil {
		return err
	}
	var got []string
	for _, h := range hits {
		got = append(got, h.Description)
	}
	if want := seen["skill"]; !same(got, want) {
		return fmt.Errorf("%+v finds the skills %q, want %q", s, got, want)
	}
	return nil
}

// of returns the words of the items stored under the scopes that fit accepts, by kind.
func (p *player) of(s store.Scope, fit func(store.Scope) bool) map[string][]string {
	out := map[string][]string{}
	for o, all := range p.stored {
		if !fit(o) {
			continue
		}
		for id, words := range all {
			kind, _, _ := strings.Cut(id, " ")
			out[kind] = append(out[kind], words)
		}
	}
	return out
}

func same(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// lists returns the words of all items that a scope lists, by kind.
var lists = map[string]func(ctx context.Context, db store.Store, s store.Scope) ([]string, error){
	"document": func(ctx context.Context, db store.Store, s store.Scope) ([]string, error) {
		return wordsOf(func(v store.Document) string { return v.Title })(db.Documents(ctx, s, store.Page{}))
	},
	"skill": func(ctx context.Context, db store.Store, s store.Scope) ([]string, error) {
		return wordsOf(func(v store.Skill) string { return v.Description })(db.Skills(ctx, s, store.Page{}))
	},
	"schedule": func(ctx context.Context, db store.Store, s store.Scope) ([]string, error) {
		return wordsOf(func(v store.Schedule) string { return v.Name })(db.Schedules(ctx, s, store.Page{}))
	},
	"run": func(ctx context.Context, db store.Store, s store.Scope) ([]string, error) {
		return wordsOf(func(v store.Run) string { return v.Task })(db.Runs(ctx, s, store.Page{}))
	},
	"journal": func(ctx context.Context, db store.Store, s store.Scope) ([]string, error) {
		return wordsOf(func(v store.JournalRun) string { return v.Task })(db.JournalRuns(ctx, s, "", store.Page{}))
	},
}

func wordsOf[T any](words func(T) string) func([]T, error) ([]string, error) {
	return func(all []T, err error) ([]string, error) {
		var out []string
		for _, v := range all {
			out = append(out, words(v))
		}
		return out, err
	}
}
