package callermcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/internal/callermcp"
	"github.com/pawl-go/pawl/mcp"
)

// company is an office whose tokens a company's identity provider decides about: it exchanges the
// ID token of a user for a grant, and the authorization server of the office exchanges the grant
// for a token.
type company struct {
	*office
	url string

	mu      sync.Mutex
	left    map[string]bool // users who left the company
	grants  int
	refused []string // requests for tokens that were refused
}

func newCompany(t *testing.T) *company {
	t.Helper()
	o, _ := newOffice(t)
	c := &company{office: o, left: map[string]bool{}}
	web := httptest.NewServer(c)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	c.url = web.URL
	return c
}

// ServeHTTP answers a request.
func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	issuer, isMetadata := strings.CutPrefix(r.URL.Path, "/.well-known/oauth-authorization-server")
	switch {
	case isMetadata:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":"%s%s","token_endpoint":"%[1]s%[2]s/token","code_challenge_methods_supported":["S256"]}`, c.url, issuer)
	case r.URL.Path == "/provider/token":
		c.grant(w, r)
	case r.URL.Path == "/office/token":
		c.issue(w, r)
	case r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	default:
		c.office.ServeHTTP(w, r)
	}
}

// grant exchanges an ID token for a grant.
func (c *company) grant(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	user, ok := strings.CutPrefix(r.FormValue("subject_token"), "id-of-")
	isRequest := r.FormValue("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange" &&
		r.FormValue("audience") == c.url+"/office" && r.FormValue("resource") == c.url+"/mcp" &&
		r.FormValue("client_id") == "pawl" && r.FormValue("client_secret") == "secret of the provider"
	if !ok || !isRequest || c.left[user] {
		c.refuse(w, r)
		return
	}
	c.grants++
	c.answer(w, "grant-of-"+user, `,"issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"`)
}

// issue exchanges a grant for a token.
func (c *company) issue(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	user, ok := strings.CutPrefix(r.FormValue("assertion"), "grant-of-")
	if !ok || r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		c.refuse(w, r)
		return
	}
	c.answer(w, "token-of-"+user, "")
}

func (c *company) answer(w http.ResponseWriter, token, more string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"%s","token_type":"Bearer","expires_in":60%s}`, token, more)
}

func (c *company) refuse(w http.ResponseWriter, r *http.Request) {
	c.refused = append(c.refused, r.Form.Encode())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `{"error":"invalid_grant"}`)
}

// exchanging returns the sessions with the office of a company.
func exchanging(t *testing.T, c *company) *callermcp.Sessions {
	t.Helper()
	s := mcp.Server{Name: "office", URL: c.url + "/mcp", OAuth: &mcp.OAuth{
		ClientID: "pawl",
		Identity: &mcp.Identity{Issuer: c.url + "/provider", Server: c.url + "/office", SecretEnv: "PROVIDER_SECRET"},
	}}
	o := mcp.Options{Getenv: func(name string) string {
		return map[string]string{"PROVIDER_SECRET": "secret of the provider"}[name]
	}}
	all, err := callermcp.New(s, o, callermcp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Close() })
	return all
}

// The ID token of each caller is exchanged for a token of the server, for a session of his own. The
// server never sees the ID token.
func TestExchangeForEachCaller(t *testing.T) {
	c := newCompany(t)
	all := exchanging(t, c)
	var wg sync.WaitGroup
	for n := range 12 {
		user := []string{"ann", "bob", "eve"}[n%3]
		wg.Go(func() {
			ctx := caller.With(t.Context(), caller.Caller{Name: "web", User: user, Token: caller.Token("id-of-" + user)})
			tools := toolsOf(t, all, ctx)
			if got := mcp.Names(tools); !slices.Equal(got, []string{"office_of_" + user, "office_whoami"}) {
				t.Errorf("%s has %v", user, got)
			}
			x := whoami(t, ctx, tools)
			if x.Outcome != pawl.OutcomeOK || !strings.HasPrefix(x.Result.Text(), user+" with Bearer ") {
				t.Errorf("%s: %s, %s", user, x.Outcome, x.Result.Text())
			}
		})
	}
	wg.Wait()
	if c.grants != 3 || c.began != 3 || len(c.refused) > 0 {
		t.Errorf("%d grants and %d sessions for 3 users; refused %q", c.grants, c.began, c.refused)
	}
}

// Without a caller, and for a user whom the provider no longer knows, there are no tools and no
// session, and another user has them.
func TestExchangeIsRefused(t *testing.T) {
	c := newCompany(t)
	c.left["ann"] = true
	all := exchanging(t, c)
	for name, ctx := range map[string]caller.Caller{
		"no token":        {Name: "web", User: "ann"},
		"a user who left": {Name: "web", User: "ann", Token: "id-of-ann"},
		"another token":   {Name: "web", User: "ann", Token: "token-of-ann"},
	} {
		tools, err := all.Tools(caller.With(t.Context(), ctx))
		if err == nil || len(tools) > 0 {
			t.Errorf("%s: %d tools, %v", name, len(tools), err)
		}
	}
	if c.began != 0 {
		t.Errorf("%d sessions began", c.began)
	}
	bob := caller.With(t.Context(), caller.Caller{Name: "web", User: "bob", Token: "id-of-bob"})
	if x := whoami(t, bob, toolsOf(t, all, bob)); x.Outcome != pawl.OutcomeOK {
		t.Errorf("the control: %s, %s", x.Outcome, x.Result.Text())
	}

	// The server revokes the token, and the provider no longer exchanges: the call is not made.
	tools := toolsOf(t, all, bob)
	c.office.mu.Lock()
	c.revoked["bob"] = true
	c.office.mu.Unlock()
	c.mu.Lock()
	c.left["bob"] = true
	c.mu.Unlock()
	if x := whoami(t, bob, tools); x.Outcome != pawl.OutcomeError || !x.Certainty.NoEffect() {
		t.Errorf("after bob left: %s, %q, %s", x.Outcome, x.Certainty, x.Result.Text())
	}
}
