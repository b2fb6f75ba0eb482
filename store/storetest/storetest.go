// Package storetest tests implementations of store.Store: one suite for all of them, including
// those outside this module.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { … a new, empty one … })
//	}
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
)

// Run runs the suite. open returns a new, empty store each time, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, part := range []struct {
		name string
		test func(*suite)
	}{
		{"threads", (*suite).threads}, {"documents", (*suite).documents}, {"search", (*suite).search}, {"vectors", (*suite).vectors}, {"hybrid", (*suite).hybrid},
		{"memories", (*suite).memories},
		{"summaries", (*suite).summaries}, {"confirmed", (*suite).confirmed},
		{"skills", (*suite).skills}, {"schedules", (*suite).schedules}, {"occurrences", (*suite).occurrences},
		{"race for an occurrence", (*suite).race}, {"traces", (*suite).traces}, {"artifacts", (*suite).artifacts},
		{"too many artifacts", (*suite).full}, {"scopes", (*suite).scopes}, {"what scopes see, as a property", (*suite).property}, {"bad input", (*suite).bad}, {"a context that ended", (*suite).ended},
	} {
		t.Run(part.name, func(t *testing.T) {
			db := open(t)
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			s := &suite{T: t, db: db, ctx: t.Context()}
			defer s.caught()
			part.test(s)
		})
	}
}

type suite struct {
	*testing.T
	db  store.Store
	ctx context.Context
}

var (
	alice = store.Scope{Tenant: "acme", User: "alice"}
	bob   = store.Scope{Tenant: "acme", User: "bob"}
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// ok ends the test if err is not nil.
func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// is checks that err wraps kind.
func (s *suite) is(err, kind error, what string) {
	s.Helper()
	if !errors.Is(err, kind) {
		s.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// same checks that two values have the same JSON.
func (s *suite) same(want, got any) {
	s.Helper()
	if a, b := asJSON(s, want), asJSON(s, got); a != b {
		s.Errorf("got %s\nwant %s", b, a)
	}
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
func (s *suite) caught() {
	switch v := recover().(type) {
	case nil:
	case failed:
		s.Fatal(v.err)
	default:
		panic(v)
	}
}
