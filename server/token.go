package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/store"
)

// Scope is a thing that a token may do.
type Scope string

// The scopes. A token has those that it names; ScopeAll stands for every one.
const (
	ScopeRead   Scope = "read"   // see runs, tools and schedules, and watch
	ScopeRun    Scope = "run"    // begin runs, give their passive calls results, steer and cancel them; the OpenAI endpoints
	ScopeDecide Scope = "decide" // approve and deny calls, say what became of interrupted ones
	ScopeTools  Scope = "tools"  // call tools; MCP
	ScopeAll    Scope = "all"
)

var scopes = []Scope{ScopeRead, ScopeRun, ScopeDecide, ScopeTools, ScopeAll}

// Token says what its bearer may do, and whose things he works with.
type Token struct {
	Name   string  `json:"name"`            // who it is: written beside what he decides
	Token  string  `json:"token,omitzero"`  // the secret, or
	SHA256 string  `json:"sha256,omitzero"` // the hex SHA-256 of it, so that the file has no secret
	Scopes []Scope `json:"scopes"`
	Tenant string  `json:"tenant,omitzero"` // whose runs he sees; "" is a tenant as any other
	User   string  `json:"user,omitzero"`

	Runs      int `json:"runs,omitzero"`       // runs at once; 0: no limit of its own
	Streams   int `json:"streams,omitzero"`    // streams of events at once; 0: no limit of its own
	PerMinute int `json:"per_minute,omitzero"` // requests; 0: no limit
}

// minToken is how long a token is at least, in bytes.
const minToken = 16

// ReadTokens reads a JSON list of Tokens.
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
		return nil, errors.New("there is more than a list of tokens")
	}
	if len(list) == 0 {
		return nil, errors.New("there is no token in it: nobody would be let in")
	}
	for i, t := range list {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("token %d (%q): %w", i+1, t.Name, err)
		}
	}
	return list, nil
}

func (t *Token) check() error {
	switch {
	case t.Name == "":
		return errors.New("it has no name")
	case (t.Token == "") == (t.SHA256 == ""):
		return errors.New("one of token and sha256 is to be given")
	case t.Token != "" && len(t.Token) < minToken:
		return fmt.Errorf("the token has less than %d bytes: it could be guessed", minToken)
	case len(t.Scopes) == 0:
		return fmt.Errorf("it may do nothing; scopes are %v", scopes)
	case t.Runs < 0 || t.Streams < 0 || t.PerMinute < 0:
		return errors.New("a limit is less than 0")
	}
	for _, s := range t.Scopes {
		if !slices.Contains(scopes, s) {
			return fmt.Errorf("there is no scope %q; there are %v", s, scopes)
		}
	}
	if b, err := hex.DecodeString(t.SHA256); t.SHA256 != "" && (err != nil || len(b) != sha256.Size) {
		return errors.New("sha256 is not 64 hex digits")
	}
	return nil
}

// client is a token at work.
type client struct {
	Token
	sum [sha256.Size]byte

	mu      sync.Mutex
	runs    int
	streams int
	left    float64 // requests
	at      time.Time
}

// everybody is who asks where there are no tokens.
func everybody() *client { return &client{Token: Token{Name: "caller", Scopes: []Scope{ScopeAll}}} }

func newClient(t Token) *client {
	c := &client{Token: t, sum: sha256.Sum256([]byte(t.Token)), left: float64(t.PerMinute)}
	if t.SHA256 != "" {
		b, _ := hex.DecodeString(t.SHA256) // it was checked
		copy(c.sum[:], b)
	}
	c.Token.Token = ""
	return c
}

// find returns whose the token is; nil: nobody's. It takes as long whichever it is.
func find(all []*client, token string) (found *client) {
	sum := sha256.Sum256([]byte(token))
	for _, c := range all {
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			found = c
		}
	}
	return found
}

func (c *client) may(s Scope) bool {
	return s == "" || slices.Contains(c.Scopes, s) || slices.Contains(c.Scopes, ScopeAll)
}

func (c *client) scope() store.Scope { return store.Scope{Tenant: c.Tenant, User: c.User} }

// take counts a request; wait is in how many seconds there is room for it, 0: now.
func (c *client) take(now time.Time) (wait int) {
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

// enter takes a place among those that n counts, and leave gives it back.
func (c *client) enter(n *int, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && *n >= limit {
		return false
	}
	*n++
	return true
}

func (c *client) leave(n *int) {
	c.mu.Lock()
	*n--
	c.mu.Unlock()
}

func (c *client) String() string { return strings.TrimSpace(c.Name) }
