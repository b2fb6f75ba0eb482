package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pawl-go/pawl/store"
)

// items is how the items of one interface are stored and seen: each has a name and words.
type items struct {
	kind string
	flat bool // a scope with a Thread has no such items
	// put stores an item, in place of an existing one with that name.
	put func(ctx context.Context, sc store.Scope, name, words string) error
	// remove deletes an item. It returns ErrNotFound if the scope has none with that name.
	remove func(ctx context.Context, sc store.Scope, name string) error
	// get returns the words of an item.
	get func(ctx context.Context, sc store.Scope, name string) (string, error)
	// list returns the words of all items of a scope; nil means that there are no lists.
	list func(ctx context.Context, sc store.Scope) ([]string, error)
	// find returns the words of the items that a search finds; nil means that there is none.
	find func(ctx context.Context, sc store.Scope, q store.Query) ([]string, error)
	// vectors means that find uses the vector of a query.
	vectors bool
}

func isAbsent(err error) bool { return errors.Is(err, store.ErrNotFound) }

// vector is the vector of items that have one.
var vector = store.Vector{Model: "m", Values: []float32{1, 2}}

// queries finds the items whose words begin with "mark".
func (i items) queries() []store.Query {
	if i.find == nil {
		return nil
	}
	queries := []store.Query{{Text: "mark", Limit: 200}}
	if i.vectors {
		queries = append(queries, store.Query{Vector: vector, Limit: 200}, store.Query{Text: "mark",
			Vector: vector, Limit: 200})
	}
	return queries
}

// similarScopes returns scopes with similar names.
func similarScopes() []store.Scope {
	var all []store.Scope
	for _, tenant := range []string{"", "a", "ab", "%"} { // documents that these tenants share
		all = append(all, store.Scope{Tenant: tenant})
	}
	names := []string{"", "a", "b", "A", "a ", "ab", "%", "_", "'", "a'b", "*", "a/b"}
	rng := rand.New(rand.NewPCG(3, 4))
	for len(all) < 28 {
		sc := store.Scope{
			Tenant: names[rng.IntN(len(names))],
			User:   names[rng.IntN(len(names))],
			Thread: names[rng.IntN(3)],
		}
		if !slices.Contains(all, sc) {
			all = append(all, sc)
		}
	}
	return all
}

func where(sc store.Scope) string { return fmt.Sprintf("mark %q %q %q", sc.Tenant, sc.User, sc.Thread) }

// scopes stores the same items under many scopes with similar names, and looks for all of them from
// each scope. A scope finds exactly the items that it holds.
func (s *suite[S]) scopes(i items) {
	var all []store.Scope
	for _, sc := range similarScopes() {
		if i.flat && sc.Thread != "" {
			continue
		}
		all = append(all, sc)
		s.ok(i.put(s.ctx, sc, "d", where(sc)))
	}

	for _, sc := range all {
		if got := must(i.get(s.ctx, sc, "d")); got != where(sc) {
			s.Errorf("the %s of %s is the one of %s", i.kind, where(sc), got)
		}
		if i.list != nil {
			if got := must(i.list(s.ctx, sc)); len(got) != 1 || got[0] != where(sc) {
				s.Errorf("%s lists %q", where(sc), got)
			}
		}
		for _, q := range i.queries() {
			s.finds(i, sc, q, held(sc, all))
			q.Shared = true // it applies to documents only, which have a part of their own
			if i.kind != "document" {
				s.finds(i, sc, q, held(sc, all))
			}
		}
	}

	// What one scope deletes stays in all others.
	gone := all[len(all)/2]
	s.ok(i.remove(s.ctx, gone, "d"))
	s.is(i.remove(s.ctx, gone, "d"), store.ErrNotFound, "deleting twice")
	for _, sc := range all {
		if _, err := i.get(s.ctx, sc, "d"); isAbsent(err) != (sc == gone) {
			s.Errorf("after %s deleted its %s, the one of %s: %v", where(gone), i.kind, where(sc), err)
		}
	}
}

// held returns the words of the scopes that sc holds.
func held(sc store.Scope, all []store.Scope) []string {
	var out []string
	for _, o := range all {
		if sc.Holds(o) {
			out = append(out, where(o))
		}
	}
	return out
}

func (s *suite[S]) finds(i items, sc store.Scope, q store.Query, want []string) {
	s.Helper()
	got := must(i.find(s.ctx, sc, q))
	if !sameWords(got, want) {
		s.Errorf("%ss from %s: found %q, want %q", i.kind, where(sc), got, want)
	}
}

func sameWords(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// wordsOf returns the words of the items of a list.
func wordsOf[T any](words func(T) string) func([]T, error) ([]string, error) {
	return func(all []T, err error) ([]string, error) {
		var out []string
		for _, v := range all {
			out = append(out, words(v))
		}
		return out, err
	}
}
