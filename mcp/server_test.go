package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/mcp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want mcp.Server
	}{
		{"https://mcp.example.com/mcp", mcp.Server{Name: "mcp_example_com", URL: "https://mcp.example.com/mcp"}},
		{"gh=http://localhost:8080/sse", mcp.Server{Name: "gh", URL: "http://localhost:8080/sse"}},
		{"npx -y @modelcontextprotocol/server-filesystem@1.2.3 /srv", mcp.Server{Name: "filesystem", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem@1.2.3", "/srv"}}},
		{`fs=./serve "a b" 'c "d' e\ f`, mcp.Server{Name: "fs", Command: "./serve", Args: []string{"a b", `c "d`, "e f"}}},
		{"uvx mcp-server-git", mcp.Server{Name: "git", Command: "uvx", Args: []string{"mcp-server-git"}}},
		{"python3 tools/weather.py", mcp.Server{Name: "weather", Command: "python3", Args: []string{"tools/weather.py"}}},
		{"FOO_BAR=x", mcp.Server{Name: "FOO_BAR", Command: "x", Args: []string{}}},
	}
	for _, test := range tests {
		got, err := mcp.Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s: %s", test.text, d)
		}
	}
	for text, want := range map[string]string{
		"":                      "neither command nor url",
		`x "open`:               "not closed",
		"https://u:p@host/mcp":  "send them in a header",
		"https:///nothing":      "a host",
		"n=https://host/\x7fxx": "whole address",
	} {
		if _, err := mcp.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		server mcp.Server
		want   string
	}{
		{mcp.Server{Command: "x"}, "its name"},
		{mcp.Server{Name: "a b", Command: "x"}, "its name"},
		{mcp.Server{Name: "a", Command: "x", URL: "http://h"}, "both"},
		{mcp.Server{Name: "a", Command: "x", Headers: map[string]string{"A": "b"}}, "headers"},
		{mcp.Server{Name: "a", URL: "ftp://h"}, "whole address"},
		{mcp.Server{Name: "a", URL: "http://h", Args: []string{"x"}}, "for a server with a command"},
		{mcp.Server{Name: "a", URL: "http://h", Transport: "carrier pigeon"}, "there are http and sse"},
		{mcp.Server{Name: "a", Command: "x", Prefix: "1"}, "prefix"},
		{mcp.Server{Name: "a", Command: "x", Include: []string{"[a"}}, "not a pattern"},
		{mcp.Server{Name: "a", Command: "x", Env: []string{"=1"}}, "not the name of a variable"},
		{mcp.Server{Name: "a", URL: "http://h", OAuth: &mcp.OAuth{SecretEnv: "X"}}, "needs client_id"},
		{mcp.Server{Name: "a", Command: "x", StartSeconds: -1}, "negative"},
	} {
		if _, err := mcp.New(test.server, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.server, err, test.want)
		}
	}
}

func TestOlderSSE(t *testing.T) {
	s := testServer()
	web := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(web.Close)
	c := open(t, mcp.Server{Name: "test", URL: web.URL, Transport: "sse"}, nil)
	if x := call(t, c, "test_echo", `{"text":"x"}`); x.Result.Text() != "x" {
		t.Errorf("%s %q", x.Outcome, x.Result.Text())
	}
	c.Close()
}

func TestAddresses(t *testing.T) {
	var got http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	t.Cleanup(elsewhere.Close)
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	for _, test := range []struct {
		name, url, want string
	}{
		{"a name that stands for a private address", "http://metadata.google.internal/mcp", "refused"},
		{"a redirect to another host", moved.URL, "not followed"},
	} {
		c := open(t, mcp.Server{Name: "test", URL: test.url, Headers: map[string]string{"Authorization": "Bearer x"}}, nil)
		if _, err := c.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	if got != nil {
		t.Errorf("a token went to another host: %v", got)
	}
}

// A server may delay its response to the request for unsolicited messages until it has a message.
func TestSilentStream(t *testing.T) {
	s := testServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	c := open(t, mcp.Server{Name: "test", URL: web.URL, StartSeconds: 10}, nil)
	if x := call(t, c, "test_echo", `{"text":"x"}`); x.Result.Text() != "x" {
		t.Errorf("%s %q", x.Outcome, x.Result.Text())
	}
	c.Close()
}
