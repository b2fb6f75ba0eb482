package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/mcp"
)

// notices collects the notices of a client.
type notices struct {
	mu  sync.Mutex
	all []string
}

func (n *notices) add(one mcp.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, one.String())
}

// A server that was up and is away costs its tools and no run: a notice says so, and another says
// that it is back. A server that was never up is an error.
func TestAway(t *testing.T) {
	s := testServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: true})
	var away atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	server := mcp.Server{Name: "test", URL: web.URL, StartSeconds: 5}

	away.Store(true)
	if tools, err := open(t, server, nil).Tools(t.Context()); err == nil {
		t.Errorf("a server that was never up: got %d tools", len(tools))
	}
	away.Store(false)

	var told notices
	c := open(t, server, &mcp.Options{Notice: told.add})
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) == 0 {
		t.Fatal(tools, err)
	}
	away.Store(true)
	for range 3 {
		if x := call(t, fixedSet(tools), "test_echo", `{"text":"x"}`); x.Result.Text() == "x" {
			t.Error("a call of a server that is away succeeds")
		}
		if got, err := c.Tools(t.Context()); err != nil || len(got) != 0 {
			t.Fatalf("away: got %d tools, %v", len(got), err)
		}
	}

	away.Store(false)
	for {
		got, err := c.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == len(tools) {
			break
		}
	}
	if x := call(t, c, "test_echo", `{"text":"x"}`); x.Result.Text() != "x" {
		t.Errorf("afterwards: %s %q", x.Outcome, x.Result.Text())
	}

	told.mu.Lock()
	defer told.mu.Unlock()
	var gone, back int
	for _, text := range told.all {
		if strings.Contains(text, "its tools are missing until it can") {
			gone++
		}
		if strings.Contains(text, "it can be reached again") {
			back++
		}
	}
	if gone != 1 || back != 1 {
		t.Errorf("got %q", told.all)
	}
}
