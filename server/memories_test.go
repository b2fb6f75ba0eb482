package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/remember"
)

func memoriesDB(t *testing.T) (db *sqlite.DB, dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, dir
}

func remembered(t *testing.T, db store.Memories, s store.Scope, m store.Memory) string {
	t.Helper()
	m, _, err := db.AddMemory(t.Context(), s, m)
	if err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// A client sees, confirms and forgets the memories of its own user, with the scopes of its token.
// Memories of other users and tenants do not exist for it, and stay.
func TestMemories(t *testing.T) {
	db, _ := memoriesDB(t)
	scopes := map[string]store.Scope{"anna": {Tenant: "acme", User: "anna"}, "bob": {Tenant: "acme", User: "bob"},
		"else": {Tenant: "other", User: "anna"}}
	var all []api.Token
	for name, s := range scopes {
		all = append(all, api.Token{Name: name, Token: name + "-all-all-all-all-all", Tenant: s.Tenant, User: s.User,
			Scopes: []api.Scope{api.ScopeAll}, Approves: []string{"*"}})
	}
	for _, scope := range []api.Scope{api.ScopeRead, api.ScopeRun, api.ScopeDecide, api.ScopeTools} {
		all = append(all, api.Token{Name: string(scope), Token: string(scope) + "-only-only-only-only",
			Scopes: []api.Scope{scope}, Tenant: "acme", User: "anna"})
	}
	v := serve(t, func(o *options) { o.Journal, o.Memories, o.Access.Tokens = db, db, all })
	ids := map[string]string{}
	for name, s := range scopes {
		ids[name] = remembered(t, db, s, store.Memory{Text: "A fact of " + name + ".", Source: store.Source{Run: "r", Unconfirmed: true}})
	}
	remembered(t, db, scopes["anna"], store.Memory{Text: "Another fact.", Source: store.Source{Run: "s"}})

	for _, c := range []struct {
		token, method, path string
		status              int
	}{
		{"run", "GET", "/v1/memories", 403}, {"decide", "GET", "/v1/memories", 403}, {"tools", "GET", "/v1/memories", 403},
		{"read", "DELETE", "/v1/memories/" + ids["anna"], 403}, {"tools", "DELETE", "/v1/memories/" + ids["anna"], 403},
		{"read", "DELETE", "/v1/memories?run=r", 403}, {"tools", "DELETE", "/v1/memories?run=r", 403},
		{"read", "POST", "/v1/memories/" + ids["anna"] + "/confirm", 403}, {"run", "POST", "/v1/memories/" + ids["anna"] + "/confirm", 403},
		{"read", "GET", "/v1/memories", 200},
	} {
		v.token = c.token + "-only-only-only-only"
		body := ""
		if c.method == "POST" {
			body = "{}"
		}
		v.do(c.method, c.path, body, c.status, nil)
	}
	v.token = ""
	v.code("GET", "/v1/memories", "", 401, "no_token")

	for name := range scopes {
		v.token = name + "-all-all-all-all-all"
		for other, id := range ids {
			if other != name {
				v.code("DELETE", "/v1/memories/"+id, "", 404, "not_found")
				v.code("POST", "/v1/memories/"+id+"/confirm", `{}`, 404, "not_found")
			}
		}
	}
	v.token = "anna-all-all-all-all-all"
	v.code("DELETE", "/v1/memories/%00", "", 400, "bad_request")
	v.code("DELETE", "/v1/memories", "", 400, "bad_request")
	v.code("DELETE", "/v1/memories?all=1", "", 400, "bad_request")
	var page api.Memories
	v.do("GET", "/v1/memories?limit=1", "", 200, &page)
	if list := page.Memories; len(list) != 1 || list[0].ID != ids["anna"] || page.After != ids["anna"] ||
		list[0].Source.Run != "r" {
		t.Errorf("the first page: %+v", page)
	}
	v.do("GET", "/v1/memories?after="+page.After, "", 200, &page)
	if len(page.Memories) != 1 || page.Memories[0].Text != "Another fact." {
		t.Errorf("the second page: %+v", page)
	}
	var m store.Memory
	v.do("POST", "/v1/memories/"+ids["anna"]+"/confirm", `{"always":true}`, 200, &m)
	stored, err := db.Memory(t.Context(), scopes["anna"], ids["anna"])
	if err != nil || stored.Source.Unconfirmed || !m.Source.Always || stored.Source != m.Source {
		t.Errorf("confirmed %+v, stored %+v, %v", m, stored, err)
	}
	var gone api.Forgotten
	v.do("DELETE", "/v1/memories?run=r", "", 200, &gone)
	if !slices.Equal(gone.Forgotten, []string{ids["anna"]}) {
		t.Errorf("forgotten %q", gone.Forgotten)
	}
	for name, want := range map[string]int{"anna": 1, "bob": 1, "else": 1} {
		list, err := db.Memories(t.Context(), scopes[name], store.Page{})
		if err != nil || len(list) != want || name != "anna" && !list[0].Source.Unconfirmed {
			t.Errorf("%s has %+v, %v", name, list, err)
		}
	}
	// a server without memories
	v = serve(t, nil)
	v.do("GET", "/v1/memories", "", 200, &page)
	v.code("DELETE", "/v1/memories/m1", "", 404, "not_found")
	v.do("DELETE", "/v1/memories?run=r", "", 200, nil)
}

// More memories than a page are forgotten with their run.
func TestForgetRun(t *testing.T) {
	db, _ := memoriesDB(t)
	v := serve(t, func(o *options) { o.Memories = db })
	for i := range 1100 {
		from := store.Source{Run: []string{"r", "s"}[i%2]}
		remembered(t, db, store.Scope{}, store.Memory{Text: fmt.Sprint("Fact ", i), Source: from})
	}
	var gone api.Forgotten
	v.do("DELETE", "/v1/memories?run=r", "", 200, &gone)
	list, err := db.Memories(t.Context(), store.Scope{}, store.Page{Limit: 1000})
	ofRun := func(m store.Memory) bool { return m.Source.Run != "s" }
	if err != nil || len(gone.Forgotten) != 550 || len(list) != 550 || slices.ContainsFunc(list, ofRun) {
		t.Errorf("%d are forgotten, %d are left, %v", len(gone.Forgotten), len(list), err)
	}
}

// After DELETE of a memory, no file of the database has its text or its vector, whether the journal
// is in the same database or elsewhere.
func TestForgetErases(t *testing.T) {
	for _, same := range []bool{true, false} {
		db, dir := memoriesDB(t)
		v := serve(t, func(o *options) {
			if o.Memories = db; same {
				o.Journal = db
			}
		})
		vector := store.Vector{Model: "m", Values: []float32{0.123456789, 0.987654321}}
		id := remembered(t, db, store.Scope{}, store.Memory{Text: "The user plays the xylophone.", Vector: vector})
		remembered(t, db, store.Scope{}, store.Memory{Text: "The user was a cellist.", Source: store.Source{Run: "r"}})
		first, second := []string{"xylophon", "\xea\xd6\xfc\x3d"}, []string{"cellist"}
		if hits(t, dir, first...) < 2 || hits(t, dir, second...) == 0 {
			t.Fatal("the files have no trace of the memories: nothing is tested")
		}
		v.do("DELETE", "/v1/memories/"+id, "", 200, nil)
		for end := time.After(30 * time.Second); hits(t, dir, first...) > 0; {
			select {
			case <-end:
				t.Fatalf("%d places have the text of the memory", hits(t, dir, first...))
			case <-time.After(10 * time.Millisecond):
			}
		}
		v.do("DELETE", "/v1/memories?run=r", "", 200, nil)
		if err := v.s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		if n := hits(t, dir, second...); n > 0 {
			t.Errorf("%d places have the text of the memory of the run", n)
		}
	}
}

// What a chat of a front end was about is recalled in another chat of the same user, and not in its
// own or for another user.
func TestChatsAreSummarized(t *testing.T) {
	db, _ := memoriesDB(t)
	set := remember.New(db, &remember.Options{Write: "end"})
	var asked []string
	model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if strings.HasSuffix(string(req.Key), "/memory") {
			return script.Say("= The trip to Oslo is in May.")
		}
		asked = append(asked, string(must(json.Marshal(req.Messages))))
		return script.Say("So.")
	})))
	var tokens []api.Token
	for _, name := range []string{"anna", "bob"} {
		tokens = append(tokens, api.Token{Name: name, Token: name + "-all-all-all-all-all", Tenant: "acme", User: name,
			Scopes: []api.Scope{api.ScopeAll}})
	}
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: model, Tools: []pawl.Toolset{set},
			Middleware: []pawl.Middleware{set.Middleware()}}}
		o.Journal, o.Memories, o.Access.Tokens = db, db, tokens
	})
	say := func(user, protocol, chat string, n int) bool {
		t.Helper()
		message := fmt.Sprintf(`{"id":"m%d","role":"user","parts":[{"type":"text","text":"When to Oslo?"}],"content":"When to Oslo?"}`, n)
		body := `{"id":"` + chat + `","trigger":"submit-message","messages":[` + message + `]}`
		if protocol == "agui" {
			body = fmt.Sprintf(`{"threadId":%q,"runId":"r%d","messages":[%s],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, chat, n, message)
		}
		req := request(t, "POST", v.url+"/v1/"+protocol+"/clerk", body)
		req.Header.Set("Authorization", "Bearer "+user+"-all-all-all-all-all")
		res, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if said, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(said), "So.") {
			t.Fatalf("%s, %v", said, err)
		}
		return strings.Contains(asked[len(asked)-1], "] The trip to Oslo is in May.")
	}
	for i, c := range []struct {
		user, protocol, chat string
		recalls              bool
	}{{"anna", "ui", "one", false}, {"anna", "ui", "one", false}, {"anna", "ui", "two", true},
		{"anna", "agui", "one", true}, {"bob", "ui", "one", false}} {
		if got := say(c.user, c.protocol, c.chat, i); got != c.recalls {
			t.Errorf("%d: %+v: recalled: %v", i, c, got)
		}
	}
	all, err := db.Memories(t.Context(), store.Scope{Tenant: "acme", User: "anna"}, store.Page{})
	if err != nil || len(all) != 3 { // one of each chat
		t.Errorf("%d memories, %v: %+v", len(all), err, all)
	}
}
