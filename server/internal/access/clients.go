package access

// clients.go: Clients, which finds the client of a request.

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// Clients are the clients of a server: of a list of tokens, or of another authentication.
type Clients struct {
	list []*Client

	listed map[store.Scope][]string // the groups of the users of list

	mu     sync.Mutex
	known  map[string]*Client // clients of SignedIn, by the JSON of the token
	groups groups             // of the users of SignedIn
}

// groups are the groups of users that have signed in, for Approves of others. It forgets the users
// who have not signed in for the longest time, beyond mostSignedIn: the members of a group may then
// not decide their calls, until they sign in again. Each process has its own.
type groups struct {
	recent map[store.Scope][]string
	older  map[store.Scope][]string // the recent ones of before; nil means none
}

// set replaces the groups of a user.
func (g *groups) set(user store.Scope, names []string) {
	delete(g.recent, user)
	delete(g.older, user)
	if len(names) == 0 {
		return
	}
	if len(g.recent) >= mostSignedIn/2 {
		g.older = g.recent
		g.recent = map[store.Scope][]string{}
	}
	g.recent[user] = slices.Clone(names)
}

// of returns the groups of a user. ok is false if the user is unknown.
func (g *groups) of(user store.Scope) (names []string, ok bool) {
	names, ok = g.recent[user]
	if !ok {
		names, ok = g.older[user]
	}
	return names, ok
}

// New returns the clients of tokens. The error names the token that is not valid.
func New(tokens []api.Token) (*Clients, error) {
	c := &Clients{
		listed: map[store.Scope][]string{},
		known:  map[string]*Client{},
		groups: groups{recent: map[store.Scope][]string{}},
	}
	for i := range tokens {
		if err := tokens[i].Check(); err != nil {
			return nil, fmt.Errorf("token %q: %w", tokens[i].Name, err)
		}
		one := NewClient(tokens[i])
		one.clients = c
		c.list = append(c.list, one)
		c.listed[one.Scope] = append(c.listed[one.Scope], tokens[i].Groups...)
	}
	return c, nil
}

// groupsOf returns the groups of a user. ok is false if the user is unknown.
func (c *Clients) groupsOf(user store.Scope) (groups []string, ok bool) {
	groups, ok = c.listed[user]
	if ok {
		return groups, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups.of(user)
}

// users returns the known users of a tenant.
func (c *Clients) users(tenant string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()

	var users []string
	for _, some := range []map[store.Scope][]string{c.listed, c.groups.recent, c.groups.older} {
		for scope := range some {
			if scope.Tenant == tenant {
				users = append(users, scope.User)
			}
		}
	}
	return users
}

// Any reports whether there is a list of tokens.
func (c *Clients) Any() bool { return len(c.list) > 0 }

// Tenants returns the number of tenants in the list of tokens.
func (c *Clients) Tenants() int {
	tenants := map[string]bool{}
	for _, one := range c.list {
		tenants[one.Scope.Tenant] = true
	}
	return len(tenants)
}

// Find returns the client with that token. Nil means that there is none. The duration does not
// depend on the token.
func (c *Clients) Find(token string) (found *Client) {
	sum := sha256.Sum256([]byte(token))
	for _, one := range c.list {
		if subtle.ConstantTimeCompare(sum[:], one.secret[:]) == 1 {
			found = one
		}
	}
	return found
}

// mostSignedIn is the number of clients at which clients without runs and streams are forgotten,
// with what is left of their limits.
const mostSignedIn = 10_000

// SignedIn returns the client that another authentication has admitted: the same one for an equal
// token, so that its limits hold. The secret of the token is ignored. The token
// replaces the groups of its user, so that a user who has left a group is no longer a member.
func (c *Clients) SignedIn(t api.Token) (*Client, error) {
	t.Token = ""
	t.SHA256 = ""
	id, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	c.groups.set(store.Scope{Tenant: t.Tenant, User: t.User}, t.Groups)

	if one := c.known[string(id)]; one != nil {
		return one, nil
	}
	if len(c.known) >= mostSignedIn {
		maps.DeleteFunc(c.known, func(_ string, one *Client) bool { return one.idle() })
	}
	one := NewClient(t)
	one.everyone = slices.Contains(t.Approves, "*")
	one.clients = c
	c.known[string(id)] = one
	return one, nil
}

// Everybody returns a client with all permissions: of a server that has no tokens.
func Everybody() *Client {
	return NewClient(api.Token{Name: "caller", Scopes: []api.Scope{api.ScopeAll}})
}
