package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// A server in an application: its mux, its sessions. A user sees the own runs only, a session
// without a scope is refused, limits count by user, and the application's pages stay its own.
func TestAuthenticate(t *testing.T) {
	sessions := map[string]api.Token{
		"s-ann": {Name: "ann", User: "ann", Scopes: []api.Scope{api.ScopeRun, api.ScopeRead}, PerMinute: 4},
		"s-bob": {Name: "bob", User: "bob", Scopes: []api.Scope{api.ScopeRead}},
	}
	w := &world{gate: make(chan struct{})}
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{clerk(w)}
		o.Access.Authenticate = func(r *http.Request) (api.Token, error) {
			c, err := r.Cookie("session")
			if err != nil {
				return api.Token{}, errors.New("sign in first")
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
	o := options{Agents: []*pawl.Agent{clerk(w)}, Journal: new(store.MemoryJournal)}
	o.Access = server.Access{
		Tokens:       []api.Token{{Name: "x", Token: strings.Repeat("x", 32), Scopes: []api.Scope{api.ScopeAll}}},
		Authenticate: func(*http.Request) (api.Token, error) { return api.Token{}, nil },
	}
	if _, err := newServer(o); err == nil {
		t.Error("Tokens and Authenticate are both valid")
	}
}

// The error of Authenticate keeps its status if it is an *api.Error, without secrets.
func TestAuthenticateError(t *testing.T) {
	v := serve(t, func(o *options) {
		o.Access.Authenticate = func(r *http.Request) (api.Token, error) {
			busy := &api.Error{Status: 503, Code: "busy", Message: "the session store is down", RetryAfter: 7}
			return api.Token{}, fmt.Errorf("sessions: %w", busy)
		}
	})
	res, err := v.client.Get(v.url + "/v1/runs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 503 || res.Header.Get("Retry-After") != "7" || !strings.Contains(string(body), `"code":"busy"`) {
		t.Errorf("got %d, Retry-After %q, %s", res.StatusCode, res.Header.Get("Retry-After"), body)
	}
}

// Location leads to the run, wherever an application has mounted the server.
func TestLocationBehindPrefix(t *testing.T) {
	v := serve(t, nil)
	for i, prefix := range []string{"", "/agents", "/a/b"} {
		h := httptest.NewServer(http.StripPrefix(prefix, v.s))
		defer h.Close()
		id := fmt.Sprint("r", i)
		for _, test := range []struct {
			path, body, accept, want string
			status                   int
		}{
			{"/v1/runs", `{"id":"` + id + `","input":"look here","wait":true}`, "", id, 201},
			{"/v1/runs", `{"id":"` + id + `s","input":"look here"}`, "text/event-stream", id + "s", 200},
			{"/v1/runs/" + id + "/fork", `{"id":"` + id + `f","steps":1}`, "", id + "f", 201},
			{"/v1/tools/pay/call", `{"id":"` + id + `c","args":{"invoice":1}}`, "", id + "c", 202},
		} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", h.URL+prefix+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", test.accept)
			res, err := v.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			at, err := res.Location()
			if err != nil || res.StatusCode != test.status {
				t.Errorf("POST %s%s: %d, Location: %v", prefix, test.path, res.StatusCode, err)
				continue
			}
			if want := h.URL + prefix + "/v1/runs/" + test.want; at.String() != want {
				t.Errorf("POST %s%s: the run is at %s, want %s", prefix, test.path, at, want)
			}
			if res, err = v.client.Get(at.String()); err != nil || res.StatusCode != 200 {
				t.Errorf("GET %s: %v, %v", at, res, err)
			}
			res.Body.Close()
		}
	}
}

// A server that an application mounts resumes the runs that no process executes, while Recover is
// called.
func TestMountedServerRecovers(t *testing.T) {
	var paid atomic.Int32
	under := make(chan struct{}, 2)
	gate := make(chan struct{})
	close(gate)
	agent := payer(&paid, under, gate)
	journal := new(store.MemoryJournal)
	waiting := (&durable.Engine{Journal: journal}).Runner("r", agent)
	if err := waiting.Enqueue(t.Context(), llm.User("Pay.")); err != nil {
		t.Fatal(err)
	}

	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{agent}
		o.Journal = journal
	})
	ctx, stop := context.WithCancel(t.Context())
	var recovering sync.WaitGroup
	recovering.Go(func() { v.s.Recover(ctx) })
	defer recovering.Wait()
	defer stop()

	select {
	case <-under:
	case <-time.After(10 * time.Second):
		t.Fatal("the run was not resumed")
	}
}

// An approver of * decides the calls of every user of the tenant, and of no other tenant, also in
// an application with its own sessions.
func TestAuthenticateApprovesAll(t *testing.T) {
	both := []api.Scope{api.ScopeRun, api.ScopeRead}
	users := map[string]api.Token{
		"ann":     {Name: "ann", User: "ann", Tenant: "acme", Scopes: both},
		"carl":    {Name: "carl", User: "carl", Tenant: "other", Scopes: both},
		"manager": {Name: "manager", User: "manager", Tenant: "acme", Approves: []string{"*"}, Scopes: []api.Scope{api.ScopeRead, api.ScopeDecide}},
		"reader":  {Name: "reader", User: "reader", Tenant: "acme", Approves: []string{"*"}, Scopes: []api.Scope{api.ScopeRead}},
	}
	v := serve(t, func(o *options) {
		o.Access.Authenticate = func(r *http.Request) (api.Token, error) {
			name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			return users[name], nil
		}
	})
	do := func(user, method, path, body string, want int, out any) {
		t.Helper()
		v.token = user
		v.do(method, path, body, want, out)
	}
	var run api.Run
	do("ann", "POST", "/v1/runs", `{"id":"a","input":"pay 1","wait":true}`, 201, &run)
	do("carl", "POST", "/v1/runs", `{"id":"c","input":"pay 2","wait":true}`, 201, nil)

	var inbox api.Inbox
	do("manager", "GET", "/v1/pending", "", 200, &inbox)
	if len(inbox.Waiting) != 1 || inbox.Waiting[0].Run.User != "ann" {
		t.Fatalf("the approver sees %+v, want the call of ann", inbox.Waiting)
	}
	inbox = api.Inbox{}
	do("reader", "GET", "/v1/pending", "", 200, &inbox)
	if len(inbox.Waiting) != 0 {
		t.Errorf("a client without the scope decide sees %+v", inbox.Waiting)
	}

	decision := `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
	do("reader", "POST", "/v1/runs/a/approve?user=ann", decision, 403, nil)
	do("manager", "POST", "/v1/runs/c/approve?user=carl", decision, 404, nil)
	do("manager", "POST", "/v1/runs/a/approve?user=ann", decision, 200, nil)
}

// group:NAME in Approves means the users of that group in an application with its own sessions too:
// of the approver's tenant, and as the user's last request says.
func TestAuthenticateApprovesGroups(t *testing.T) {
	both := []api.Scope{api.ScopeRun, api.ScopeRead}
	decide := []api.Scope{api.ScopeRead, api.ScopeDecide}
	payments := []string{"payments"}
	users := map[string]api.Token{
		"ann":     {Name: "ann", User: "ann", Tenant: "acme", Groups: payments, Scopes: both},
		"left":    {Name: "left", User: "ann", Tenant: "acme", Scopes: both},
		"ben":     {Name: "ben", User: "ben", Tenant: "acme", Groups: []string{"sales"}, Scopes: both},
		"carl":    {Name: "carl", User: "carl", Tenant: "other", Groups: payments, Scopes: both},
		"literal": {Name: "literal", User: "group:payments", Tenant: "acme", Scopes: both},
		"manager": {Name: "manager", User: "manager", Tenant: "acme", Approves: []string{"group:payments"}, Scopes: decide},
	}
	v := serve(t, func(o *options) {
		o.Access.Authenticate = func(r *http.Request) (api.Token, error) {
			name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			return users[name], nil
		}
	})
	runs := map[string]api.Run{}
	for _, user := range []string{"ann", "ben", "carl", "literal"} {
		var run api.Run
		v.token = user
		v.do("POST", "/v1/runs", `{"id":"`+user+`","input":"pay 1","wait":true}`, 201, &run)
		runs[user] = run
	}
	approve := func(user string, want int) {
		t.Helper()
		v.token = "manager"
		decision := `{"key":"run/1/0","digest":"` + runs[user].Pending[0].Digest + `"}`
		v.do("POST", "/v1/runs/"+user+"/approve?user="+users[user].User, decision, want, nil)
	}

	var inbox api.Inbox
	v.token = "manager"
	v.do("GET", "/v1/pending", "", 200, &inbox)
	if len(inbox.Waiting) != 1 || inbox.Waiting[0].Run.User != "ann" {
		t.Fatalf("the approver sees %+v, want the call of ann", inbox.Waiting)
	}
	approve("ben", 404)
	approve("carl", 404)
	approve("literal", 404)

	v.token = "left"
	v.do("GET", "/v1/runs", "", 200, nil)
	approve("ann", 404)
	v.token = "ann"
	v.do("GET", "/v1/runs", "", 200, nil)
	approve("ann", 200)
}
