// Package callermcp connects to an MCP server in the name of the callers of runs: one session for
// each caller, with headers such as Authorization: Bearer ${caller.token}.
//
//	run of ann ──▶ Tools, calls ──▶ session of ann ──▶ server
//	run of bob ──▶ Tools, calls ──▶ session of bob ──▶ server
//
// It fails closed: without a caller, or with an empty field, nothing is sent. A session belongs to
// the identity and the credential with which it began, and serves no other. The credentials are in
// memory only.
package callermcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/mcp"
)

// place matches ${caller.token} and ${caller.name}.
var place = regexp.MustCompile(`\$\{caller\.([^}]*)\}`)

// Uses reports whether s acts for the caller of a run: a header stands for him, or his ID token is
// exchanged for a token of the server.
func Uses(s mcp.Server) bool {
	if exchanges(s) {
		return true
	}
	for _, value := range s.Headers {
		if place.MatchString(value) {
			return true
		}
	}
	return false
}

// exchanges reports whether the ID token of a caller is exchanged for a token of s.
func exchanges(s mcp.Server) bool { return s.OAuth != nil && s.OAuth.Identity != nil }

// check returns why s cannot act for the callers of runs, or nil.
func check(s mcp.Server) error {
	if s.OAuth != nil && !exchanges(s) {
		return errors.New("oauth obtains one token for all, and a header stands for the caller; remove one of them, " +
			"or let oauth.identity exchange the token of the caller")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		for _, m := range place.FindAllStringSubmatch(s.Headers[name], -1) {
			if _, known := (caller.Caller{}).Field(m[1]); !known {
				return fmt.Errorf("headers: %s: ${caller.%s}: a caller has name, tenant, user and token", name, m[1])
			}
		}
	}
	return nil
}

// identity is a caller with the credential that it sends.
type identity [sha256.Size]byte

// claim is what a session sends in the name of a caller.
type claim struct {
	who     identity
	headers map[string]string
	token   string // empty means that no header has it
}

// claimOf returns the claim of the caller in ctx to the headers of s.
func claimOf(ctx context.Context, s mcp.Server) (c claim, err error) {
	by, _ := caller.From(ctx)
	c.headers = map[string]string{}
	h := sha256.New()

	// Quoted, so that the parts of two callers never make the same text.
	fmt.Fprintf(h, "%q %q %q", by.Tenant, by.User, by.Name)

	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value := place.ReplaceAllStringFunc(s.Headers[name], func(text string) string {
			field := place.FindStringSubmatch(text)[1]
			v, _ := by.Field(field)
			switch {
			case strings.TrimSpace(v) == "":
				err = noCaller(field)
			case strings.ContainsFunc(v, unicode.IsControl):
				err = fmt.Errorf("the %s of the caller has a character that is not allowed in a header; nothing was sent", field)
			case field == "token":
				c.token = v
			}
			return v
		})
		c.headers[name] = value
		fmt.Fprintf(h, " %q %q", name, value)
	}
	if exchanges(s) {
		c.token = by.Token.Reveal()
		fmt.Fprintf(h, " %q", c.token)
		if strings.TrimSpace(c.token) == "" {
			err = noCaller("token")
		}
	}
	h.Sum(c.who[:0])
	return c, err
}

// noCaller is the error for a caller without a field.
func noCaller(field string) error {
	return fmt.Errorf("it acts in the name of the caller of a run, and there is %w with a %s; nothing was sent",
		caller.ErrNone, field)
}
