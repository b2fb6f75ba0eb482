package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

const uiAdmin, uiRunner = "a-token-for-everything", "a-token-that-starts-runs"

// chat posts a body of useChat, and returns the stream.
func (v *serving) chat(token, body string) string { return v.post(token, "/v1/ui/clerk", body) }

func (v *serving) post(token, path, body string) string {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), "POST", v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		v.t.Fatalf("%d %v: %s", res.StatusCode, err, b)
	}
	return string(b)
}

// A chat goes on behind a restart of the server: the page's history has the question, a token
// without the scope decide is asked again, an approval of another digest has no effect, and the
// approval that a page sends twice pays once.
func TestAChatGoesOnBehindARestart(t *testing.T) {
	journal := new(store.MemoryJournal)
	w := &world{gate: make(chan struct{})}
	options := func(o *options) {
		o.Agents, o.Journal = []*pawl.Agent{uiAgent(w)}, journal
		o.Access.Tokens = []api.Token{{Name: "all", Token: uiAdmin, Scopes: []api.Scope{api.ScopeAll}},
			{Name: "run", Token: uiRunner, Scopes: []api.Scope{api.ScopeRun, api.ScopeRead}}}
	}
	first := serve(t, options)
	const said = `{"id":"u1","role":"user","parts":[{"type":"text","text":"call pay 1"}]}`
	asked := first.chat(uiAdmin, `{"id":"c","trigger":"submit-message","messages":[`+said+`]}`)
	id := regexp.MustCompile(`"approvalId":"(.*?)"`).FindStringSubmatch(asked)
	run := regexp.MustCompile(`"messageId":"(.*?)"`).FindStringSubmatch(asked)
	if id == nil || run == nil {
		t.Fatalf("no question in %s", asked)
	}
	if err := first.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := serve(t, options)
	second.token = uiAdmin
	var history struct {
		Messages []json.RawMessage `json:"messages"`
	}
	second.do("GET", "/v1/ui/clerk/c", "", 200, &history)
	if n := len(history.Messages); n != 2 || !strings.Contains(string(history.Messages[1]), id[1]) {
		t.Fatalf("history: %s", history.Messages)
	}
	answer := func(token, approval string) string {
		return second.chat(token, `{"id":"c","trigger":"submit-message","messages":[`+said+`,{"id":"`+run[1]+`","role":"assistant","parts":[`+
			`{"type":"tool-pay","toolCallId":"run/1/0","state":"approval-responded","approval":{"id":"`+approval+`","approved":true}}]}]}`)
	}
	for name, got := range map[string]string{"scope": answer(uiRunner, id[1]), "digest": answer(uiAdmin, "run/1/0.another")} {
		if !strings.Contains(got, `"type":"tool-approval-request"`) || w.paid.Load() != 0 {
			t.Errorf("%s: %d payments, %s", name, w.paid.Load(), got)
		}
	}
	for range 2 { // the second is attached to the run, which is over
		got := answer(uiAdmin, id[1])
		if !strings.Contains(got, `"output":"paid 1"`) || !strings.Contains(got, `"finishReason":"stop"`) || strings.Contains(got, "I call.") {
			t.Errorf("got %s", got)
		}
	}
	if n := w.paid.Load(); n != 1 {
		t.Errorf("%d payments, want 1", n)
	}
}

// A page may send only the newest message: the chat keeps the earlier ones. A repeated request, a
// second answer to a message, and another chat add nothing to them.
func TestAChatOfWhichThePageSendsTheNewestMessage(t *testing.T) {
	v := serve(t, func(o *options) {
		model := &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
			var said []string
			for _, m := range req.Messages {
				if m.Role == llm.RoleUser {
					said = append(said, m.Text())
				}
			}
			if said[len(said)-1] == "break" {
				return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeInvalidRequest, Message: "no"})
			}
			return script.Say("You said: " + strings.Join(said, ", "))
		}))}}
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: model}}
		o.Access.Tokens = []api.Token{{Name: "all", Token: uiAdmin, Scopes: []api.Scope{api.ScopeAll}}}
	})
	for _, test := range []struct{ chat, trigger, id, text, want string }{
		{"c", "submit-message", "u1", "one", "one"},
		{"c", "submit-message", "u2", "two", "one, two"},
		{"c", "submit-message", "u2", "two", "one, two"},
		{"c", "regenerate-message", "u2", "two", "one, two"},
		{"c", "submit-message", "u3", "two", "one, two, two"},
		{"c", "submit-message", "u2", "edited", "one, edited"},
		{"c", "submit-message", "u4", "break", ""},
		{"c", "submit-message", "u5", "three", "one, edited, break, three"},
		{"c", "regenerate-message", "u1", "one", "one"},
		{"d", "submit-message", "u1", "other", "other"},
	} {
		got := v.chat(uiAdmin, `{"id":"`+test.chat+`","trigger":"`+test.trigger+`","messages":[`+
			`{"id":"`+test.id+`","role":"user","parts":[{"type":"text","text":"`+test.text+`"}]}]}`)
		deltas := regexp.MustCompile(`"delta":"(.*?)"`).FindAllStringSubmatch(got, -1)
		answer := ""
		for _, d := range deltas {
			answer += d[1]
		}
		if answer != strings.Repeat("You said: ", min(1, len(test.want)))+test.want {
			t.Errorf("%s %s %q: the answer is %q, want one to %q", test.chat, test.trigger, test.text, answer, test.want)
		}
	}

	var history struct {
		Messages []json.RawMessage `json:"messages"`
	}
	v.token = uiAdmin
	v.do("GET", "/v1/ui/clerk/c", "", 200, &history)
	if len(history.Messages) != 2 { // its first message is answered again
		t.Errorf("the chat has %d messages, want 2: %s", len(history.Messages), history.Messages)
	}
}

// The same with AG-UI, whose client keeps the conversation. A request of another user, and a
// request that names a run of another conversation, continue nothing.
func TestAnAGUIRunGoesOnBehindARestart(t *testing.T) {
	journal := new(store.MemoryJournal)
	w := &world{gate: make(chan struct{})}
	const other = "a-token-of-another-user"
	options := func(o *options) {
		o.Agents, o.Journal = []*pawl.Agent{uiAgent(w)}, journal
		o.Access.Tokens = []api.Token{{Name: "all", Token: uiAdmin, Scopes: []api.Scope{api.ScopeAll}},
			{Name: "run", Token: uiRunner, Scopes: []api.Scope{api.ScopeRun, api.ScopeRead}},
			{Name: "other", Token: other, Scopes: []api.Scope{api.ScopeAll}, User: "other"}}
	}
	body := func(run, thread, more string) string {
		return `{"threadId":"` + thread + `","runId":"` + run + `","messages":[{"id":"u1","role":"user","content":"call pay 1"}],"tools":[],"context":[]` + more + `}`
	}
	first := serve(t, options)
	asked := first.post(uiAdmin, "/v1/agui/clerk", body("r1", "t", ""))
	id := regexp.MustCompile(`"id":"([^"]*/1/0\.[^"]*)"`).FindStringSubmatch(asked)
	if id == nil {
		t.Fatalf("no interrupt in %s", asked)
	}
	if err := first.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := serve(t, options)
	second.token = other
	yes := func(id string) string {
		return `,"resume":[{"interruptId":"` + id + `","status":"resolved","payload":{"approved":true}}]`
	}
	second.code("POST", "/v1/agui/clerk", body("r2", "t", yes(id[1])), 404, "not_found")
	second.token = uiAdmin
	second.code("POST", "/v1/agui/clerk", body("r2", "another", yes(id[1])), 400, "bad_request")
	second.code("POST", "/v1/agui/clerk", body("", "t", ""), 400, "bad_request")
	second.code("POST", "/v1/agui/clerk?more=1", body("r", "t", ""), 400, "bad_request")
	second.code("POST", "/v1/agui/nobody", body("r", "t", ""), 404, "not_found")
	for name, got := range map[string]string{
		"scope":  second.post(uiRunner, "/v1/agui/clerk", body("r2", "t", yes(id[1]))),
		"digest": second.post(uiAdmin, "/v1/agui/clerk", body("r3", "t", yes(id[1]+"x"))),
	} {
		if !strings.Contains(got, `"type":"interrupt"`) || w.paid.Load() != 0 {
			t.Errorf("%s: %d payments, %s", name, w.paid.Load(), got)
		}
	}
	for range 2 { // the second is attached to the run, which is over
		got := second.post(uiAdmin, "/v1/agui/clerk", body("r4", "t", yes(id[1])))
		if !strings.Contains(got, `"content":"paid 1"`) || !strings.Contains(got, `"type":"success"`) || strings.Contains(got, "I call.") {
			t.Errorf("got %s", got)
		}
	}
	if n := w.paid.Load(); n != 1 {
		t.Errorf("%d payments, want 1", n)
	}
}

// A page sends its next message when it has read the end of a run that failed. The run is over for
// the message that follows it.
func TestAMessageRightAfterAFailedRun(t *testing.T) {
	v := serve(t, func(o *options) {
		model := &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
			if req.Messages[len(req.Messages)-1].Text() == "break" {
				return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeInvalidRequest, Message: "no"})
			}
			return script.Say("fine")
		}))}}
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: model}}
		o.Access.Tokens = []api.Token{{Name: "all", Token: uiAdmin, Scopes: []api.Scope{api.ScopeAll}}}
	})
	for i := range 60 {
		for _, text := range []string{"break", "next"} {
			got := v.chat(uiAdmin, fmt.Sprintf(`{"id":"c%d","trigger":"submit-message","messages":[`+
				`{"id":"u-%s","role":"user","parts":[{"type":"text","text":"%s"}]}]}`, i, text, text))
			if text == "next" && !strings.Contains(got, `"delta":"fine"`) {
				t.Fatalf("chat %d: the message after the failed run got %s", i, got)
			}
		}
	}
}
