package server_test

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
)

// At each endpoint, a number of rounds means the same: without rounds the tools are offered, and
// the calls are shown and not executed.
func TestRoundsAtEachEndpoint(t *testing.T) {
	for door, c := range map[string]struct{ path, body string }{
		"/v1/runs":            {"/v1/runs", `{"agent":"looker","input":"IN","wait":true}`},
		"/v1/runs, streamed":  {"/v1/runs", `{"agent":"looker","input":"IN","wait":true}`},
		"chat":                {"/v1/chat/completions", `{"model":"looker","messages":[{"role":"user","content":"IN"}]}`},
		"chat, streamed":      {"/v1/chat/completions", `{"model":"looker","stream":true,"messages":[{"role":"user","content":"IN"}]}`},
		"responses":           {"/v1/responses", `{"model":"looker","input":"IN"}`},
		"responses, streamed": {"/v1/responses", `{"model":"looker","stream":true,"input":"IN"}`},
		"responses, stored":   {"/v1/responses", `{"model":"looker","input":"IN","store":true}`},
		"messages":            {"/v1/messages", `{"model":"looker","max_tokens":100,"messages":[{"role":"user","content":"IN"}]}`},
		"messages, streamed":  {"/v1/messages", `{"model":"looker","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"IN"}]}`},
		"AI SDK":              {"/v1/ui/looker", `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"IN"}]}]}`},
		"AG-UI":               {"/v1/agui/looker", `{"threadId":"c","runId":"r","messages":[{"id":"m","role":"user","content":"IN"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`},
	} {
		answertest.PlayRounds(t, door, func(t *testing.T, l *answertest.Looker, _ int) string {
			v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{l.Agent} })
			var headers []string
			if door == "/v1/runs, streamed" {
				headers = []string{"Accept", "text/event-stream"}
			}
			res := v.request("POST", c.path, c.body, headers...)
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if door == "responses, stored" {
				var made struct{ ID string }
				if err := json.Unmarshal(b, &made); err != nil {
					t.Fatal(err)
				}
				stored := v.request("GET", "/v1/responses/"+made.ID, "")
				defer stored.Body.Close()
				b, err = io.ReadAll(stored.Body)
				if err != nil {
					t.Fatal(err)
				}
			}
			return string(b)
		})
	}

	answertest.PlayRounds(t, "A2A", func(t *testing.T, l *answertest.Looker, _ int) string {
		v := serve(t, func(o *options) {
			o.Agents = []*pawl.Agent{l.Agent}
			o.A2A = &server.A2A{}
			o.Access.Tokens = a2aTokens[:1]
		})
		res, err := a2aAs(t, a2aCardAt(t, v.url), a2aTokens[0]).SendMessage(t.Context(), a2aSay("IN"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})

	answertest.PlayRounds(t, "Server.Runner", func(t *testing.T, l *answertest.Looker, _ int) string {
		v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{l.Agent} })
		run := v.s.Runner(server.RunnerOptions{ID: "r", Agent: "looker"})
		res, err := runtest.Ended(pawl.Collect(run.Stream(t.Context(), llm.User("IN")), nil))
		if err != nil {
			t.Fatal(err)
		}
		return answertest.ShownBy(res)
	})
}

// A page of the AI SDK gets a returned call as its own: without the mark of calls that the server
// executes. The result that it sends begins the next turn.
func TestReturnedCallsOfAPage(t *testing.T) {
	l := answertest.NewLooker(0)
	v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{l.Agent} })
	const ask = `{"id":"m","role":"user","parts":[{"type":"text","text":"go"}]}`
	first := v.request("POST", "/v1/ui/looker", `{"id":"c","messages":[`+ask+`]}`)
	defer first.Body.Close()
	b, err := io.ReadAll(first.Body)
	if err != nil {
		t.Fatal(err)
	}

	var run string
	executed := true
	finish := ""
	for line := range strings.Lines(string(b)) {
		var e struct {
			Type, MessageID, FinishReason string
			ProviderExecuted              *bool
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e) != nil {
			continue
		}
		run = cmp.Or(run, e.MessageID)
		finish = cmp.Or(finish, e.FinishReason)
		if e.ProviderExecuted != nil {
			executed = *e.ProviderExecuted
		}
	}
	if executed || finish != "tool-calls" {
		t.Errorf("the call is executed by the server: %t; the turn ends with %s:\n%s", executed, finish, b)
	}

	done := `{"id":"` + run + `","role":"assistant","parts":[{"type":"tool-look","toolCallId":"run/1/0",` +
		`"state":"output-available","input":{"N":1},"output":"seen by the page"}]}`
	second := v.request("POST", "/v1/ui/looker", `{"id":"c","messages":[`+ask+`,`+done+`]}`)
	defer second.Body.Close()
	b, err = io.ReadAll(second.Body)
	reqs := l.Model.Requests()
	if err != nil || second.StatusCode != 200 || len(reqs) != 2 {
		t.Fatalf("%d, %v after %d requests: %s", second.StatusCode, err, len(reqs), b)
	}
	results := script.Results(reqs[1])
	if len(results) != 1 || !strings.Contains(results[0].Text(), "seen by the page") {
		t.Errorf("the model read %+v", results)
	}
}
