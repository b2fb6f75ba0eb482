package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/llm"
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
