package server_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
)

// A run that a tool ends shows the result of the tool as its answer at each endpoint, streamed and
// whole, also if the model said something before the call. pawltest.TestRunner has the runners.
func TestAnswerOfAToolAtEachEndpoint(t *testing.T) {
	const report = "the report is written"
	submit := pawl.Func("submit", "Submits the report.", func(context.Context, struct{}) (string, error) {
		return "", pawl.FinishError(llm.TextResult(report))
	})
	submit.Effect = pawl.EffectRead
	turn := func(req *llm.Request) script.Turn {
		call := script.Call("submit", `{}`)
		if strings.Contains(req.Messages[len(req.Messages)-1].Text(), "speak") {
			return script.Together(script.Say("I submit it."), call)
		}
		return call
	}
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "writer", Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}},
			Tools: []pawl.Toolset{submit}}}
		o.A2A, o.Access.Tokens = &server.A2A{}, a2aTokens[:1]
	})
	v.token = a2aTokens[0].Token

	for _, c := range []struct {
		name, method, path, body string
		before                   string // of the answer, in the body of the response
	}{
		{"runs", "POST", "/v1/runs", `{"agent":"writer","input":"IN","wait":true}`, `"answer":"`},
		{"chat", "POST", "/v1/chat/completions", `{"model":"writer","messages":[{"role":"user","content":"IN"}]}`, `"content":"`},
		{"chat, streamed", "POST", "/v1/chat/completions", `{"model":"writer","stream":true,"messages":[{"role":"user","content":"IN"}]}`, `"content":"`},
		{"responses", "POST", "/v1/responses", `{"model":"writer","input":"IN"}`, `"text":"`},
		{"responses, streamed", "POST", "/v1/responses", `{"model":"writer","stream":true,"input":"IN"}`, `"delta":"`},
		{"AI SDK", "POST", "/v1/ui/writer", `{"id":"ID","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"IN"}]}]}`, `"delta":"`},
		{"AG-UI", "POST", "/v1/agui/writer", `{"threadId":"ID","runId":"r","messages":[{"id":"m","role":"user","content":"IN"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, `"delta":"`},
	} {
		for _, input := range []string{"write", "speak and write"} {
			t.Run(c.name+"/"+input, func(t *testing.T) {
				id := strings.NewReplacer(" ", "", ",", "").Replace(c.name + input)
				body := strings.NewReplacer("IN", input, "ID", id).Replace(c.body)
				res := v.request(c.method, c.path, body)
				defer res.Body.Close()
				b, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode/100 != 2 {
					t.Fatalf("%d, %v: %s", res.StatusCode, err, b)
				}
				text := string(b)
				for _, gap := range []string{"", `\n\n`, `I submit it.\n\n`} {
					if strings.Contains(text, c.before+gap+report+`"`) {
						return
					}
				}
				t.Errorf("the answer %q is not in %s", report, b)
			})
		}
	}

	t.Run("A2A", func(t *testing.T) {
		res, err := a2aAs(t, a2aCardAt(t, v.url), a2aTokens[0]).SendMessage(t.Context(), a2aSay("write"))
		if err != nil {
			t.Fatal(err)
		}
		task, ok := res.(*a2a.Task)
		if !ok || len(task.Artifacts) != 1 || task.Artifacts[0].Parts[0].Text() != report {
			got, _ := json.Marshal(res)
			t.Errorf("the answer %q is not in %s", report, got)
		}
	})
}
