package agentfile_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/mcp"
)

// mcpServer offers n tools over HTTP to clients with the token, and counts the requests.
func mcpServer(t *testing.T, n int, token string) (url string, asked *atomic.Int32) {
	t.Helper()
	var tools []pawl.Toolset
	for i := range n {
		tools = append(tools, pawl.Func(fmt.Sprintf("tool_%d", i), "Does number "+fmt.Sprint(i)+".",
			func(context.Context, struct{}) (string, error) { return "done", nil }))
	}
	h, err := (&mcp.Service{Tools: tools}).Handler(t.Context(), &mcp.HTTPOptions{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int32)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, asked
}

// loaded is the one agent of a file.
func loaded(t *testing.T, text string) *agentfile.Agent {
	t.Helper()
	f, err := agentfile.Parse("agent.yaml", []byte(text), &agentfile.LoadOptions{Getenv: environment, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return f.Agents[0]
}

// The tools of a server are offered under its name, from 20 on behind tool_search. The token is
// hidden.
func TestServers(t *testing.T) {
	for _, tt := range []struct {
		n      int
		search string
		want   bool
	}{{2, "auto", false}, {25, "auto", true}, {25, "off", false}, {2, "on", true}} {
		url, asked := mcpServer(t, tt.n, environment("SECRET_TOKEN"))
		a := loaded(t, `
agent: a
model: openai:gpt-6.1-terra
tools: [{mcp: far}]
tool_search: `+tt.search+`
mcp_servers:
  far: {url: "`+url+`", headers: {Authorization: "Bearer ${SECRET_TOKEN}"}}
approve: {ask: [far_tool_1]}
`)
		dry := &agentfile.Options{Getenv: environment}
		if x, err := a.Explain(t.Context(), dry, "Do it."); err != nil ||
			strings.Contains(string(x.Body), "far_tool_1") || asked.Load() != 0 {
			t.Errorf("%d tools: a dry build asked the server %d times, and gives %v\n%s", tt.n, asked.Load(), err, x.Body)
		}
		x, err := a.Explain(t.Context(), &agentfile.Options{Getenv: environment, Connect: true}, "Do it.")
		if err != nil {
			t.Fatal(err)
		}
		if body := string(x.Body); strings.Contains(body, "tool_search") != tt.want || strings.Contains(body, `"far_tool_1"`) == tt.want {
			t.Errorf("%d tools, search %s: %s", tt.n, tt.search, body)
		}
		if text := string(x.Agent); strings.Contains(text, "0123456789") || !strings.Contains(text, "Bearer ${SECRET_TOKEN}") {
			t.Errorf("the agent shows a secret, or not where it was: %s", text)
		}
		built, err := a.Build(t.Context(), &agentfile.Options{Getenv: environment})
		if err != nil {
			t.Fatal(err)
		}
		built.Close()
		if !slices.Contains(built.Hidden, environment("SECRET_TOKEN")) {
			t.Errorf("the token is not hidden: %q", built.Hidden)
		}
	}
}

// A server that cannot be reached is an error at its place, without secrets. The control has the
// right token.
func TestServerGone(t *testing.T) {
	url, _ := mcpServer(t, 1, "tok-0123456789")
	for token, good := range map[string]bool{"${SECRET_TOKEN}": true, "x": false} {
		a := loaded(t, "agent: a\nmodel: openai:gpt-6.1-terra\ntools: [{mcp: far}]\nmcp_servers:\n  far:\n    url: "+url+"/?key=${SECRET_TOKEN}\n    headers: {Authorization: \"Bearer "+token+"\"}\n")
		built, err := a.Build(t.Context(), &agentfile.Options{Getenv: environment})
		switch {
		case good && err == nil:
			built.Close()
		case good || err == nil:
			t.Errorf("token %s: got %v", token, err)
		default:
			f := agentfile.FindingsOf(err)
			one := len(f) == 1 && f[0].Code == agentfile.CodeUnavailable && f[0].Line == 5
			if !one || strings.Contains(err.Error(), "0123456789") {
				t.Errorf("got %v", err)
			}
		}
	}
}

// A server may be away when a run begins. A rule that names one of its tools then ends no run, and
// a rule about a server that the file does not have is a finding.
func TestRulesOfServersThatAreAway(t *testing.T) {
	const file = "agent: a\nmodel: openai:gpt-5-mini\ntools: [{mcp: far}]\nmcp_servers:\n  far: {url: %q}\napprove: {allow: [%q]}\n"
	url, _ := mcpServer(t, 1, "")
	for rule, want := range map[string]bool{"far_tool_0": true, "mcp:far": true, "near_tool_0": false} {
		err := loaded(t, fmt.Sprintf(file, url, rule)).Rules().Check(nil)
		if (err == nil) != want {
			t.Errorf("%s: got %v", rule, err)
		}
	}

	for rule, code := range map[string]agentfile.Code{
		"mcp:far":    "",
		"mcp:fra":    agentfile.CodeUnknownServer,
		"far_tool_9": agentfile.CodeUnknownTool,
	} {
		a := loaded(t, fmt.Sprintf(file, url, rule))
		built, err := a.Build(t.Context(), &agentfile.Options{Getenv: environment})
		if err == nil {
			built.Close()
		}
		f := agentfile.FindingsOf(err)
		if code == "" && err != nil || code != "" && (len(f) != 1 || f[0].Code != code) {
			t.Errorf("%s: got %v, want %q", rule, err, code)
		}
	}
}

// A server that acts for callers is not asked before a run, and then has the tools of the caller of
// the run. Elsewhere than in a header, a caller is a mistake.
func TestServerForCallers(t *testing.T) {
	url, asked := mcpServer(t, 1, "token-of-ann")
	file := "agent: a\nmodel: openai:gpt-6.1-terra\ntools: [{mcp: far}]\nmcp_servers:\n  far:\n    url: " + url +
		"\n    headers: {Authorization: \"Bearer ${caller.token}\"}\napprove: {ask: [far_tool_0]}\n"
	a := loaded(t, file)
	if _, err := a.Explain(t.Context(), &agentfile.Options{Getenv: environment}, "Do it."); err != nil {
		t.Errorf("a dry build: %v", err)
	}
	built, err := a.Build(t.Context(), &agentfile.Options{Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	if asked.Load() != 0 {
		t.Errorf("the server was asked %d times without a caller", asked.Load())
	}

	ann := caller.With(t.Context(), caller.Caller{Name: "ann", User: "ann", Token: "token-of-ann"})
	tools, err := pawl.Toolsets(built.Agent.Tools).Tools(ann)
	if names := mcp.Names(tools); err != nil || !slices.Equal(names, []string{"far_tool_0"}) {
		t.Errorf("ann has %v, %v", names, err)
	}
	before := asked.Load()
	if _, err := pawl.Toolsets(built.Agent.Tools).Tools(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "there is no caller with a token") || asked.Load() != before {
		t.Errorf("without a caller: %v", err)
	}

	_, err = agentfile.Parse("agent.yaml", []byte(strings.Replace(file, "url: "+url, "url: "+url+"/${caller.user}", 1)),
		&agentfile.LoadOptions{Getenv: environment, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "cannot stand here") {
		t.Errorf("a caller in an address: %v", err)
	}
}
