package access

// clients.go: Clients, which finds the client of a request.

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/server/api"
)

// Clients are the clients of a server: of a list of tokens, or of another authentication.
type Clients struct {
	list []*Client

	mu    sync.Mutex
	known map[string]*Client // clients of SignedIn, by the JSON of the token, with its permissions
}

// New returns the clients of tokens. The error names the token that is not valid.
func New(tokens []api.Token) (*Clients, error) {
	c := &Clients{known: map[string]*Client{}}
	for i := range tokens {
		if err := tokens[i].Check(); err != nil {
			return nil, fmt.Errorf("token %q: %w", tokens[i].Name, err)
		}
		c.list = append(c.list, NewClient(tokens[i]))
	}
	for _, one := range c.list {
		one.others = one.approved(c.list)
	}
	return c, nil
}

// approved returns the users other than the client's own whose calls it may decide.
func (c *Client) approved(all []*Client) []string {
	var users []string
	for _, entry := range c.token.Approves {
		group, isGroup := strings.CutPrefix(entry, "group:")
		if entry != "*" && !isGroup {
			users = append(users, entry)
			continue
		}
		for _, o := range all {
			included := entry == "*" || slices.Contains(o.token.Groups, group)
			if o.Scope.Tenant == c.Scope.Tenant && included {
				users = append(users, o.Scope.User)
			}
		}
	}
	slices.Sort(users)
	users = slices.Compact(users)
	return slices.DeleteFunc(users, func(user string) bool { return user == c.Scope.User })
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
// token, so that its limits hold. The secret of the token is ignored.
func (c *Clients) SignedIn(t api.Token) (*Client, error) {
	t.Token = ""
	t.SHA256 = ""
	id, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	if one := c.known[string(id)]; one != nil {
		return one, nil
	}
	if len(c.known) >= mostSignedIn {
		maps.DeleteFunc(c.known, func(_ string, one *Client) bool { return one.idle() })
	}
	one := NewClient(t)
	one.everyone = slices.Contains(t.Approves, "*")
	one.others = slices.DeleteFunc(slices.Clone(t.Approves), func(u string) bool { return u == t.User || u == "*" })
	c.known[string(id)] = one
	return one, nil
}

// Everybody returns a client with all permissions: of a server that has no tokens.
func Everybody() *Client {
	return NewClient(api.Token{Name: "caller", Scopes: []api.Scope{api.ScopeAll}})
}
