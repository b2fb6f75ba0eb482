package callermcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/callermcp"
	"github.com/pawl-go/pawl/mcp"
)

// office is an MCP server whose sessions belong to the user that began them. A request with the
// session of another user is a fault, and so is a request without a credential.
type office struct {
	mu       sync.Mutex
	sessions map[string]string // user by session
	began    int
	ended    int
	calls    []string // the users of the calls
	revoked  map[string]bool
	faults   []string
	deleted  chan struct{} // receives a token for each session that a client ends
}

func newOffice(t *testing.T) (*office, string) {
	t.Helper()
	o := &office{sessions: map[string]string{}, revoked: map[string]bool{}, deleted: make(chan struct{}, 100)}
	web := httptest.NewServer(o)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		if len(o.faults) > 0 {
			t.Errorf("the server saw %q", o.faults)
		}
	})
	return o, web.URL
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var q struct {
		ID     json.RawMessage
		Method string
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &q)
	user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer token-of-")
	session := r.Header.Get("Mcp-Session-Id")
	owner, known := o.sessions[session]
	switch {
	case !ok:
		o.faults = append(o.faults, "a request without a credential")
	case known && owner != user:
		o.faults = append(o.faults, user+" in the session of "+owner)
	}

	switch {
	case !ok || o.revoked[user]:
		w.WriteHeader(http.StatusUnauthorized)
	case q.Method == "initialize":
		o.began++
		session = fmt.Sprintf("s%d", o.began)
		o.sessions[session] = user
		w.Header().Set("Mcp-Session-Id", session)
		o.reply(w, q.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
	case !known && session != "":
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(o.sessions, session)
		o.ended++
		o.deleted <- struct{}{}
	case q.Method == "tools/list":
		// Each user has a tool of his own.
		o.reply(w, q.ID, `{"tools":[{"name":"whoami","description":"Says who.","inputSchema":{"type":"object"}},`+
			`{"name":"of_`+user+`","description":"Is own.","inputSchema":{"type":"object"}}]}`)
	case q.Method == "tools/call":
		o.calls = append(o.calls, user)
		o.reply(w, q.ID, `{"content":[{"type":"text","text":"`+user+` with `+r.Header.Get("Authorization")+`"}]}`)
	case r.Method == http.MethodPost && len(q.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (o *office) reply(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (o *office) open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sessions)
}

// forget drops all sessions, as a server does that restarts.
func (o *office) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.sessions)
}

func sessions(t *testing.T, url string, l callermcp.Limits) *callermcp.Sessions {
	t.Helper()
	s := mcp.Server{Name: "office", URL: url, Headers: map[string]string{"Authorization": "Bearer ${caller.token}"}}
	c, err := callermcp.New(s, mcp.Options{}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func as(t *testing.T, user string) context.Context {
	return caller.With(t.Context(), caller.Caller{
		Name:   "web",
		Tenant: "acme",
		User:   user,
		Token:  caller.Token("token-of-" + user),
	})
}

// names returns the names of the tools that a caller has.
func names(t *testing.T, c *callermcp.Sessions, ctx context.Context) []string {
	t.Helper()
	tools, err := c.Tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Names(tools)
}

// whoami calls the tool with which the server says who calls.
func whoami(t *testing.T, ctx context.Context, tools []*pawl.Tool) pawl.Execution {
	t.Helper()
	var reg pawl.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return reg.Execute(ctx, "office_whoami", json.RawMessage(`{}`))
}

func toolsOf(t *testing.T, c *callermcp.Sessions, ctx context.Context) []*pawl.Tool {
	t.Helper()
	tools, err := c.Tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// Users at the same time have a session each, their own tools and their own credential, also after
// the server has lost all sessions. What the server repeats of a credential is hidden.
func TestSessionForEachCaller(t *testing.T) {
	o, url := newOffice(t)
	c := sessions(t, url, callermcp.Limits{})
	users := []string{"ann", "bob", "eve"}
	play := func() {
		var wg sync.WaitGroup
		for n := range 30 {
			user := users[n%len(users)]
			wg.Go(func() {
				ctx := as(t, user)
				tools := toolsOf(t, c, ctx)
				if got := mcp.Names(tools); !slices.Equal(got, []string{"office_of_" + user, "office_whoami"}) {
					t.Errorf("%s has %v", user, got)
				}
				x := whoami(t, ctx, tools)
				text := x.Result.Text()
				if x.Outcome != pawl.OutcomeOK || !strings.HasPrefix(text, user+" with ") || strings.Contains(text, "token-of-") {
					t.Errorf("%s: %s, %q", user, x.Outcome, text)
				}
			})
		}
		wg.Wait()
	}
	play()
	if o.began != 3 {
		t.Errorf("%d sessions began for 3 users", o.began)
	}

	o.forget() // 404
	play()
	count := map[string]int{}
	for _, user := range o.calls {
		count[user]++
	}
	if want := map[string]int{"ann": 20, "bob": 20, "eve": 20}; !maps.Equal(count, want) {
		t.Errorf("the calls were made by %v, want %v", count, want)
	}
}

// Without a caller, without a credential and with a credential that no header can have, nothing
// is sent.
// Outside of runs there are no tools, and no error.
func TestNoCaller(t *testing.T) {
	o, url := newOffice(t)
	c := sessions(t, url, callermcp.Limits{})
	for name, ctx := range map[string]context.Context{
		"no caller":    t.Context(),
		"no token":     caller.With(t.Context(), caller.Caller{Name: "ann", User: "ann"}),
		"a line break": caller.With(t.Context(), caller.Caller{Name: "ann", User: "ann", Token: "token-of-ann\r\nX: y"}),
	} {
		if tools, err := c.Tools(ctx); err == nil || len(tools) > 0 || !strings.Contains(err.Error(), "nothing was sent") {
			t.Errorf("%s: %d tools, %v", name, len(tools), err)
		}
	}
	if got := names(t, c, caller.OutsideRuns(as(t, "ann"))); len(got) > 0 || o.began > 0 {
		t.Errorf("outside of runs: %v, %d sessions", got, o.began)
	}
}

// A tool that one caller got makes no call for another, nor for none.
func TestToolOfAnotherCaller(t *testing.T) {
	o, url := newOffice(t)
	c := sessions(t, url, callermcp.Limits{})
	tools := toolsOf(t, c, as(t, "ann"))
	for name, ctx := range map[string]context.Context{"another": as(t, "bob"), "none": t.Context(),
		"another token": caller.With(t.Context(), caller.Caller{Name: "web", Tenant: "acme", User: "ann", Token: "token-of-root"})} {
		x := whoami(t, ctx, tools)
		if x.Outcome != pawl.OutcomeError || x.Certainty != delivery.NotSent || len(o.calls) > 0 {
			t.Errorf("%s: %s, %q, %q, calls %v", name, x.Outcome, x.Certainty, x.Result.Text(), o.calls)
		}
	}
	if x := whoami(t, as(t, "ann"), tools); x.Outcome != pawl.OutcomeOK {
		t.Errorf("the control: %s, %s", x.Outcome, x.Result.Text())
	}
}

// A credential that is revoked costs its user the tools, and no other.
func TestRevokedCredential(t *testing.T) {
	o, url := newOffice(t)
	c := sessions(t, url, callermcp.Limits{})
	ann, bob := toolsOf(t, c, as(t, "ann")), toolsOf(t, c, as(t, "bob"))
	o.mu.Lock()
	o.revoked["ann"] = true
	o.mu.Unlock()
	if x := whoami(t, as(t, "ann"), ann); x.Outcome != pawl.OutcomeError || x.Certainty != delivery.Refused {
		t.Errorf("revoked: %s, %q, %s", x.Outcome, x.Certainty, x.Result.Text())
	}
	if x := whoami(t, as(t, "bob"), bob); x.Outcome != pawl.OutcomeOK {
		t.Errorf("the other user: %s, %s", x.Outcome, x.Result.Text())
	}
}

// Idle sessions are closed, and a call of a tool that was offered before begins another. With the
// largest number of sessions, the session that was idle for the longest time makes room.
func TestSessionsAreBounded(t *testing.T) {
	o, url := newOffice(t)
	c := sessions(t, url, callermcp.Limits{Sessions: 2})
	tools := map[string][]*pawl.Tool{}
	for _, user := range []string{"ann", "bob", "eve"} {
		tools[user] = toolsOf(t, c, as(t, user))
	}
	for _, user := range []string{"ann", "bob", "eve", "ann"} {
		x := whoami(t, as(t, user), tools[user])
		if x.Outcome != pawl.OutcomeOK || !strings.HasPrefix(x.Result.Text(), user) {
			t.Errorf("%s: %s, %s", user, x.Outcome, x.Result.Text())
		}
	}
	_ = c.Close()
	if o.open() != 0 || o.ended != o.began || o.began < 5 {
		t.Errorf("after the end: %d open, %d began, %d ended", o.open(), o.began, o.ended)
	}

	for range o.ended {
		<-o.deleted
	}
	idle := sessions(t, url, callermcp.Limits{Idle: 20 * time.Millisecond})
	offered := toolsOf(t, idle, as(t, "ann"))
	<-o.deleted
	if x := whoami(t, as(t, "ann"), offered); x.Outcome != pawl.OutcomeOK {
		t.Errorf("after it was idle: %s, %s", x.Outcome, x.Result.Text())
	}
}

// If all sessions are in use, a further caller gets an error, and no session of another.
func TestAllSessionsInUse(t *testing.T) {
	started := make(chan struct{})
	release := make(chan struct{})
	var once sync.Once
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(started) })
		<-release
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer web.Close()
	c := sessions(t, web.URL, callermcp.Limits{Sessions: 1})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.Tools(as(t, "ann")) })
	<-started
	if _, err := c.Tools(as(t, "bob")); err == nil || !strings.Contains(err.Error(), "none is idle") {
		t.Errorf("got %v", err)
	}
	close(release)
	wg.Wait()
}

// What cannot act for callers is an error before anything is sent.
func TestNew(t *testing.T) {
	for want, s := range map[string]mcp.Server{
		"a caller has name, tenant, user and token": {Name: "a", URL: "http://127.0.0.1:1", Headers: map[string]string{"A": "${caller.password}"}},
		"oauth obtains one token for all": {Name: "a", URL: "http://127.0.0.1:1", OAuth: &mcp.OAuth{ClientID: "a"},
			Headers: map[string]string{"A": "${caller.token}"}},
	} {
		_, err := callermcp.New(s, mcp.Options{}, callermcp.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	verbatim := mcp.Server{Name: "a", URL: "http://127.0.0.1:1", Headers: map[string]string{"A": "${caller.token}"}}
	if _, err := mcp.New(verbatim, nil); err == nil {
		t.Error("mcp.New would send the text ${caller.token}")
	}
}
