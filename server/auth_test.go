package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/server/api"
)

const (
	readToken   = "read-read-read-read"
	runToken    = "run-run-run-run-run"
	decideToken = "decide-decide-decide"
	allToken    = "all-all-all-all-all"
	otherToken  = "other-other-other-other"
)

func tokens() []api.Token {
	sum := sha256.Sum256([]byte(allToken))
	return []api.Token{
		{Name: "reader", Token: readToken, Scopes: []api.Scope{api.ScopeRead}},
		{Name: "runner", Token: runToken, Scopes: []api.Scope{api.ScopeRun, api.ScopeRead}},
		{Name: "judge", Token: decideToken, Scopes: []api.Scope{api.ScopeDecide, api.ScopeRead}},
		{Name: "admin", SHA256: hex.EncodeToString(sum[:]), Scopes: []api.Scope{api.ScopeAll}},
		{Name: "stranger", Token: otherToken, Scopes: []api.Scope{api.ScopeAll}, Tenant: "other"},
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	v := serve(t, func(o *options) {
		o.Access.Tokens, o.Access.Hosts, o.Access.Origins = tokens(), []string{"agents.example.com"}, []string{"https://app.example.com"}
		o.Limits.Body = 10_000
		o.MCP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "mcp") })
	})
	v.token = allToken
	var run api.Run
	v.do("POST", "/v1/runs", `{"id":"w","input":"pay 1","wait":true}`, 201, &run)
	decision := `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
	passed := `{"id":"w","messages":[{"role":"user","parts":[{"type":"decision","key":"run/1/0","digest":"` + run.Pending[0].Digest + `","approve":true}]}]}`
	long := `{"input":"` + strings.Repeat("x", 20_000) + `"}`
	for _, test := range []struct {
		what, token, method, path, body string
		status                          int
		code                            string
		headers                         []string
	}{
		{"no token", "", "GET", "/v1/runs", "", 401, "no_token", nil},
		{"a token in another scheme", "", "GET", "/v1/runs", "", 401, "no_token", []string{"Authorization", "Basic " + allToken}},
		{"a wrong token", "nobody-has-this-one", "GET", "/v1/runs", "", 401, "wrong_token", nil},
		{"the beginning of a token", allToken[:10], "GET", "/v1/runs", "", 401, "wrong_token", nil},
		{"no token for MCP", "", "POST", "/mcp", "{}", 401, "no_token", nil},
		{"no token for OpenAI's endpoints", "", "GET", "/v1/runs/w/events", "", 401, "no_token", nil},
		{"reader begins", readToken, "POST", "/v1/runs", `{"input":"x"}`, 403, "wrong_scope", nil},
		{"reader cancels", readToken, "POST", "/v1/runs/w/cancel", "", 403, "wrong_scope", nil},
		{"reader calls a tool", readToken, "POST", "/v1/tools/pay/call", `{}`, 403, "wrong_scope", nil},
		{"reader uses MCP", readToken, "POST", "/mcp", `{}`, 403, "wrong_scope", nil},
		{"runner approves", runToken, "POST", "/v1/runs/w/approve", decision, 403, "wrong_scope", nil},
		{"runner approves on the way of messages", runToken, "POST", "/v1/runs", passed, 403, "wrong_scope", nil},
		{"runner says what came of a call", runToken, "POST", "/v1/runs/w/answer", decision[:len(decision)-1] + `,"text":"paid"}`, 403, "wrong_scope", nil},
		{"runner calls a tool", runToken, "POST", "/v1/tools/pay/call", `{}`, 403, "wrong_scope", nil},
		{"judge answers, by another digest", decideToken, "POST", "/v1/runs/w/answer", `{"key":"run/1/0","digest":"x","text":"paid"}`, 409, "conflict", nil},
		{"reader answers", readToken, "POST", "/v1/runs/w/answer", `{"key":"run/1/0","digest":"x","text":"paid"}`, 403, "wrong_scope", nil},
		{"judge begins", decideToken, "POST", "/v1/runs", `{"input":"x"}`, 403, "wrong_scope", nil},
		{"another tenant looks", otherToken, "GET", "/v1/runs/w", "", 404, "not_found", nil},
		{"another tenant watches", otherToken, "GET", "/v1/runs/w/events", "", 404, "not_found", nil},
		{"another tenant decides", otherToken, "POST", "/v1/runs/w/approve", decision, 404, "not_found", nil},
		{"another tenant deletes", otherToken, "DELETE", "/v1/runs/w", "", 404, "not_found", nil},
		{"reader deletes", readToken, "DELETE", "/v1/runs/w", "", 403, "wrong_scope", nil},
		{"another tenant cancels", otherToken, "POST", "/v1/runs/w/cancel", "", 404, "not_found", nil},
		{"a foreign host", allToken, "GET", "/v1/runs", "", 403, "wrong_host", []string{"Host", "evil.example"}},
		{"a foreign host without a token", "", "GET", "/v1/health", "", 403, "wrong_host", []string{"Host", "evil.example"}},
		{"a foreign origin", allToken, "GET", "/v1/runs", "", 403, "wrong_origin", []string{"Origin", "https://evil.example"}},
		{"another name of this machine", allToken, "GET", "/v1/runs", "", 403, "wrong_origin", []string{"Origin", "https://agents.example.com"}},
		{"a page that is a file", allToken, "POST", "/v1/runs", `{"input":"x"}`, 403, "wrong_origin", []string{"Origin", "null"}},
		{"a form of a page", allToken, "POST", "/v1/runs", `{"input":"x"}`, 415, "unsupported_media", []string{"Content-Type", "text/plain"}},
		{"a long body", allToken, "POST", "/v1/runs", long, 413, "too_large", nil},
		{"no such address", allToken, "GET", "/v1/nothing", "", 404, "not_found", nil},
		{"no such method", allToken, "DELETE", "/v1/runs", "", 405, "method_not_allowed", nil},
		{"an unknown member", allToken, "POST", "/v1/runs", `{"inptu":"x"}`, 400, "bad_request", nil},
		{"two values", allToken, "POST", "/v1/runs", `{"input":"x"}{}`, 400, "bad_request", nil},
		{"an unknown parameter", allToken, "GET", "/v1/runs?stat=over", "", 400, "bad_request", nil},
		{"an unknown state", allToken, "GET", "/v1/runs?state=gone", "", 400, "bad_request", nil},
		{"too many at once", allToken, "GET", "/v1/runs?limit=100000", "", 400, "bad_request", nil},
		{"nothing to do", allToken, "POST", "/v1/runs", `{}`, 400, "bad_request", nil},
		{"an id that is none", allToken, "POST", "/v1/runs", `{"id":"` + strings.Repeat("i", 300) + `","input":"x"}`, 400, "bad_request", nil},
		{"no such agent", allToken, "POST", "/v1/runs", `{"agent":"nobody","input":"x"}`, 404, "not_found", nil},
		{"no such run", allToken, "GET", "/v1/runs/nobody", "", 404, "not_found", nil},
	} {
		t.Run(test.what, func(t *testing.T) {
			at := *v
			at.t, at.token = t, test.token
			at.code(test.method, test.path, test.body, test.status, test.code, test.headers...)
		})
	}
	if n := v.world.paid.Load(); n != 0 {
		t.Fatalf("paid %d times without permission", n)
	}
	// The same endpoints are open to clients with the scope.
	for _, test := range []struct {
		token, method, path, body string
		status                    int
		headers                   []string
	}{
		{"", "GET", "/v1/health", "", 200, nil},
		{readToken, "GET", "/v1/runs/w", "", 200, nil},
		{readToken, "GET", "/v1/runs", "", 200, []string{"Host", "agents.example.com"}},
		{readToken, "GET", "/v1/runs", "", 200, []string{"Origin", "https://app.example.com"}},
		{readToken, "GET", "/v1/runs", "", 200, []string{"Host", "agents.example.com:8443", "Origin", "https://agents.example.com:8443"}},
		{runToken, "POST", "/v1/runs", `{"input":"x"}`, 201, nil},
		{decideToken, "POST", "/v1/runs/w/approve", decision, 200, nil},
	} {
		v.token = test.token
		v.do(test.method, test.path, test.body, test.status, nil, test.headers...)
	}
	v.token = readToken
	res := v.request("OPTIONS", "/v1/runs", "", "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST")
	res.Body.Close()
	if res.StatusCode != 204 || res.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("preflight: %d %v", res.StatusCode, res.Header)
	}
	v.events(v.request("GET", "/v1/runs/w/events", "").Body, nil)
	var x struct {
		Calls []struct {
			Execution struct{ Decision struct{ By string } }
		}
	}
	v.do("GET", "/v1/runs/w/export", "", 200, &x)
	if len(x.Calls) != 1 || x.Calls[0].Execution.Decision.By != "judge" {
		t.Errorf("who decided: %+v", x)
	}
}

func TestLimitsOfAToken(t *testing.T) {
	now := time.Now()
	v := serve(t, func(o *options) {
		o.Access.Tokens = []api.Token{{Name: "few", Token: allToken, Scopes: []api.Scope{api.ScopeAll}, Runs: 1,
			Streams: 1},
			{Name: "slow", Token: readToken, Scopes: []api.Scope{api.ScopeRead}, PerMinute: 2}}
		o.Now = func() time.Time { return now }
	})
	v.token = allToken
	v.do("POST", "/v1/runs", `{"id":"a","input":"wait"}`, 201, nil)
	v.code("POST", "/v1/runs", `{"id":"b","input":"wait"}`, 429, "too_many")
	v.do("POST", "/v1/runs", `{"id":"a","input":"wait"}`, 200, nil)
	stream := v.request("GET", "/v1/runs/a/events", "")
	v.code("GET", "/v1/runs/a/events", "", 429, "too_many")
	close(v.world.gate)
	v.events(stream.Body, nil)
	v.do("POST", "/v1/runs", `{"id":"b","input":"hello"}`, 201, nil)

	v.token = readToken
	v.do("GET", "/v1/runs", "", 200, nil)
	v.do("GET", "/v1/runs", "", 200, nil)
	res := v.request("GET", "/v1/runs", "")
	res.Body.Close()
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "31" {
		t.Errorf("the third in a minute: %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	now = now.Add(31 * time.Second)
	v.do("GET", "/v1/runs", "", 200, nil)
}

func TestReadTokens(t *testing.T) {
	good := `[{"name":"ci","token":"0123456789abcdef","scopes":["run","read"],"tenant":"t","user":"u","runs":2,"streams":3,"per_minute":60}]`
	if list, err := api.ReadTokens(strings.NewReader(good)); err != nil || len(list) != 1 || list[0].Runs != 2 {
		t.Errorf("got %v, %v", list, err)
	}
	for bad, want := range map[string]string{
		``: "EOF", `[]`: "no token", `{}`: "cannot", good + good: "after the list",
		`[{"token":"0123456789abcdef","scopes":["run"]}]`:                                      "no name",
		`[{"name":"a","scopes":["run"]}]`:                                                      "one of token",
		`[{"name":"a","token":"short","scopes":["run"]}]`:                                      "16 bytes",
		`[{"name":"a","token":"0123456789abcdef"}]`:                                            "no scope",
		`[{"name":"a","token":"0123456789abcdef","scopes":["fly"]}]`:                           "unknown scope",
		`[{"name":"a","sha256":"00","scopes":["run"]}]`:                                        "64 hex",
		`[{"name":"a","token":"0123456789abcdef","scopes":["run"],"runs":-1}]`:                 "less than 0",
		`[{"name":"a","token":"0123456789abcdef","scopes":["run"],"role":"x"}]`:                "unknown field",
		`[{"name":"a","token":"0123456789abcdef","sha256":"` + strings.Repeat("0", 64) + `"}]`: "one of token",
	} {
		if _, err := api.ReadTokens(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", bad, err, want)
		}
	}
}

// Clients that send their header or their body one byte at a time are disconnected, and other
// clients are served meanwhile.
func TestSlowClientsAreLetGo(t *testing.T) {
	s := listen(t, func(o *options) { o.Times.Wait = 300 * time.Millisecond })
	for _, begin := range []string{"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: ", "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"input\":\""} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, begin); err != nil {
			t.Fatal(err)
		}
		done := make(chan []byte, 1)
		go func() { b, _ := io.ReadAll(conn); done <- b }()
		tick, over := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
		defer tick.Stop()
	drip:
		for {
			select {
			case <-tick.C:
				_, _ = conn.Write([]byte("x"))
			case said := <-done:
				if strings.HasPrefix(begin, "POST") && !bytes.Contains(said, []byte(" 408 ")) {
					t.Errorf("a slow body: %q", said)
				}
				break drip
			case <-over: // the upper limit of the slow client itself
				t.Fatalf("%q is still held open", begin)
			}
		}
	}
	res, err := http.Get("http://" + s.addr + "/v1/health")
	if err != nil || res.StatusCode != 200 {
		t.Errorf("after that: %v, %v", res, err)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// Thousands of malformed requests, a few of which are valid by chance, cause no fault of the
// server: no status from 500 on, no crash, and no remaining state.
func TestTenThousandMalformedRequests(t *testing.T) {
	v := serve(t, func(o *options) { o.Access.Tokens = tokens(); o.Limits.Body = 64 << 10 })
	rnd := rand.New(rand.NewPCG(1, 2))
	paths := []string{"/v1/runs", "/v1/runs/x", "/v1/runs/x/approve", "/v1/runs/x/answer", "/v1/runs/x/steer", "/v1/runs/x/fork", "/v1/runs/x/cancel", "/v1/runs/%00", "/v1/runs/x/events", "/v1/tools/pay/call",
		"/v1/tools/%ff/call", "/v1/runs/x/diff/y", "/v1/runs?limit=-1", "/v1/chat/completions", "/v1/responses", "/v1/nothing", "/mcp", "//", "/v1/runs/" + strings.Repeat("a", 300), "/../etc/passwd"}
	bodies := []string{``, `{`, `null`, `[]`, `""`, `{"input":`, `{"input":1}`, `{"messages":[{}]}`, `{"messages":[{"role":"x"}]}`, `{"key":"","digest":""}`, `{"id":"\u0000","input":"x"}`, "\xff\xfe", `{"input":"x","input":"y"}{}`,
		strings.Repeat("[", 20000), `{"messages":[{"role":"user","parts":[{"type":"decision"}]}]}`, `{"model":1}`, `{"model":"clerk","messages":[{"role":"nobody"}]}`, `{"steps":-1}`, `{"args":"x","agent":"nobody"}`}
	methods := []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"}
	held := []string{allToken, readToken, "", "wrong", otherToken}
	counts := map[int]int{}
	n := soak.N(1500, 10_000)
	for i := range n {
		body := []byte(bodies[rnd.IntN(len(bodies))])
		for range rnd.IntN(4) {
			if len(body) > 0 {
				body[rnd.IntN(len(body))] = byte(rnd.Uint32())
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), methods[rnd.IntN(len(methods))],
			v.url+paths[rnd.IntN(len(paths))], bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if rnd.IntN(5) > 0 {
			req.Header.Set("Content-Type", "application/json")
		}
		if token := held[rnd.IntN(len(held))]; token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if rnd.IntN(10) == 0 {
			req.Header.Set("Last-Event-ID", fmt.Sprint(rnd.Int64()))
		}
		res, err := v.client.Do(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		counts[res.StatusCode]++
		if res.StatusCode >= 500 {
			t.Errorf("%s %s %q: %d", req.Method, req.URL, body, res.StatusCode)
		}
	}
	t.Logf("statuses of %d requests: %v", n, counts)
	v.token = allToken
	v.do("GET", "/v1/runs", "", 200, nil)
}

// An approver lists and decides the calls of the users that its token names, and sees nothing else
// of their runs. Without the permission, the runs of others do not exist.
func TestApproverIsNotTheAsker(t *testing.T) {
	scopes := []api.Scope{api.ScopeDecide, api.ScopeRead}
	token := func(name string) string { return name + "-" + name + "-" + name + "-token" }
	all := []api.Token{
		{Name: "anna", Token: token("anna"), Scopes: []api.Scope{api.ScopeAll}, Tenant: "acme", User: "anna",
			Groups: []string{"payments"}},
		{Name: "eve", Token: token("eve"), Scopes: []api.Scope{api.ScopeAll}, Tenant: "other", User: "eve",
			Approves: []string{"anna", "group:payments", "*"}},
		{Name: "none", Token: token("none"), Scopes: scopes, Tenant: "acme", User: "none"},
		{Name: "reads", Token: token("reads"), Scopes: scopes[1:], Tenant: "acme", User: "reads", Approves: []string{"*"}},
		{Name: "bob", Token: token("bob"), Scopes: scopes, Tenant: "acme", User: "bob", Approves: []string{"ben"}},
		{Name: "named", Token: token("named"), Scopes: scopes, Tenant: "acme", User: "named", Approves: []string{"anna"}},
		{Name: "group", Token: token("group"), Scopes: scopes, Tenant: "acme", User: "group", Approves: []string{"group:payments"}},
		{Name: "tenant", Token: token("tenant"), Scopes: scopes, Tenant: "acme", Approves: []string{"*"}},
	}
	v := serve(t, func(o *options) { o.Access.Tokens = all })
	for i, test := range []struct {
		who  string
		sees bool
	}{{"eve", false}, {"none", false}, {"reads", false}, {"bob", false}, {"named", true}, {"group", true}, {"tenant", true}} {
		id := fmt.Sprint("r", i)
		v.token = token("anna")
		var run api.Run
		v.do("POST", "/v1/runs", `{"id":"`+id+`","input":"pay 7","wait":true}`, 201, &run)
		decision := `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
		v.token = token(test.who)
		var inbox api.Inbox
		v.do("GET", "/v1/pending", "", 200, &inbox)
		if got := len(inbox.Waiting) > 0; got != test.sees {
			t.Errorf("%s sees %+v", test.who, inbox)
		}
		for _, path := range []string{"", "/events", "/export", "/effects", "/timeline"} {
			v.code("GET", "/v1/runs/"+id+path, "", 404, "not_found")
		}
		if !test.sees {
			status, code := 404, "not_found"
			if test.who == "reads" {
				status, code = 403, "wrong_scope"
			}
			v.code("POST", "/v1/runs/"+id+"/approve?user=anna", decision, status, code)
			if test.who != "eve" { // whose tenant may have another anna
				v.code("GET", "/v1/pending?user=anna", "", 404, "not_found")
			}
			v.token = token("anna")
			v.do("POST", "/v1/runs/"+id+"/deny", decision, 200, nil)
			continue
		}
		w := inbox.Waiting[0].Run
		if w.User != "anna" || w.ID != id || w.Task != "" || w.Spent != nil || inbox.Waiting[0].Pending[0].Call.Name != "pay" {
			t.Errorf("%s sees %+v", test.who, inbox.Waiting)
		}
		v.code("POST", "/v1/runs/"+id+"/approve", decision, 404, "not_found")
		var after api.Run
		v.do("POST", "/v1/runs/"+id+"/approve?user=anna", decision, 200, &after)
		if after.Answer != "" || after.Task != "" || after.Spent != nil {
			t.Errorf("%s reads %+v of the run", test.who, after)
		}
		v.token = token("anna")
		for run.State != "over" {
			v.do("POST", "/v1/runs", `{"id":"`+id+`","wait":true}`, 200, &run)
		}
		var x struct {
			Calls []struct {
				Execution struct{ Decision struct{ By, Identity string } }
			}
		}
		v.do("GET", "/v1/runs/"+id+"/export", "", 200, &x)
		want := "token " + test.who
		if test.who != "tenant" {
			want += " of " + test.who
		}
		if d := x.Calls[0].Execution.Decision; d.By != test.who || d.Identity != want {
			t.Errorf("recorded %+v, want %q", d, want)
		}
	}
}
