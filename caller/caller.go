// Package caller has the client on whose behalf a run acts, so that tools can use that client's
// credentials in place of the agent's own.
//
// A server puts the client of a request into the context of the run that the request starts. A
// program without a server does it itself:
//
//	ctx = caller.With(ctx, caller.Caller{Name: "ann", Token: caller.Token(token)})
//	res, err := agent.Run(ctx, llm.User("Close my ticket."))
//
// A tool reads it with From. In files, ${caller.token} in a header of an http, openapi or a2a tool,
// or of an MCP server, stands for Token.
//
// The token is in memory only. A run that another process resumes has no caller until a request of
// its owner reaches it.
package caller

import (
	"context"
	"errors"
	"log/slog"
)

// Caller is a client on whose behalf a run acts.
type Caller struct {
	Name   string // of the client, such as the name of its token
	Tenant string // of the owner of the run; may be empty
	User   string // of the owner of the run; may be empty
	Token  Token  // for requests in the name of the client; empty means that it has none
}

// Field returns the field of c with a name in the form of files: name, tenant, user or token. The
// token is revealed. ok is false for any other name.
func (c Caller) Field(name string) (value string, ok bool) {
	switch name {
	case "name":
		return c.Name, true
	case "tenant":
		return c.Tenant, true
	case "user":
		return c.User, true
	case "token":
		return c.Token.Reveal(), true
	}
	return "", false
}

// Token is a credential. All ways to print, log or marshal it give [redacted].
type Token string

// redacted stands for a token.
const redacted = "[redacted]"

// Reveal returns the credential itself, to send it.
func (t Token) Reveal() string { return string(t) }

// String returns [redacted], or "" for the empty token.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return redacted
}

// GoString is String, for %#v.
func (t Token) GoString() string { return t.String() }

// MarshalText returns String, so that no JSON has the credential.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue is String, for package slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// ErrNone is in the tree of an error of a Toolset that has no tools without a caller.
var ErrNone = errors.New("no caller")

type key struct{}

// With returns a context in which tools act for c.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

type outsideKey struct{}

// OutsideRuns returns a context in which there is no run, and therefore no caller. A Toolset whose
// tools depend on the caller returns in it the tools that it knows without one, and no error: an
// agent is checked before its runs.
func OutsideRuns(ctx context.Context) context.Context {
	return context.WithValue(ctx, outsideKey{}, true)
}

// IsOutsideRuns reports whether ctx comes from OutsideRuns.
func IsOutsideRuns(ctx context.Context) bool {
	isOutside, _ := ctx.Value(outsideKey{}).(bool)
	return isOutside
}

// From returns the caller of ctx, or false if there is none.
func From(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(key{}).(Caller)
	return c, ok
}
