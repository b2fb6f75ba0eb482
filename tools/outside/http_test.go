package outside_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

const comment = `
tools:
  - http:
      name: comment
      description: Comments on an issue.
      method: POST
      url: http://HOST/repos/{owner}/issues/{number}:note?lang=en&tag={tags}
      query: {draft: "{draft}", q: "is:{state} by:{owner}"}
      headers: {Authorization: "Bearer ${API_TOKEN}", X-Actor: "for {actor}"}
      body: {text: "{text}", labels: "{tags}", count: "{number}", note: "by {owner}, {{owner}}", inner: {draft: "{draft}"}, list: ["{draft}", 1], flag: true}
      input:
        type: object
        properties: {owner: {type: string}, number: {type: integer}, text: {type: string}, tags: {type: array, items: {type: string}}, draft: {type: boolean}, state: {type: string}, actor: {type: string}}
        required: [owner, number]
        additionalProperties: false
`

func TestTemplate(t *testing.T) {
	host, last := server(t, nil)
	s := set(t, options(), strings.ReplaceAll(comment, "HOST", host))
	x := call(t, s, "comment", `{"owner":"a/b c?#%é","number":12345678901234567890,"text":"say \"hi\"\n{owner}","tags":["x&y","z=1"],"draft":true,"state":"open","actor":"me"}`)
	want(t, x, pawl.OutcomeOK, `{"ok":true}`)
	got := []string{last.method, last.uri, last.header.Get("Authorization"), last.header.Get("X-Actor"), last.header.Get("Content-Type"), last.body}
	if diff := cmp.Diff(got, []string{"POST",
		"/repos/a%2Fb%20c%3F%23%25%C3%A9/issues/12345678901234567890:note?lang=en&tag=x%26y&tag=z%3D1&draft=true&q=is%3Aopen%20by%3Aa%2Fb%20c%3F%23%25%C3%A9",
		"Bearer token-123456", "for me", "application/json",
		`{"count":12345678901234567890,"flag":true,"inner":{"draft":true},"labels":["x\u0026y","z=1"],"list":[true,1],"note":"by a/b c?#%é, {owner}","text":"say \"hi\"\n{owner}"}`}); diff != "" {
		t.Errorf("the request (-got +want):\n%s", diff)
	}
	if string(x.Result.Data) != `{"ok":true}` || last.header.Get("Idempotency-Key") == "" {
		t.Errorf("data %s, header %v", x.Result.Data, last.header)
	}
	// A missing argument is left out, together with the value that contains it.
	want(t, call(t, s, "comment", `{"owner":"a","number":1}`), pawl.OutcomeOK)
	if diff := cmp.Diff([]string{last.uri, last.header.Get("X-Actor"), last.body}, []string{"/repos/a/issues/1:note?lang=en", "", `{"count":1,"flag":true,"inner":{},"list":[1],"note":"by a, {owner}"}`}); diff != "" {
		t.Errorf("the request (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s.Secrets(), []string{"token-123456"}); diff != "" {
		t.Errorf("secrets (-got +want):\n%s", diff)
	}
}

func TestEffects(t *testing.T) {
	host, last := server(t, nil)
	for method, effect := range map[string]pawl.Effect{"": pawl.EffectRead, "HEAD": pawl.EffectRead,
		"PUT": pawl.EffectIdempotent, "DELETE": pawl.EffectIdempotent, "PATCH": pawl.EffectWrite, "POST": pawl.EffectWrite} {
		d := outside.Definition{HTTP: &outside.HTTP{Name: "a", Description: "d", Method: method, URL: "http://" + host + "/"}}
		s, err := outside.New([]outside.Definition{d}, options())
		if err != nil {
			t.Fatal(err)
		}
		tools, _ := s.Tools(t.Context())
		want(t, call(t, s, "a", `{}`), pawl.OutcomeOK)
		if tools[0].Effect != effect || (last.header.Get("Idempotency-Key") != "") != (effect != pawl.EffectRead) {
			t.Errorf("%q: effect %s, key %q", method, tools[0].Effect, last.header.Get("Idempotency-Key"))
		}
	}
	pure := pawl.EffectPure
	s, err := outside.New([]outside.Definition{{HTTP: &outside.HTTP{Name: "a", Description: "d", Method: "POST",
		URL: "http://" + host + "/", Effect: &pure, Headers: map[string]string{"Idempotency-Key": "own"}}}}, options())
	if err != nil {
		t.Fatal(err)
	}
	tools, _ := s.Tools(t.Context())
	want(t, call(t, s, "a", ``), pawl.OutcomeOK)
	if tools[0].Effect != pawl.EffectPure || last.header.Get("Idempotency-Key") != "own" {
		t.Errorf("what the definition says is not kept: %s, %v", tools[0].Effect, last.header)
	}
}

// Arguments that would change the target, or begin another line, are refused before anything is
// sent.
func TestHostileArguments(t *testing.T) {
	host, last := server(t, nil)
	s := set(t, options(), strings.ReplaceAll(comment, "HOST", host))
	for _, owner := range []string{"..", ".", "../x", `a\..\b`, "a/./b", "%2e%2e", "%252E%252e", "a%2f..%2fb", "..;a=b", "", "a\nb", "a\x00b", "%0d%0aX: 1"} {
		*last = seen{}
		args, _ := json.Marshal(map[string]any{"owner": owner, "number": 1})
		x := call(t, s, "comment", string(args))
		if x.Outcome != pawl.OutcomeError || !strings.HasPrefix(x.Result.Text(), "owner ") || last.uri != "" {
			t.Errorf("owner %q: %s %s; the server was asked for %q", owner, x.Outcome, x.Result.Text(), last.uri)
		}
	}
	for _, actor := range []string{"me\r\nX-Admin: 1", "me\nX", "me\x00", "m\u00e9", "\x7f"} {
		*last = seen{}
		args, _ := json.Marshal(map[string]any{"owner": "a", "number": 1, "actor": actor})
		want(t, call(t, s, "comment", string(args)), pawl.OutcomeError, "actor is sent in a header")
		if last.uri != "" {
			t.Errorf("actor %q was sent: %v", actor, last.header)
		}
	}
	// As a control, arguments that only look similar are sent as the value of one segment.
	for _, owner := range []string{"a..b", "...", "..a", "100%", "a%zz", "@evil.example", "a:80", "a#b", "a?b=c", "*", "http://evil.example/", "a;b", "é"} {
		args, _ := json.Marshal(map[string]any{"owner": owner, "number": 1})
		want(t, call(t, s, "comment", string(args)), pawl.OutcomeOK)
		path, _, _ := strings.Cut(last.uri, "?")
		parts := strings.Split(path, "/")
		if got, err := url.PathUnescape(parts[2]); err != nil || got != owner || len(parts) != 5 {
			t.Errorf("owner %q: the server was asked for %q", owner, last.uri)
		}
	}
}

// For any arguments, the request has the shape of its template: the arguments are in their places,
// and nowhere else.
func TestShapeIsKept(t *testing.T) {
	host, last := server(t, nil)
	s := set(t, options(), `[{http: {name: a, description: d, method: PUT, url: "http://`+host+`/x/{p}/y-{p}.json?fixed=1&v={q}", headers: {X-H: "<{h}>"}, body: {v: "{q}", w: "{q}!"}}}]`)
	tools, _ := s.Tools(t.Context())
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`([.%/\\?#&=:@ ;]|%2[eEfF]|a|\r|\n){0,6}`))
		p, q, h := value.Draw(rt, "p"), value.Draw(rt, "q"), value.Draw(rt, "h")
		*last = seen{}
		args, err := json.Marshal(map[string]any{"p": p, "q": q, "h": h})
		if err != nil {
			rt.Skip()
		}
		x := pawl.Toolsets{tools[0]}.Execute(t.Context(), llm.ToolCall{Name: "a", Args: args})
		if x.Outcome == pawl.OutcomeError && last.uri == "" {
			return // refused
		}
		if x.Outcome != pawl.OutcomeOK {
			rt.Fatalf("outcome %s: %s", x.Outcome, x.Result.Text())
		}
		u, err := url.ParseRequestURI(last.uri)
		if err != nil {
			rt.Fatal(err)
		}
		got := []any{last.method, u.Path, strings.Count(u.EscapedPath(), "/"), map[string][]string(u.Query()),
			last.header.Get("X-H")}
		exp := []any{"PUT", "/x/" + p + "/y-" + p + ".json", 3, map[string][]string{"fixed": {"1"}, "v": {q}}, "<" + h + ">"}
		var body map[string]string
		if err := json.Unmarshal([]byte(last.body), &body); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(append(got, body), append(exp, map[string]string{"v": q, "w": q + "!"})); diff != "" {
			rt.Fatalf("%s (-got +want):\n%s", args, diff)
		}
		names := []string{}
		for name := range last.header {
			names = append(names, name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(names, []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "Idempotency-Key", "User-Agent", "X-H"}); diff != "" {
			rt.Fatalf("headers (-got +want):\n%s", diff)
		}
	})
}

func TestAnswers(t *testing.T) {
	status, kind, body := 200, "application/json", ""
	host, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	whole := `[{http: {name: a, description: d, url: "http://` + host + `/"}}]`
	part := `[{http: {name: a, description: d, url: "http://` + host + `/", result: "/items/0/a~1b"}}]`
	for _, c := range []struct {
		name, def  string
		status     int
		kind, body string
		outcome    pawl.Outcome
		want       string
		exactly    bool
		data       string
	}{
		{"json", whole, 200, "application/json", `{"n": 1.50, "big": 12345678901234567890}`, pawl.OutcomeOK, `{"big":12345678901234567890,"n":1.50}`, true, `{"big":12345678901234567890,"n":1.50}`},
		{"part", part, 200, "application/json", `{"items":[{"a/b":"the text"}]}`, pawl.OutcomeOK, "the text", true, `"the text"`},
		{"null", part, 200, "application/json", `{"items":[{"a/b":null}]}`, pawl.OutcomeOK, "null", true, "null"},
		{"no field", part, 200, "application/json", `{"items":[{"x":1,"c":2}]}`, pawl.OutcomeError, "HTTP 200 OK, but the answer has no /items/0/a~1b; /items/0 has c, x", true, ""},
		{"no item", part, 200, "application/json", `{"items":[]}`, pawl.OutcomeError, "/items is a list of 0", false, ""},
		{"no list", part, 200, "application/json", `{"items":7}`, pawl.OutcomeError, "/items is 7", false, ""},
		{"no json", part, 200, "text/plain", `words`, pawl.OutcomeError, "the answer is not JSON, so /items/0/a~1b cannot be found", false, ""},
		{"text", whole, 200, "text/plain", "plain words", pawl.OutcomeOK, "plain words", true, ""},
		{"page", whole, 200, "text/html", "<script>x()</script><p>on a page</p>", pawl.OutcomeOK, "on a page", true, ""},
		{"binary", whole, 200, "application/zip", "PK\x03\x04\x00", pawl.OutcomeOK, "[not text: 5 bytes of application/zip are not shown]", false, ""},
		{"nothing", whole, 204, "", "", pawl.OutcomeOK, "HTTP 204 No Content", true, ""},
		{"missing", whole, 404, "application/json", `{"message":"no such issue"}`, pawl.OutcomeError, "HTTP 404 Not Found\n\n{\"message\":\"no such issue\"}", true, ""},
		{"broken", whole, 500, "text/plain", "", pawl.OutcomeError, "HTTP 500 Internal Server Error", true, ""},
		{"large", whole, 200, "application/json", `["` + strings.Repeat("x", 2<<20) + `"]`, pawl.OutcomeOK, "of the answer were read]", false, ""},
	} {
		status, kind, body = c.status, c.kind, c.body
		x := call(t, set(t, options(), c.def), "a", `{}`)
		text := x.Result.Text()
		if x.Outcome != c.outcome || c.exactly && text != c.want || !strings.Contains(text, c.want) ||
			string(x.Result.Data) != c.data {
			t.Errorf("%s: %s %.300q, data %.100s; want %s %q", c.name, x.Outcome, text, x.Result.Data, c.outcome, c.want)
		}
	}
}

// A host in a private network is reached only if the definition names it, and never by a redirect.
// The request is for the first host only.
func TestGuard(t *testing.T) {
	other, asked := server(t, nil)
	_, port, _ := strings.Cut(other, ":")
	host, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+strings.Replace(r.URL.Query().Get("to"), "PORT", port, 1)+"/", http.StatusFound)
	})
	def := func(allow string) string {
		return `[{http: {name: a, description: d, url: "http://` + host + `/?to={to}", headers: {X-Key: "${API_TOKEN}"}, allow: [` + allow + `]}}]`
	}
	for _, to := range []string{"127.0.0.1:PORT", "localhost:PORT", "169.254.169.254"} {
		want(t, call(t, set(t, options(), def("")), "a", `{"to":"`+to+`"}`), pawl.OutcomeError, "is refused")
	}
	if asked.uri != "" {
		t.Errorf("the other host was asked for %q", asked.uri)
	}
	want(t, call(t, set(t, options(), def("'"+other+"'")), "a", `{"to":"127.0.0.1:PORT"}`), pawl.OutcomeOK)
	if asked.uri != "/" || asked.header.Get("X-Key") != "" {
		t.Errorf("the host that is allowed was asked for %q with %v", asked.uri, asked.header)
	}
	posts := strings.Replace(def("'"+other+"'"), "name: a,", "name: a, method: POST,", 1)
	want(t, call(t, set(t, options(), posts), "a", `{"to":"127.0.0.1:PORT"}`), pawl.OutcomeOK)
	if key := asked.header.Get("Idempotency-Key"); asked.uri != "/" || key != "" {
		t.Errorf("the other host got the key %q with %s", key, asked.uri)
	}
	// A host name that resolves to this machine must be allowed by name.
	named := `[{http: {name: a, description: d, url: "http://intern.example:` + port + `/", allow: [%s]}}]`
	o := options()
	o.Lookup = loopback
	want(t, call(t, set(t, o, fmt.Sprintf(named, "")), "a", `{}`), pawl.OutcomeError, "intern.example is refused: the name stands for")
	want(t, call(t, set(t, o, fmt.Sprintf(named, "intern.example")), "a", `{}`), pawl.OutcomeOK)
}

// A connection that ends after the request was sent, and an answer that is late, leave it open
// whether a write has happened: the result says so, and the request is sent once, also over a
// connection that served a call before. What may be repeated is sent three times. What was not
// sent, and what reads, has only failed.
func TestMayHaveHappened(t *testing.T) {
	var asked atomic.Int64
	host, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1); r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/late":
			<-r.Context().Done()
		}
	})
	const maybe = ". What the call does may have happened."
	for _, c := range []struct {
		method, more, at, want string
		sent                   int64
	}{
		{"POST", ", body: {text: x}", "cut", "the connection ended before the answer did" + maybe, 1},
		{"POST", "", "cut", "the connection ended before the answer did" + maybe, 1},
		{"DELETE", "", "cut", "the connection ended before the answer did" + maybe, 3},
		{"POST", "", "late", "did not answer in full within 300ms" + maybe, 1},
		{"GET", "", "late", "did not answer in full within 300ms", 3},
	} {
		s := set(t, options(), `[{http: {name: a, description: d, method: `+c.method+`, url: "http://`+host+`/{at}", timeout: 300ms`+c.more+`}}]`)
		want(t, call(t, s, "a", `{"at":"ok"}`), pawl.OutcomeOK)
		asked.Store(0)
		x := call(t, s, "a", `{"at":"`+c.at+`"}`)
		text := x.Result.Text()
		if x.Outcome != pawl.OutcomeError || !strings.HasSuffix(text, c.want) || asked.Load() != c.sent {
			t.Errorf("%s: sent %d times: %s %s, want %d times, %s", c.method, asked.Load(), x.Outcome, text, c.sent, c.want)
		}
	}
	x := call(t, set(t, options(), `[{http: {name: a, description: d, method: POST, url: "http://127.0.0.1:1/"}}]`), "a", `{}`)
	if text := x.Result.Text(); !strings.HasSuffix(text, "connection refused") {
		t.Errorf("what was not sent: %s", text)
	}
}
