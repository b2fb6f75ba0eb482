package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/tools/outside"
)

// fate is what becomes of the calls of a service, and whether that opens the breaker of its tool.
type fate struct {
	name  string
	opens bool
	want  delivery.Certainty // of each call before the breaker opens
	// act answers a call; nil means that the service is gone.
	act http.HandlerFunc
	// lookup resolves the name of the service; nil means that it is called by its address.
	lookup func(context.Context, string) ([]netip.Addr, error)
	// header is the definition of a header; empty means none.
	header string
	only   string             // the doors that have it; empty means all
	mcp    delivery.Certainty // replaces want, since a reply of MCP is no status; empty means want
}

func answers(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

var fates = []fate{
	{name: "nothing listens", opens: true, want: delivery.NotSent},
	{name: "the name does not resolve", opens: true, want: delivery.NotSent, only: "http openapi a2a",
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "shop.test", IsNotFound: true}
		}},
	{name: "the connection breaks", opens: true, want: delivery.Unknown,
		act: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	{name: "the answer is late", opens: true, want: delivery.Unknown, act: func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}},
	{name: "429", opens: true, want: delivery.Refused, act: answers(429, "slow down")},
	{name: "502", opens: true, want: delivery.Unknown, act: answers(502, "bad gateway")},
	{name: "503 without a body", opens: true, want: delivery.Refused, act: answers(503, "")},
	{name: "503", opens: true, want: "", mcp: delivery.Unknown, act: answers(503, `{"error":"away"}`)},
	{name: "504", opens: true, want: delivery.Unknown, act: answers(504, "")},

	// The service is there.
	{name: "400", want: "", mcp: delivery.Refused, act: answers(400, `{"error":"no such wall"}`)},
	{name: "401", want: delivery.Refused, act: answers(401, "who are you")},
	{name: "403", want: delivery.Refused, act: answers(403, "")},
	{name: "404", want: "", mcp: delivery.Refused, act: answers(404, `{"error":"no such wall"}`)},
	{name: "500", want: "", mcp: delivery.Unknown, act: answers(500, `{"error":"no paint"}`)},

	// The call was refused here.
	{name: "the caller has no token", want: delivery.NotSent, act: answers(200, `{}`), only: "http openapi a2a",
		header: `headers: {Authorization: "Bearer ${caller.token}"}, `},
	{name: "a private address", want: delivery.NotSent, act: answers(200, `{}`), only: "http openapi a2a",
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}},
}

// service is a server of every protocol. Its calls are counted.
type service struct {
	*httptest.Server
	act     http.HandlerFunc
	arrived atomic.Int32
}

func serveFate(t *testing.T, f fate) *service {
	t.Helper()
	s := &service{act: f.act}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *service) handle(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     json.RawMessage
		Method string
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &q)
	w.Header().Set("Connection", "close")
	reply := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
	}
	switch {
	case r.URL.Path == "/.well-known/agent-card.json":
		fmt.Fprintf(w, `{"name":"painter","version":"1","supportedInterfaces":[{"url":"http://%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{}}`, r.Host)
	case r.URL.Path == "/x", r.URL.Path == "/rpc", q.Method == "tools/call":
		s.arrived.Add(1)
		s.act(w, r)
	case q.Method == "initialize":
		reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
	case q.Method == "tools/list":
		reply(`{"tools":[{"name":"act","description":"Acts.","inputSchema":{"type":"object"}}]}`)
	case r.Method == http.MethodPost && len(q.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// doorTool returns the tool of a door that leads to addr.
func doorTool(t *testing.T, door, addr string, f fate) *pawl.Tool {
	t.Helper()
	if door == "mcp" {
		c, err := mcp.New(mcp.Server{Name: "shop", URL: "http://" + addr + "/mcp", CallSeconds: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return soleTool(t, c)
	}
	allow := `allow: ["` + addr + `"], `
	if f.lookup != nil {
		_, port, _ := net.SplitHostPort(addr)
		addr = "shop.test:" + port
		allow = ""
	}
	form := map[string]string{
		"http":    `[{http: {name: act, description: d, method: POST, ` + f.header + allow + `url: "http://` + addr + `/x", timeout: 300ms}}]`,
		"openapi": `[{openapi: {spec: spec.json, ` + f.header + allow + `base_url: "http://` + addr + `", timeout: 300ms}}]`,
		"a2a":     `[{a2a: {name: act, description: d, ` + f.header + allow + `url: "http://` + addr + `", timeout: 1s}}]`,
	}[door]
	dir := t.TempDir()
	spec := `{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{"/x":{"post":{"operationId":"act","responses":{"200":{"description":"ok"}}}}}}`
	if err := os.WriteFile(filepath.Join(dir, "spec.json"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	defs, err := outside.Parse([]byte(form))
	if err != nil {
		t.Fatal(err)
	}
	set, err := outside.New(defs, &outside.Options{Dir: dir, Lookup: f.lookup})
	if err != nil {
		t.Fatal(err)
	}
	return soleTool(t, set)
}

func soleTool(t *testing.T, set pawl.Toolset) *pawl.Tool {
	t.Helper()
	tools, err := set.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatal(len(tools), err)
	}
	return tools[0]
}

// What opens a breaker is the same at every door: a service that is away or busy. A service that
// refuses a request, and a call that is refused here, leave it closed, so that a user without a
// valid credential closes a tool for no other user. A call that an open breaker blocks does not
// arrive, and is certainly not sent.
func TestBreakerAtEveryDoor(t *testing.T) {
	for _, f := range fates {
		for _, door := range []string{"http", "openapi", "a2a", "mcp"} {
			if f.only != "" && !strings.Contains(f.only, door) {
				continue
			}
			t.Run(f.name+", "+door, func(t *testing.T) {
				t.Parallel()
				s := serveFate(t, f)
				tool := doorTool(t, door, s.Listener.Addr().String(), f).Clone()
				tool.Timeout = time.Second
				if f.act == nil {
					s.CloseClientConnections()
					s.Close()
				}
				args := `{}`
				if door == "a2a" {
					args = `{"message":"paint"}`
				}
				want := f.want
				if door == "mcp" && f.mcp != "" {
					want = f.mcp
				}

				breaker := policy.Breaker{Failures: 2, Pause: time.Hour}.Middleware()
				for range 2 {
					x := once(t, tool, args, breaker)
					failed := x.Outcome == pawl.OutcomeError || x.Outcome == pawl.OutcomeTimeout
					if !failed || x.Certainty != want {
						t.Errorf("%s, certainty %q, %q; want %q", x.Outcome, x.Certainty, x.Result.Text(), want)
					}
				}

				before := s.arrived.Load()
				x := once(t, tool, args, breaker)
				blocked := x.Outcome == pawl.OutcomeBlocked
				unsent := x.Certainty == delivery.NotSent && strings.HasSuffix(x.Result.Text(), "It was not sent.")
				switch {
				case blocked != f.opens:
					t.Errorf("the third call: %s, %q", x.Outcome, x.Result.Text())
				case blocked && (!unsent || s.arrived.Load() != before):
					t.Errorf("blocked: %q, %q, arrived %d times", x.Certainty, x.Result.Text(), s.arrived.Load()-before)
				}
			})
		}
	}
}

// A program that fails or does not start is no service that is away. A program that is too slow is.
func TestBreakerOfCommands(t *testing.T) {
	for _, c := range []struct {
		name  string
		opens bool
		run   outside.Program
	}{
		{"does not start", false, func(context.Context) (outside.Exit, error) {
			return outside.Exit{}, syscall.ENOEXEC
		}},
		{"fails", false, func(context.Context) (outside.Exit, error) { return outside.Exit{Code: 1}, nil }},
		{"is too slow", true, func(ctx context.Context) (outside.Exit, error) {
			<-ctx.Done()
			return outside.Exit{Code: -1}, nil
		}},
	} {
		defs, err := outside.Parse([]byte(`[{command: {name: act, description: d, run: [prog], timeout: 100ms}}]`))
		if err != nil {
			t.Fatal(err)
		}
		prepare := func(context.Context, outside.Process) (outside.Program, error) { return c.run, nil }
		set, err := outside.New(defs, &outside.Options{Run: prepare})
		if err != nil {
			t.Fatal(err)
		}
		breaker := policy.Breaker{Failures: 2, Pause: time.Hour}.Middleware()
		var x pawl.Execution
		for range 3 {
			x = once(t, soleTool(t, set), `{}`, breaker)
		}
		if open := x.Outcome == pawl.OutcomeBlocked; open != c.opens || open && x.Certainty != delivery.NotSent {
			t.Errorf("%s: %s, %q", c.name, x.Outcome, x.Certainty)
		}
	}
}
