package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-go/pawl/store"
)

// part is a part of the suite of the interface S.
type part[S any] struct {
	name string
	test func(s *suite[S])
}

// suite is what a part needs: an implementation of S that only this part uses.
type suite[S any] struct {
	check
	db S
}

// check is the test of a part.
type check struct {
	reporter
	ctx context.Context
}

// reporter is the part of a test that the checks need.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// runParts runs each part over an implementation of its own.
func runParts[TT T[TT], S any](t TT, open func(t TT) S, parts []part[S]) {
	t.Helper()
	for _, p := range parts {
		t.Run(p.name, func(t TT) {
			s := &suite[S]{check{t, t.Context()}, open(t)}
			defer s.caught()
			p.test(s)
		})
	}
}

// of returns the parts of an interface as parts of the suite of a Store.
func of[S any](kind string, parts []part[S], from func(store.Store) S) []part[store.Store] {
	var out []part[store.Store]
	for _, p := range parts {
		test := func(s *suite[store.Store]) { p.test(&suite[S]{s.check, from(s.db)}) }
		out = append(out, part[store.Store]{kind + "/" + p.name, test})
	}
	return out
}

var (
	alice = store.Scope{Tenant: "acme", User: "alice"}
	bob   = store.Scope{Tenant: "acme", User: "bob"}
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// ok ends the test if err is not nil.
func (c *check) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%v", err)
	}
}

// is checks that err wraps kind.
func (c *check) is(err, kind error, what string) {
	c.Helper()
	if !errors.Is(err, kind) {
		c.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// refused checks that bad input got an error.
func (c *check) refused(err error, what string) {
	c.Helper()
	if err == nil {
		c.Errorf("%s was taken", what)
	}
}

// same checks that two values have the same JSON.
func (c *check) same(want, got any) {
	c.Helper()
	if a, b := c.json(want), c.json(got); a != b {
		c.Errorf("got %s\nwant %s", b, a)
	}
}

func (c *check) json(v any) string {
	c.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	c.ok(err)
	return string(b)
}

// failed is the value with which must panics.
type failed struct{ err error }

// must returns the value of a call that should succeed. If the call fails, the test ends.
func must[T any](v T, err error) T {
	if err != nil {
		panic(failed{err})
	}
	return v
}

// caught converts the panic of must to the end of the test.
func (c *check) caught() {
	switch v := recover().(type) {
	case nil:
	case failed:
		c.Fatalf("%v", v.err)
	default:
		panic(v)
	}
}

func only[T any](_ T, err error) error           { return err }
func second[T, U any](_ T, _ U, err error) error { return err }

// ended returns a context that has ended.
func (c *check) ended() context.Context {
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	return ctx
}
