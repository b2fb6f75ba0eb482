// Package access says who a client of the server is, what it may do, and how much of its limits is
// in use.
//
//	tokens   := access.New(list)              // the clients of a list of tokens
//	client   := tokens.Find(secret)           // or tokens.SignedIn(token)
//	ok       := client.May(api.ScopeDecide)
//	approver := client.For("ann")             // nil unless the client may decide ann's calls
//
// It knows nothing of HTTP and of runs.
package access

// client.go: Client, its permissions and its limits.

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// Rights are the permissions of a client.
type Rights []api.Scope

// May reports whether the rights include a permission. The empty permission is always included.
func (r Rights) May(s api.Scope) bool {
	return s == "" || slices.Contains(r, s) || slices.Contains(r, api.ScopeAll)
}

// Client is a client of the server, with its current usage. It is safe for concurrent use.
type Client struct {
	Name   string
	Scope  store.Scope // the owner of the runs that it sees
	Rights Rights

	token      api.Token
	secret     [sha256.Size]byte // SHA-256 of its token
	clients    *Clients          // they know the groups of users; nil means no groups
	everyone   bool              // it may decide the calls of every user of its tenant
	approves   *Client           // the client that decides for a user; nil means no approver
	mu         sync.Mutex
	runs       int
	streams    int
	requests   float64 // that are left
	lastCalled time.Time
}

// NewClient returns the client of a token.
func NewClient(t api.Token) *Client {
	c := &Client{
		Name:     t.Name,
		Scope:    store.Scope{Tenant: t.Tenant, User: t.User},
		Rights:   t.Scopes,
		token:    t,
		secret:   sha256.Sum256([]byte(t.Token)),
		requests: float64(t.PerMinute),
	}
	if t.SHA256 != "" {
		b, _ := hex.DecodeString(t.SHA256) // it was validated
		copy(c.secret[:], b)
	}
	c.token.Token = ""
	return c
}

// Acts returns the client as the one in whose name tools act, or nil for an approver, in whose name
// no run acts.
func (c *Client) Acts() *caller.Caller {
	if c.approves != nil {
		return nil
	}
	return &caller.Caller{
		Name:   c.Name,
		Tenant: c.Scope.Tenant,
		User:   c.Scope.User,
		Token:  caller.Token(c.token.Upstream),
	}
}

// May reports whether the client has a permission.
func (c *Client) May(s api.Scope) bool { return c.Rights.May(s) }

// Identity returns llm.Decision.Identity for the client.
func (c *Client) Identity() string {
	if c.approves != nil {
		return c.approves.Identity()
	}
	text := "token " + c.Name
	if c.Scope.User != "" {
		text += " of " + c.Scope.User
	}
	return text
}

// For returns the client as an approver of the calls of another user, or nil if it may not decide
// them. It has no other permission there.
func (c *Client) For(user string) *Client {
	if !c.mayDecideFor(user) || !c.May(api.ScopeDecide) {
		return nil
	}
	return &Client{
		Name:     c.Name,
		Scope:    store.Scope{Tenant: c.Scope.Tenant, User: user},
		Rights:   Rights{api.ScopeDecide},
		approves: c,
	}
}

// isPattern reports whether an entry of Approves is not the name of a user.
func isPattern(entry string) bool { return entry == "*" || strings.HasPrefix(entry, "group:") }

// mayDecideFor reports whether Approves includes another user: by name, by a group of the user, or
// by *.
func (c *Client) mayDecideFor(user string) bool {
	if user == c.Scope.User {
		return false
	}
	named := slices.Contains(c.token.Approves, user) && !isPattern(user)
	if c.everyone || named {
		return true
	}
	if c.clients == nil {
		return false
	}

	groups, known := c.clients.groupsOf(store.Scope{Tenant: c.Scope.Tenant, User: user})
	return known && slices.ContainsFunc(c.token.Approves, func(entry string) bool {
		group, isGroup := strings.CutPrefix(entry, "group:")
		return entry == "*" || isGroup && slices.Contains(groups, group)
	})
}

// IsApprover reports whether For returned the client.
func (c *Client) IsApprover() bool { return c.approves != nil }

// Others returns the other users whose calls the client may decide, if they can be listed. all
// means every user of the tenant, and then there is no list.
func (c *Client) Others() (users []string, all bool) {
	if c.everyone {
		return nil, true
	}

	named := slices.DeleteFunc(slices.Clone(c.token.Approves), isPattern)
	users = named
	if c.clients != nil && len(named) < len(c.token.Approves) {
		users = append(users, c.clients.users(c.Scope.Tenant)...)
	}
	users = slices.DeleteFunc(users, func(user string) bool { return !c.mayDecideFor(user) })
	slices.Sort(users)
	return slices.Compact(users), false
}

// CountRequest counts a request. wait is the number of seconds until the request is permitted; 0
// means now.
func (c *Client) CountRequest(now time.Time) (wait int) {
	limit := float64(c.token.PerMinute)
	if limit == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.lastCalled.IsZero() {
		c.requests = min(limit, c.requests+now.Sub(c.lastCalled).Minutes()*limit)
	}
	c.lastCalled = now
	if c.requests < 1 {
		return 1 + int((1-c.requests)*60/limit)
	}
	c.requests--
	return 0
}

// PerMinute returns the limit of CountRequest. 0 means none.
func (c *Client) PerMinute() int { return c.token.PerMinute }

// MaxRuns returns the limit of AcquireRun. 0 means none.
func (c *Client) MaxRuns() int { return c.token.Runs }

// AcquireRun takes one of the client's concurrent runs, until release is called. False means that
// all are in use.
func (c *Client) AcquireRun() (release func(), ok bool) { return c.acquire(&c.runs, c.token.Runs) }

// AcquireStream takes one of the client's concurrent streams, until release is called. False means
// that all are in use.
func (c *Client) AcquireStream() (release func(), ok bool) {
	return c.acquire(&c.streams, c.token.Streams)
}

func (c *Client) acquire(used *int, limit int) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && *used >= limit {
		return nil, false
	}
	*used++
	return func() {
		c.mu.Lock()
		*used--
		c.mu.Unlock()
	}, true
}

// idle reports whether the client uses nothing of its limits at present.
func (c *Client) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs == 0 && c.streams == 0
}
