package outside_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/tools/outside"
)

// as makes a call in the name of a caller.
func as(t *testing.T, ctx context.Context, s *outside.Set, name, args string) pawl.Execution {
	t.Helper()
	tools, err := s.Tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var reg pawl.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return reg.Execute(ctx, name, json.RawMessage(args))
}

// Each caller sends his own token. Without a caller or without a token nothing is sent, and what
// the server repeats of the token is hidden.
func TestCallerToken(t *testing.T) {
	asked := 0
	host, last := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"sent":"`+r.Header.Get("Authorization")+`","me":"`+r.Header.Get("X-User")+`"}`)
	})
	tools := map[string]*outside.Set{
		"http": set(t, options(), `
- http:
    name: op
    description: Closes.
    method: POST
    url: http://`+host+`/close
    headers: {Authorization: "Bearer ${caller.token}", X-User: "${caller.tenant}/${caller.user}", X-Key: "${API_TOKEN}"}
`)}
	api, err := openapi(t, posted(host, "application/json", ""), ", base_url: 'http://"+host+"', headers: {Authorization: 'Bearer ${caller.token}', X-User: '${caller.tenant}/${caller.user}'}")
	if err != nil {
		t.Fatal(err)
	}
	tools["openapi"] = api

	for name, s := range tools {
		for _, who := range []struct{ user, token string }{{"ann", "token-of-ann"}, {"bob", "token-of-bob"}} {
			ctx := caller.With(t.Context(), caller.Caller{
				Name:   who.user,
				Tenant: "acme",
				User:   who.user,
				Token:  caller.Token(who.token),
			})
			x := as(t, ctx, s, "op", `{}`)
			want(t, x, pawl.OutcomeOK, "[redacted]", "acme/"+who.user)
			if got := last.header.Get("Authorization"); got != "Bearer "+who.token {
				t.Errorf("%s: %s sent %q", name, who.user, got)
			}
			if text, err := json.Marshal(x); err != nil || strings.Contains(string(text), who.token) {
				t.Errorf("%s: the execution has the token: %s %v", name, text, err)
			}
		}

		asked = 0
		for what, ctx := range map[string]context.Context{
			"no caller":            t.Context(),
			"no token":             caller.With(t.Context(), caller.Caller{Name: "ann", Tenant: "acme", User: "ann"}),
			"a token with a break": caller.With(t.Context(), caller.Caller{Name: "ann", Tenant: "acme", User: "ann", Token: "a\r\nX-Evil: 1"}),
		} {
			x := as(t, ctx, s, "op", `{}`)
			want(t, x, pawl.OutcomeError, "the call was refused and nothing was sent", "caller")
			if strings.Contains(x.Result.Text(), "Evil") || asked > 0 {
				t.Errorf("%s, %s: asked %d times: %s", name, what, asked, x.Result.Text())
			}
		}
	}

	for text, wanted := range map[string]string{
		`headers: {A: "${caller.secret}"}`: "a caller has name, tenant, user and token",
		`headers: {A: "${caller.}"}`:       "a caller has name, tenant, user and token",
		`query: {a: "${caller.token}"}`:    "variables of the environment are for headers",
		`body: {a: "${caller.token}"}`:     "variables of the environment are for headers",
	} {
		defs, err := outside.Parse([]byte("[{http: {name: op, description: D., method: POST, url: 'http://" + host + "/', " + text + "}}]"))
		if err == nil {
			_, err = outside.New(defs, options())
		}
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v, want %q", text, err, wanted)
		}
	}
}

// An agent that repeats the token of a caller with an answer that does not fit, or in a form that
// cannot be read, does not bring it to the model, nor into the error of the call.
func TestCallerTokenInAFailure(t *testing.T) {
	const token = "token-of-ann"
	var host string
	var last *seen
	readable := true
	host, last = server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/rpc" {
			io.WriteString(w, `{"name":"clerk","version":"1","supportedInterfaces":[{"url":"http://`+host+
				`/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
			return
		}
		var q struct{ ID, Method string }
		_ = json.Unmarshal([]byte(last.body), &q)
		sent := r.Header.Get("Authorization")
		task := `{"id":"1","contextId":"1","status":{"state":"TASK_STATE_FAILED","message":{"messageId":"2","role":"ROLE_AGENT",` +
			`"parts":[{"text":"you sent ` + sent + `"}],"metadata":{"pawl/unfit":{"answer":"` + sent + `","faults":["not ` + sent + `"]}}}}}`
		if q.Method == "SendMessage" && readable {
			task = `{"task":` + task + `}`
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":"`+q.ID+`","result":`+task+`}`)
	})
	s := set(t, options(), `[{a2a: {name: ask, description: d, url: "http://`+host+`", headers: {Authorization: "Bearer ${caller.token}"}}}]`)
	ctx := caller.With(t.Context(), caller.Caller{Name: "ann", Tenant: "acme", User: "ann", Token: caller.Token(token)})
	for _, readable = range []bool{true, false} {
		x := as(t, ctx, s, "ask", `{"message":"go"}`)
		want(t, x, pawl.OutcomeError, "[redacted]")
		stored, err := json.Marshal(x)
		if err != nil || strings.Contains(string(stored)+x.Err().Error(), token) {
			t.Errorf("readable %v: the execution has the token: %s, %v, %v", readable, stored, x.Err(), err)
		}

		var unfit *pawl.OutputError
		isUnfit := errors.As(x.Err(), &unfit)
		if isUnfit != readable || isUnfit && strings.Contains(unfit.Text, token) {
			t.Errorf("readable %v: got the answer %+v", readable, unfit)
		}
	}
}

// Options.Header gives headers from the context of the call; with an error nothing is sent.
func TestOptionsHeader(t *testing.T) {
	type user struct{}
	host, last := server(t, nil)
	o := options()
	o.Header = func(ctx context.Context) (http.Header, error) {
		name, _ := ctx.Value(user{}).(string)
		if name == "" {
			return nil, errors.New("no user is signed in")
		}
		return http.Header{"authorization": {"Bearer secret-of-" + name}}, nil
	}
	s := set(t, o, "[{http: {name: op, description: D., url: 'http://"+host+"/', headers: {X-A: b}}}]")
	want(t, as(t, context.WithValue(t.Context(), user{}, "ann"), s, "op", `{}`), pawl.OutcomeOK)
	if last.header.Get("Authorization") != "Bearer secret-of-ann" || last.header.Get("X-A") != "b" {
		t.Errorf("sent %v", last.header)
	}
	last.uri = ""
	want(t, as(t, t.Context(), s, "op", `{}`), pawl.OutcomeError, "the call was refused and nothing was sent: no user is signed in")
	if last.uri != "" {
		t.Error("something was sent")
	}
}
