package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pawl-go/pawl/store"
)

// property tests that each scope sees its own data and nothing else, for any sequence of changes
// under any scopes.
func (s *suite[S]) property(kinds ...items) {
	for seed := range uint64(2) {
		s.ok(crossed(s.ctx, kinds, seed, 50))
	}
}

// crossed executes steps random operations. It returns an error at the first one after which a
// scope sees data of another, or not all of its own.
func crossed(ctx context.Context, kinds []items, seed uint64, steps int) error {
	p := &player{ctx: ctx, kinds: kinds, rng: rand.New(rand.NewPCG(seed, 7)),
		stored: map[store.Scope]map[string]string{}}
	// each run has its own tenant, in addition to the common one
	for _, tenant := range []string{"", fmt.Sprint("t", seed)} {
		for _, user := range []string{"", "u", "u\x01"} {
			sc := store.Scope{Tenant: fmt.Sprint(seed, tenant), User: user}
			in := sc
			in.Thread = "t"
			p.scopes = append(p.scopes, sc, in)
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
	kinds  []items
	rng    *rand.Rand
	scopes []store.Scope
	stored map[store.Scope]map[string]string
}

// pick returns a kind of items, and a scope that can have some.
func (p *player) pick() (items, store.Scope) {
	i := p.kinds[p.rng.IntN(len(p.kinds))]
	s := p.scopes[p.rng.IntN(len(p.scopes))]
	if i.flat {
		s.Thread = ""
	}
	return i, s
}

// step stores or deletes an item under a scope. An item of another scope with that name can neither
// be deleted nor cause a conflict.
func (p *player) step(step int) (string, error) {
	i, s := p.pick()
	name := string(rune('a' + p.rng.IntN(2)))
	id := i.kind + " " + name
	what := fmt.Sprintf("%s of %+v", id, s)
	if p.stored[s] == nil {
		p.stored[s] = map[string]string{}
	}
	if p.rng.IntN(3) > 0 {
		words := fmt.Sprintf("mark step%d", step)
		p.stored[s][id] = words
		return "putting " + what, i.put(p.ctx, s, name, words)
	}

	_, there := p.stored[s][id]
	delete(p.stored[s], id)
	err := i.remove(p.ctx, s, name)
	if there != (err == nil) || err != nil && !errors.Is(err, store.ErrNotFound) {
		return "removing " + what, fmt.Errorf("it was there: %v, and removing it says %v", there, err)
	}
	return "removing " + what, nil
}

// look checks, from one scope, everything of each kind that it must see.
func (p *player) look() error {
	_, s := p.pick()
	for _, i := range p.kinds {
		sc := s
		if i.flat {
			sc.Thread = ""
		}
		if err := p.lookAt(i, sc); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) lookAt(i items, s store.Scope) error {
	for _, name := range []string{"a", "b"} {
		got, err := i.get(p.ctx, s, name)
		want, there := p.stored[s][i.kind+" "+name]
		if !there && isAbsent(err) {
			continue
		}
		if !there || err != nil || got != want {
			return fmt.Errorf("%+v has the %s %q, %v, want %q", s, i.kind, got, err, want)
		}
	}
	if i.list != nil {
		own := p.words(i, func(o store.Scope) bool { return o == s })
		got, err := i.list(p.ctx, s)
		if err != nil || !sameWords(got, own) {
			return fmt.Errorf("%+v lists as %ss %q, %v, want %q", s, i.kind, got, err, own)
		}
	}

	for _, q := range i.queries() {
		seen := p.words(i, s.Holds)
		got, err := i.find(p.ctx, s, q)
		if err != nil || !sameWords(got, seen) {
			return fmt.Errorf("%+v finds the %ss %q, %v, want %q", s, i.kind, got, err, seen)
		}
	}
	return nil
}

// words returns the words of the items stored under the scopes that fit accepts.
func (p *player) words(i items, fit func(store.Scope) bool) []string {
	var out []string
	for o, all := range p.stored {
		if !fit(o) {
			continue
		}
		for id, words := range all {
			if kind, _, _ := strings.Cut(id, " "); kind == i.kind {
				out = append(out, words)
			}
		}
	}
	return out
}
