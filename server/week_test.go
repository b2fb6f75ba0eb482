package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// A week of a server with an agent that uses an MCP server whose tokens live for 60 s and whose
// sessions end after five minutes without a request, which is away for an hour, and whose tokens
// cannot be renewed for an hour. Every request is answered, and a call of the tool runs once or, in
// these two hours, not at all.
func TestWeek(t *testing.T) {
	const between = 15 * time.Minute
	const day = 24 * time.Hour
	away := hours{3 * day, 3*day + time.Hour}
	noTokens := hours{5 * day, 5*day + time.Hour}

	far := &farServer{away: away, noTokens: noTokens}
	// Real connections end before the clock of the bubble goes on.
	web := httptest.NewUnstartedServer(far)
	web.Config.SetKeepAlivesEnabled(false)
	web.Start()
	defer web.Close()

	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		client, err := mcp.New(mcp.Server{
			Name:  "far",
			URL:   web.URL + "/mcp",
			OAuth: &mcp.OAuth{ClientID: "week", SecretEnv: "SECRET"},
		}, &mcp.Options{
			Getenv: func(string) string { return "week-secret" },
			Notice: func(n mcp.Notice) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, n.Text)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		agent := &pawl.Agent{Name: "week", Model: noting(), Tools: []pawl.Toolset{client}}
		s, err := server.New([]*pawl.Agent{agent}, new(store.MemoryJournal), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())

		begun := time.Now()
		calls := 0
		for time.Since(begun) < 7*day {
			passed := time.Since(begun)
			far.setClock(passed)
			answer := answered(t, s, passed)
			_, noted := strings.CutPrefix(answer, "noted ")
			switch {
			case noted:
				calls++
				if answer != "noted "+strconv.Itoa(calls) {
					t.Fatalf("after %v: got %q, want call %d", passed, answer, calls)
				}
			case !away.has(passed) && !noTokens.has(passed):
				t.Fatalf("after %v: got %q, want call %d", passed, answer, calls+1)
			case answer != "no tool" && !strings.Contains(answer, "was not made"):
				t.Fatalf("after %v: got %q", passed, answer)
			}
			time.Sleep(between)
		}

		// The clock has moved: the server saw what it is made for.
		far.mu.Lock()
		defer far.mu.Unlock()
		if far.calls != calls || calls < 600 || far.tokens < 600 || far.sessions < 600 {
			t.Errorf("%d of %d calls, %d tokens, %d sessions", calls, far.calls, far.tokens, far.sessions)
		}
		mu.Lock()
		defer mu.Unlock()
		gone := strings.Count(strings.Join(told, "\n"), "its tools are missing until it can")
		back := strings.Count(strings.Join(told, "\n"), "it can be reached again")
		if gone != 2 || back != 2 {
			t.Errorf("%d notices that it is away, %d that it is back: %q", gone, back, told)
		}
	})
}

// hours is a time of the week.
type hours struct{ from, to time.Duration }

func (h hours) has(passed time.Duration) bool { return passed >= h.from && passed < h.to }

// noting is a model that calls the tool if it is offered, and answers with its result.
func noting() llm.Model {
	return &script.Model{Quiet: true, Turns: []script.Turn{script.Loop(script.Func(func(r *llm.Request) script.Turn {
		if results := script.Results(r); len(results) > 0 {
			return script.Say(results[len(results)-1].Text())
		}
		for _, tool := range r.Tools {
			if tool.Name == "far_note" {
				return script.Call("far_note", `{}`)
			}
		}
		return script.Say("no tool")
	}))}}
}

// answered makes one run, and returns its answer.
func answered(t *testing.T, s http.Handler, passed time.Duration) string {
	t.Helper()
	body := fmt.Sprintf(`{"id":"run-%d","input":"Write a note.","wait":true}`, passed/time.Second)
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/runs", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var run struct{ Stop, Answer string }
	if err := json.Unmarshal(w.Body.Bytes(), &run); err != nil || run.Stop != string(pawl.StopAnswer) {
		t.Fatalf("after %v: got status %d, %s, %v", passed, w.Code, w.Body, err)
	}
	return run.Answer
}

// farServer is an MCP server with a tool that counts its calls. Its clock is set from outside.
type farServer struct {
	away, noTokens hours

	mu      sync.Mutex
	clock   time.Duration
	token   string
	expires time.Duration // of the token
	session string
	used    time.Duration // the last use of the session

	calls, tokens, sessions int
}

func (f *farServer) setClock(passed time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = passed
}

// ServeHTTP answers a request.
func (f *farServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away.has(f.clock) {
		panic(http.ErrAbortHandler) // the connection breaks
	}

	base := "http://" + r.Host
	authorized := f.token != "" && f.clock < f.expires && r.Header.Get("Authorization") == "Bearer "+f.token
	switch {
	case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%[1]s"]}`, base)
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":"%s","token_endpoint":"%[1]s/token","code_challenge_methods_supported":["S256"],`+
			`"token_endpoint_auth_methods_supported":["client_secret_post"]}`, base)
	case r.URL.Path == "/token" && f.noTokens.has(f.clock):
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/token":
		f.tokens++
		f.token = "t" + strconv.Itoa(f.tokens)
		f.expires = f.clock + time.Minute
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"%s","token_type":"bearer","expires_in":60}`, f.token)
	case r.URL.Path != "/mcp":
		w.WriteHeader(http.StatusNotFound)
	case !authorized:
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+base+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		f.answer(w, r)
	}
}

// answer answers a message. The caller holds mu.
func (f *farServer) answer(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m) // the client writes JSON
	if m.Method == "initialize" {
		f.sessions++
		f.session = "s" + strconv.Itoa(f.sessions)
		f.used = f.clock
		w.Header().Set("Mcp-Session-Id", f.session)
	}
	lost := r.Header.Get("Mcp-Session-Id") != f.session || f.clock-f.used > 5*time.Minute

	result := ""
	switch {
	case m.Method == "server/discover":
		w.WriteHeader(http.StatusBadRequest)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
	case lost:
		http.Error(w, "no such session", http.StatusNotFound)
		return
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}`
	case m.Method == "tools/call":
		f.calls++
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"noted %d"}]}`, f.calls)
	}
	f.used = f.clock
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
