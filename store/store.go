// Package store defines small interfaces for persistent data: threads of messages, documents to
// search, memories, skills, schedules, traces, artifacts and journals. Package store/sqlite stores
// them in one file, store/postgres in a database. Package storetest tests implementations.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	…
//	alice := store.Scope{Tenant: "acme", User: "alice"}
//	hits, err := db.SearchChunks(ctx, alice, store.Query{Text: "leave policy"})
//
// All data belongs to a scope. Each method takes a Scope and neither reads nor changes the data of
// another scope; there is no search over all scopes. There are two exceptions. A search of
// documents with Query.Shared also finds the documents that the tenant shares with all its users
// (see Scope.Shared). The runner of schedules sees the due schedules of all scopes (see Schedules).
//
// A program that needs one kind of data depends on one interface. A Store implements all of them.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Scope identifies the owner of data. The zero Scope is a scope like any other, for programs with
// one user.
type Scope struct {
	Tenant string `json:"tenant,omitzero"` // an organization; "" for programs with one
	User   string `json:"user,omitzero"`   // a user of the tenant; "" for data of all its users
	// In a search, an empty Thread means all threads of the user. No other empty field means all.
	Thread string `json:"thread,omitzero"`
}

// Holds reports whether data stored under o is visible from s.
func (s Scope) Holds(o Scope) bool {
	return s.Tenant == o.Tenant && s.User == o.User && (s.Thread == "" || s.Thread == o.Thread)
}

// Shared returns the scope of the data that the tenant shares: the scope of the tenant without user
// and thread. Data stored there is available to all users of the tenant and to no other tenant.
// Users see it in searches with Query.Shared, and can neither change nor delete it under their own
// scope.
func (s Scope) Shared() Scope { return Scope{Tenant: s.Tenant} }

// Check returns an error for a scope whose names stores cannot distinguish: longer than 256 bytes,
// not UTF-8, or with a NUL.
func (s Scope) Check() error {
	for _, f := range [...]struct{ what, name string }{{"tenant", s.Tenant}, {"user", s.User}, {"thread", s.Thread}} {
		if err := checkName(f.name); err != nil {
			return fmt.Errorf("scope: %s %w", f.what, err)
		}
	}
	return nil
}

// CheckID returns an error for an identifier that stores do not accept: empty, longer than 256
// bytes, not UTF-8, or with a NUL.
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
		return fmt.Errorf("has %d bytes; at most 256 are allowed", len(s))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return fmt.Errorf("%q is no text", s)
	}
	return nil
}

var (
	// ErrNotFound is wrapped by errors about data that does not exist or belongs to another scope.
	// The two cases are not distinguished.
	ErrNotFound = errors.New("not found")
	// ErrConflict is wrapped by errors about data that was changed concurrently. Read the data
	// again and decide anew.
	ErrConflict = errors.New("changed concurrently")
	// ErrOver is wrapped by errors about a claim to an occurrence that has ended, successfully or
	// not.
	ErrOver = errors.New("over")
	// ErrUnavailable is wrapped by errors of a database that does not work at present: its disk is
	// full or has failed, another process locks it, or its server cannot be reached. The same call
	// may succeed later.
	ErrUnavailable = errors.New("the database is not available")
)

// Page is a part of a list. The zero Page is its beginning.
type Page struct {
	// After is the last ID (for skills, the last name) of the previous page. Empty means from the
	// beginning.
	After string
	Limit int // 0 means 100; at most 1000
}

// Size returns the maximum number of entries of the page.
func (p Page) Size() int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, 1000)
}

// Store combines all interfaces. Close it when it is no longer used.
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

// Compacter is a Store, or a part of one, whose files keep the remains of deleted data until
// Compact removes them: sqlite.DB. A PostgreSQL server removes the remains when it vacuums.
type Compacter interface {
	// Compact removes the remains of deleted data. It may copy the whole database, and writes wait
	// meanwhile. The error is ErrUnavailable if another process prevents it; it may succeed later.
	Compact(ctx context.Context) error
}

type scopeKey struct{}

// WithScope returns a context in which tools use the scope s. The code that starts a run sets it: a
// server for each of its users.
func WithScope(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeFrom returns the scope of ctx, or false if there is none. A tool without a scope then
// refuses to run.
func ScopeFrom(ctx context.Context) (Scope, bool) {
	s, ok := ctx.Value(scopeKey{}).(Scope)
	return s, ok
}

// ActingScope returns the scope that a tool uses: fixed or, if fixed is nil, the scope of ctx. It
// returns false if there is none.
func ActingScope(ctx context.Context, fixed *Scope) (Scope, bool) {
	if fixed != nil {
		return *fixed, true
	}
	return ScopeFrom(ctx)
}
