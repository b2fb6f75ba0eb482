package server_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server"
)

// A run that a tool ends shows the result of the tool as its answer at each endpoint, streamed and
// whole, also if the model said something before the call.
func TestAnswerOfAToolAtEachEndpoint(t *testing.T) {
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{answertest.Writer()}
		o.A2A = &server.A2A{}
		o.Access.Tokens = a2aTokens[:1]
	})
	v.token = a2aTokens[0].Token

	for _, c := range []struct {
		door, path, body string
		field            string // of the JSON objects that hold the parts of the text
	}{
		{"/v1/runs", "/v1/runs", `{"agent":"writer","input":"IN","wait":true}`, "answer"},
		{"chat", "/v1/chat/completions", `{"model":"writer","messages":[{"role":"user","content":"IN"}]}`, "content"},
		{"chat, streamed", "/v1/chat/completions", `{"model":"writer","stream":true,"messages":[{"role":"user","content":"IN"}]}`, "content"},
		{"responses", "/v1/responses", `{"model":"writer","input":"IN"}`, "text"},
		{"responses, streamed", "/v1/responses", `{"model":"writer","stream":true,"input":"IN"}`, "delta"},
		{"messages", "/v1/messages", `{"model":"writer","max_tokens":100,"messages":[{"role":"user","content":"IN"}]}`, "text"},
		{"messages, streamed", "/v1/messages", `{"model":"writer","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"IN"}]}`, "text"},
		{"AI SDK", "/v1/ui/writer", `{"id":"ID","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"IN"}]}]}`, "delta"},
		{"AG-UI", "/v1/agui/writer", `{"threadId":"ID","runId":"r","messages":[{"id":"m","role":"user","content":"IN"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, "delta"},
	} {
		answertest.PlayReport(t, c.door, func(t *testing.T, task string) string {
			id := strings.NewReplacer(" ", "", ",", "", "/", "").Replace(c.door + task)
			res := v.request("POST", c.path, strings.NewReplacer("IN", task, "ID", id).Replace(c.body))
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode/100 != 2 {
				t.Fatalf("%d, %v: %s", res.StatusCode, err, b)
			}
			return textOf(string(b), c.field)
		})
	}

	answertest.PlayReport(t, "Server.Runner", func(t *testing.T, task string) string {
		run := v.s.Runner(server.RunnerOptions{ID: "in the process: " + task})
		res, err := pawl.Collect(run.Stream(t.Context(), llm.User(task)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Answer.Text
	})

	answertest.PlayReport(t, "A2A", func(t *testing.T, task string) string {
		res, err := a2aAs(t, a2aCardAt(t, v.url), a2aTokens[0]).SendMessage(t.Context(), a2aSay(task))
		if err != nil {
			t.Fatal(err)
		}
		done, ok := res.(*a2a.Task)
		if !ok || len(done.Artifacts) != 1 {
			t.Fatalf("the response is %+v", res)
		}
		return done.Artifacts[0].Parts[0].Text()
	})
}

// textOf joins the texts of a field in a body, which is one JSON object or an event stream with one
// in each event.
func textOf(body, field string) (text string) {
	for line := range strings.Lines(body) {
		data := strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		var v any
		if json.Unmarshal([]byte(data), &v) == nil {
			text += joined(v, field)
		}
	}
	return text
}

// joined joins the texts of a field anywhere in a JSON value, in the order of their keys and
// elements. Arguments of calls are no text.
func joined(v any, field string) (text string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			text += joined(e, field)
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		if s, ok := v[field].(string); ok && isText(kind) {
			return s
		}
		for _, e := range v {
			text += joined(e, field)
		}
	}
	return text
}

// isText reports whether an object of that type has text of the answer. "" is an object without a
// type.
func isText(kind string) bool {
	switch kind {
	case "", "text", "text_delta", "output_text", "response.output_text.delta", "text-delta", "TEXT_MESSAGE_CONTENT":
		return true
	}
	return false
}
