package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/store"
)

// Scope is a permission of a token.
type Scope string

// The scopes. A token has the scopes that it names. ScopeAll includes all of them.
const (
	ScopeRead Scope = "read" // see runs, tools, schedules and memories, and watch runs
	// ScopeRun: start runs, give their passive calls results, steer and cancel them; forget
	// memories; the OpenAI endpoints.
	ScopeRun Scope = "run"
	// ScopeDecide: approve and reject calls, and state the outcome of interrupted ones; confirm and
	// forget memories.
	ScopeDecide Scope = "decide"
	ScopeTools  Scope = "tools" // call tools; MCP
	ScopeAll    Scope = "all"
)

var scopes = []Scope{ScopeRead, ScopeRun, ScopeDecide, ScopeTools, ScopeAll}

// Token defines the permissions of a client, and the owner of the runs that it can access.
type Token struct {
	Name  string `json:"name"`           // name of the client, recorded with its decisions
	Token string `json:"token,omitzero"` // the secret; alternatively:
	// SHA256 is the hex SHA-256 of the secret, so that the file contains no secret.
	SHA256 string  `json:"sha256,omitzero"`
	Scopes []Scope `json:"scopes"`
	// Tenant is the tenant whose runs the client sees. The empty name is a tenant like any other.
	Tenant string `json:"tenant,omitzero"`
	User   string `json:"user,omitzero"`
	// Groups are the groups of User, for Approves of other tokens.
	Groups []string `json:"groups,omitzero"`
	// Approves names users of the tenant whose pending calls the client may list (ScopeRead) and
	// decide (ScopeDecide): a user, group:NAME for the users of the tokens with that group, or *
	// for every user with a token. Nil means only User.
	Approves []string `json:"approves,omitzero"`

	Runs int `json:"runs,omitzero"` // concurrent runs; 0 means no limit for this token
	// Streams is the maximum number of concurrent streams of events. 0 means no limit for this
	// token.
	Streams   int `json:"streams,omitzero"`
	PerMinute int `json:"per_minute,omitzero"` // requests; 0 means no limit
}

// minToken is the minimum length of a token in bytes.
const minToken = 16

// ReadTokens parses a JSON list of Tokens.
func ReadTokens(r io.Reader) ([]Token, error) {
	b, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return nil, err
	}
	var list []Token
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is text after the list of tokens")
	}
	if len(list) == 0 {
		return nil, errors.New("it contains no token, so every client would be refused")
	}
	for i, t := range list {
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("token %d (%q): %w", i+1, t.Name, err)
		}
	}
	return list, nil
}

func (t *Token) Check() error {
	switch {
	case t.Name == "":
		return errors.New("it has no name")
	case (t.Token == "") == (t.SHA256 == ""):
		return errors.New("give one of token and sha256")
	case t.Token != "" && len(t.Token) < minToken:
		return fmt.Errorf("the token has less than %d bytes: it could be guessed", minToken)
	case len(t.Scopes) == 0:
		return fmt.Errorf("it has no scope; scopes are %v", scopes)
	case t.Runs < 0 || t.Streams < 0 || t.PerMinute < 0:
		return errors.New("a limit is less than 0")
	}
	for _, s := range t.Scopes {
		if !slices.Contains(scopes, s) {
			return fmt.Errorf("unknown scope %q; scopes are %v", s, scopes)
		}
	}
	if b, err := hex.DecodeString(t.SHA256); t.SHA256 != "" && (err != nil || len(b) != sha256.Size) {
		return errors.New("sha256 is not 64 hex digits")
	}
	return nil
}

// Client is a token with its current usage.
type Client struct {
	Token
	sum    [sha256.Size]byte
	Others []string // users other than User whose calls it may decide

	Approver *Client // the client that decides for a user; nil means that this is no approver

	mu            sync.Mutex
	ActiveRuns    int
	ActiveStreams int
	left          float64 // requests
	at            time.Time
}

// SignedIn holds the clients of Options.Authenticate, for their limits.
type SignedIn struct {
	mu    sync.Mutex
	known map[string]*Client // by the JSON of the token, with its permissions
}

// mostSignedIn is the number of clients at which clients without runs and streams are forgotten,
// with what is left of their limits.
const mostSignedIn = 10_000

// Client returns the client of a token.
func (s *SignedIn) Client(t Token) (*Client, error) {
	t.Token = ""
	t.SHA256 = ""
	id, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[string(id)]
	if c == nil {
		if len(s.known) >= mostSignedIn {
			maps.DeleteFunc(s.known, func(_ string, c *Client) bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.ActiveRuns == 0 && c.ActiveStreams == 0
			})
		}
		if s.known == nil {
			s.known = map[string]*Client{}
		}
		c = NewClient(t)
		c.Others = slices.DeleteFunc(slices.Clone(t.Approves), func(u string) bool { return u == t.User })
		s.known[string(id)] = c
	}
	return c, nil
}

// Everybody returns the client used for every request if there are no tokens.
func Everybody() *Client { return &Client{Token: Token{Name: "caller", Scopes: []Scope{ScopeAll}}} }

func NewClient(t Token) *Client {
	c := &Client{Token: t, sum: sha256.Sum256([]byte(t.Token)), left: float64(t.PerMinute)}
	if t.SHA256 != "" {
		b, _ := hex.DecodeString(t.SHA256) // it was validated
		copy(c.sum[:], b)
	}
	c.Token.Token = ""
	return c
}

// Approvers sets the users whose calls each client may decide.
func Approvers(all []*Client) {
	for _, c := range all {
		for _, entry := range c.Approves {
			group, isGroup := strings.CutPrefix(entry, "group:")
			if entry != "*" && !isGroup {
				c.Others = append(c.Others, entry)
			}
			for _, o := range all {
				if o.Tenant == c.Tenant && (entry == "*" || isGroup && slices.Contains(o.Groups, group)) {
					c.Others = append(c.Others, o.User)
				}
			}
		}
		slices.Sort(c.Others)
		c.Others = slices.DeleteFunc(slices.Compact(c.Others), func(user string) bool { return user == c.User })
	}
}

// Of returns the client as an approver of the calls of a user, or nil if it may not decide them. It
// has no other permission there.
func (c *Client) Of(user string) *Client {
	if !slices.Contains(c.Others, user) || !c.May(ScopeDecide) {
		return nil
	}
	return &Client{Token: Token{Name: c.Name, Tenant: c.Tenant, User: user, Scopes: []Scope{ScopeDecide}}, Approver: c}
}

// Identity returns Decision.Identity for the client.
func (c *Client) Identity() string {
	if c.Approver != nil {
		return c.Approver.Identity()
	}
	text := "token " + c.Name
	if c.User != "" {
		text += " of " + c.User
	}
	return text
}

// Find returns the client with that token. Nil means that there is none. The duration does not
// depend on the token.
func Find(all []*Client, token string) (found *Client) {
	sum := sha256.Sum256([]byte(token))
	for _, c := range all {
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			found = c
		}
	}
	return found
}

func (c *Client) May(s Scope) bool {
	return s == "" || slices.Contains(c.Scopes, s) || slices.Contains(c.Scopes, ScopeAll)
}

func (c *Client) Scope() store.Scope { return store.Scope{Tenant: c.Tenant, User: c.User} }

// Take counts a request. wait is the number of seconds until the request is permitted; 0 means now.
func (c *Client) Take(now time.Time) (wait int) {
	if c.PerMinute == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() {
		c.left = min(float64(c.PerMinute), c.left+now.Sub(c.at).Minutes()*float64(c.PerMinute))
	}
	c.at = now
	if c.left < 1 {
		return 1 + int((1-c.left)*60/float64(c.PerMinute))
	}
	c.left--
	return 0
}

// Enter acquires a slot counted by n. leave releases it.
func (c *Client) Enter(n *int, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && *n >= limit {
		return false
	}
	*n++
	return true
}

func (c *Client) Leave(n *int) {
	c.mu.Lock()
	*n--
	c.mu.Unlock()
}

func (c *Client) String() string { return strings.TrimSpace(c.Name) }
