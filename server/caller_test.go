package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/internal/callermcp"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// Tools act in the name of the user who started the run, also when another person approves the
// call. Neither the journal nor an answer of the server has the credential, and a server that did
// not get it from the user has none.
func TestToolsActForTheUser(t *testing.T) {
	scopes := []api.Scope{api.ScopeRun, api.ScopeRead, api.ScopeDecide}
	users := map[string]api.Token{
		"ann":  {Name: "ann", Tenant: "acme", User: "ann", Scopes: scopes, Upstream: "upstream-of-ann"},
		"bob":  {Name: "bob", Tenant: "acme", User: "bob", Scopes: scopes, Upstream: "upstream-of-bob"},
		"boss": {Name: "boss", Tenant: "acme", User: "boss", Scopes: scopes, Approves: []string{"*"}, Upstream: "upstream-of-boss"},
	}
	var seen []string
	act := pawl.Func("act", "Acts.", func(ctx context.Context, _ struct{}) (string, error) {
		c, _ := caller.From(ctx)
		seen = append(seen, c.Tenant+"/"+c.User+" "+c.Token.Reveal())
		return "acted", nil
	})
	journal := new(store.MemoryJournal)
	agent := func() *pawl.Agent {
		return &pawl.Agent{Name: "a", Tools: []pawl.Toolset{act},
			Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
				if script.Results(req) != nil {
					return script.Say("Done.")
				}
				return script.Call("act", `{}`)
			}))}},
			Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	}
	change := func(o *options) {
		o.Agents = []*pawl.Agent{agent()}
		o.Journal = journal
		o.Access.Authenticate = func(r *http.Request) (api.Token, error) {
			return users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")], nil
		}
	}
	v := serve(t, change)
	start := func(user, id string) string {
		t.Helper()
		v.token = user
		var run api.Run
		v.do("POST", "/v1/runs", `{"id":"`+id+`","input":"go","wait":true}`, 201, &run)
		if len(run.Pending) != 1 {
			t.Fatalf("%s: %+v", id, run)
		}
		return `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
	}
	settled := func(id, user string) {
		t.Helper()
		v.token = user
		v.events(v.request("GET", "/v1/runs/"+id+"/events", "").Body, nil)
	}

	v.token = "ann"
	decision := start("ann", "r1")
	v.do("POST", "/v1/runs/r1/approve", decision, 200, nil)
	settled("r1", "ann")
	decision = start("bob", "r2")
	v.token = "boss"
	v.do("POST", "/v1/runs/r2/approve?user=bob", decision, 200, nil)
	settled("r2", "bob")

	// A run of an earlier process: the approver lends it nothing.
	decision = start("ann", "r3")
	v2 := serve(t, change)
	v2.token = "boss"
	v2.do("POST", "/v1/runs/r3/approve?user=ann", decision, 200, nil)
	v2.token = "ann"
	v2.events(v2.request("GET", "/v1/runs/r3/events", "").Body, nil)

	want := []string{"acme/ann upstream-of-ann", "acme/bob upstream-of-bob", "/ "}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("tools acted for %q, want %q", seen, want)
	}

	var all bytes.Buffer
	for _, id := range []string{"r1", "r2", "r3"} {
		for _, scope := range []store.Scope{{Tenant: "acme", User: "ann"}, {Tenant: "acme", User: "bob"}} {
			records, err := journal.JournalRecords(t.Context(), scope, id, 0)
			if err != nil {
				continue // the run of the other user
			}
			if err := json.NewEncoder(&all).Encode(records); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.Contains(all.String(), "act") || strings.Contains(all.String(), "upstream-of") {
		t.Errorf("the journal has a credential, or nothing: %s", all.String())
	}
}

// A run whose MCP server acts for its caller, and which another process resumes, waits for a
// request of its owner: it neither fails nor acts for the person who approves, and then acts as its
// owner.
func TestResumedRunWaitsForItsOwner(t *testing.T) {
	var mu sync.Mutex
	var acted []string
	began := map[string]bool{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		answers := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"act","description":"Acts.","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[{"type":"text","text":"acted"}]}`,
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case q.Method == "tools/call":
			acted = append(acted, r.Header.Get("Authorization"))
		case q.Method == "initialize":
			began[r.Header.Get("Authorization")] = true
		}
		switch {
		case answers[q.Method] != "":
		case len(q.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
			return
		default:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answers[q.Method])
	}))
	defer web.Close()

	scopes := []api.Scope{api.ScopeRun, api.ScopeRead, api.ScopeDecide}
	users := map[string]api.Token{
		"ann":  {Name: "ann", Tenant: "acme", User: "ann", Scopes: scopes, Upstream: "upstream-of-ann"},
		"boss": {Name: "boss", Tenant: "acme", User: "boss", Scopes: scopes, Approves: []string{"*"}, Upstream: "upstream-of-boss"},
	}
	journal := new(store.MemoryJournal)
	change := func(o *options) {
		far := mcp.Server{Name: "far", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer ${caller.token}"}}
		tools, err := callermcp.New(far, mcp.Options{}, callermcp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tools.Close() })
		o.Agents = []*pawl.Agent{{Name: "a", Tools: []pawl.Toolset{tools},
			Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
				if script.Results(req) != nil {
					return script.Say("Done.")
				}
				return script.Call("far_act", `{}`)
			}))}},
			Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}}
		o.Journal = journal
		o.Access.Authenticate = func(r *http.Request) (api.Token, error) {
			return users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")], nil
		}
	}
	v := serve(t, change)
	v.token = "ann"
	var run api.Run
	v.do("POST", "/v1/runs", `{"id":"r1","input":"go","wait":true}`, 201, &run)
	if len(run.Pending) != 1 {
		t.Fatalf("%+v", run)
	}

	v2 := serve(t, change)
	v2.token = "boss"
	v2.do("POST", "/v1/runs/r1/approve?user=ann", `{"key":"run/1/0","digest":"`+run.Pending[0].Digest+`"}`, 200, nil)
	v2.token = "ann"
	v2.do("POST", "/v1/runs", `{"id":"r1","wait":true}`, 200, &run)
	if run.State != "over" || run.Answer != "Done." {
		t.Errorf("%+v", run)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(acted) != 1 || acted[0] != "Bearer upstream-of-ann" || began["Bearer upstream-of-boss"] {
		t.Errorf("acted %q, began %v", acted, began)
	}
}
