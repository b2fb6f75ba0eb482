// Package store says what is kept between runs, as small interfaces: threads of messages, documents to search, memories, skills, schedules,
// traces, artifacts and journals. Package store/sqlite keeps them in one file, store/postgres in a database; package storetest proves that an implementation is one.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	…
//	alice := store.Scope{Tenant: "acme", User: "alice"}
//	hits, err := db.SearchChunks(ctx, alice, store.Query{Text: "leave policy"})
//
// Everything is somebody's. Each method takes a Scope, and neither reads nor changes what another scope's is; there is no search over all
// scopes. There are two exceptions: a search of documents that asks for it (Query.Shared) sees what the tenant shares with all its users beside the
// user's own, see Scope.Shared; and the runner of schedules sees whose turn it is, see Schedules.
//
// A program that needs one thing asks for one interface; what implements all of them is a Store.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Scope says whose something is. The zero Scope is a scope as any other: that of a program with one user.
type Scope struct {
	Tenant string `json:"tenant,omitzero"`
	User   string `json:"user,omitzero"`
	Thread string `json:"thread,omitzero"` // in a search, "" stands for all threads of the user; nothing else is widened by being empty
}

// Holds reports whether what was kept under o is seen from s.
func (s Scope) Holds(o Scope) bool {
	return s.Tenant == o.Tenant && s.User == o.User && (s.Thread == "" || s.Thread == o.Thread)
}

// Shared is the scope of what the tenant shares: its own, without a user and without a thread. Who keeps something there gives it to all users of the
// tenant, and to nobody of another tenant. They see it where a search asks for it, and can neither change nor remove it under a scope of their own.
func (s Scope) Shared() Scope { return Scope{Tenant: s.Tenant} }

// Check reports a scope whose names no store can tell apart: longer than 256 bytes, no UTF-8, or with a NUL.
func (s Scope) Check() error {
	for _, f := range [...]struct{ what, name string }{{"tenant", s.Tenant}, {"user", s.User}, {"thread", s.Thread}} {
		if err := checkName(f.name); err != nil {
			return fmt.Errorf("scope: %s %w", f.what, err)
		}
	}
	return nil
}

// CheckID reports an identifier that no store takes: empty, longer than 256 bytes, no UTF-8, or with a NUL.
func CheckID(id string) error {
	if id == "" {
		return errors.New("the id is empty")
	}
	if err := checkName(id); err != nil {
		return fmt.Errorf("id %w", err)
	}
	return nil
}

func checkName(s string) error {
	switch {
	case len(s) > 256:
		return fmt.Errorf("has %d bytes; 256 are the most", len(s))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return fmt.Errorf("%q is no text", s)
	}
	return nil
}

var (
	// ErrNotFound is in the tree of an error for something that is not there, or is another scope's: the two are not told apart.
	ErrNotFound = errors.New("not found")
	// ErrConflict is in the tree of an error for a change to what somebody else has changed meanwhile. Read it again, and decide anew.
	ErrConflict = errors.New("changed meanwhile")
	// ErrOver is in the tree of an error for a claim to something that is done with, well or not.
	ErrOver = errors.New("over")
)

// Page is a part of a list. The zero Page is its beginning.
type Page struct {
	After string // the ID (of skills, the name) that the part before ended with; "": from the beginning
	Limit int    // 0: 100; at most 1000
}

// Size is how many entries the page has at most.
func (p Page) Size() int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, 1000)
}

// Store is all of it, in one place. Close it when nothing uses it any more.
type Store interface {
	Threads
	Knowledge
	Memories
	Skills
	Schedules
	Traces
	Artifacts
	Journal
	Close() error
}

type scopeKey struct{}

// WithScope returns a context in which tools act for s. Whoever starts a run sets it: a server for each of its users.
func WithScope(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeFrom returns the scope that ctx acts for, and false when nobody said. A tool that was given no scope refuses to run then.
func ScopeFrom(ctx context.Context) (Scope, bool) {
	s, ok := ctx.Value(scopeKey{}).(Scope)
	return s, ok
}

// ActingScope returns the scope that a tool acts for: fixed, or, when that is nil, the one of ctx; and false when nobody said.
func ActingScope(ctx context.Context, fixed *Scope) (Scope, bool) {
	if fixed != nil {
		return *fixed, true
	}
	return ScopeFrom(ctx)
}
