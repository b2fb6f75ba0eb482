package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// A server in an application: its mux, its sessions. A user sees the own runs only, a session
// without a scope is refused, limits count by user, and the application's pages stay its own.
func TestAuthenticate(t *testing.T) {
	sessions := map[string]server.Token{
		"s-ann": {Name: "ann", User: "ann", Scopes: []server.Scope{server.ScopeRun, server.ScopeRead}, PerMinute: 4},
		"s-bob": {Name: "bob", User: "bob", Scopes: []server.Scope{server.ScopeRead}},
	}
	w := &world{gate: make(chan struct{})}
	v := serve(t, func(o *server.Options) {
		o.Agents = []*pawl.Agent{clerk(w)}
		o.Authenticate = func(r *http.Request) (server.Token, error) {
			c, err := r.Cookie("session")
			if err != nil {
				return server.Token{}, errors.New("sign in first")
			}
			s, ok := sessions[c.Value]
			if !ok {
				return s, errors.New("the session has ended")
			}
			return s, nil
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /about", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a shop")) })
	mux.Handle("/agents/", http.StripPrefix("/agents", v.s))
	h := httptest.NewServer(mux)
	defer h.Close()
	do := func(session, method, path, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if session != "" {
			req.AddCookie(&http.Cookie{Name: "session", Value: session})
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for i, test := range []struct {
		session, method, path, body string
		want                        int
	}{
		{"", "GET", "/about", "", 200},
		{"", "GET", "/agents/v1/runs", "", 401},
		{"s-old", "GET", "/agents/v1/runs", "", 401},
		{"s-bob", "POST", "/agents/v1/runs", `{"id":"r1","input":"hello"}`, 403},
		{"s-ann", "POST", "/agents/v1/runs", `{"id":"r1","input":"hello","wait":true}`, 201},
		{"s-bob", "GET", "/agents/v1/runs/r1", "", 404},
		{"s-ann", "GET", "/agents/v1/runs/r1", "", 200},
		{"s-ann", "GET", "/agents/v1/runs/r1", "", 200},
		{"s-ann", "GET", "/agents/v1/runs/r1", "", 200},
		{"s-ann", "GET", "/agents/v1/runs/r1", "", 429}, // the fifth of a minute
		{"s-bob", "GET", "/agents/v1/runs", "", 200},
	} {
		if got := do(test.session, test.method, test.path, test.body); got != test.want {
			t.Errorf("%d: %s %s as %q: got %d, want %d", i, test.method, test.path, test.session, got, test.want)
		}
	}
	o := server.Options{Agents: []*pawl.Agent{clerk(w)}, Journal: new(store.MemoryJournal),
		Tokens:       []server.Token{{Name: "x", Token: strings.Repeat("x", 32), Scopes: []server.Scope{server.ScopeAll}}},
		Authenticate: func(*http.Request) (server.Token, error) { return server.Token{}, nil }}
	if _, err := server.New(o); err == nil {
		t.Error("Tokens and Authenticate are both valid")
	}
}
