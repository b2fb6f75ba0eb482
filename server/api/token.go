package api

// token.go: Token, a client's permissions, and the file of tokens.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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
	// Name is the name of the client. It is recorded with the client's decisions.
	Name string `json:"name"`
	// Token is the secret, of at least 16 bytes. A token has either Token or SHA256.
	Token string `json:"token,omitzero"`
	// SHA256 is the hex SHA-256 of the secret, so that the file contains no secret.
	SHA256 string `json:"sha256,omitzero"`
	// Scopes are the permissions. At least one is needed.
	Scopes []Scope `json:"scopes"`

	// Tenant is the tenant whose runs the client sees. The empty name is a tenant like any other.
	Tenant string `json:"tenant,omitzero"`
	// User is the user whose runs the client sees. The empty name is a user like any other.
	User string `json:"user,omitzero"`
	// Groups are the groups of User, for Approves of other tokens.
	Groups []string `json:"groups,omitzero"`
	// Approves names users of the tenant whose pending calls the client may list (ScopeRead) and
	// decide (ScopeDecide): a user, group:NAME for the users of the tokens with that group, or *
	// for every user with a token. With Access.Authenticate, * is every user of the tenant, and the
	// last request of a user to this process says the groups of the user; a user without such a
	// request has none. Nil means only User.
	Approves []string `json:"approves,omitzero"`

	// Upstream is the credential with which tools act in the name of the client: ${caller.token} in
	// the headers of tools, and caller.From in Go. It is not stored with runs, so that a run which
	// another process resumes has it again with the client's next request. Empty means none; calls
	// that need it are refused.
	Upstream string `json:"upstream,omitzero"`

	// Runs limits the concurrent runs. 0 means no limit for this token.
	Runs int `json:"runs,omitzero"`
	// Streams limits the concurrent streams of events. 0 means no limit for this token.
	Streams int `json:"streams,omitzero"`
	// PerMinute limits the requests in a minute. 0 means no limit.
	PerMinute int `json:"per_minute,omitzero"`
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

	// A misspelled limit must not mean no limit.
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

// Check returns what is wrong with a token that a file or an option names. Nil means that it is
// valid.
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

	if t.SHA256 == "" {
		return nil
	}
	if b, err := hex.DecodeString(t.SHA256); err != nil || len(b) != sha256.Size {
		return errors.New("sha256 is not 64 hex digits")
	}
	return nil
}
