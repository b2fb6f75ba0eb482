package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
)

// breaking serves an agent whose first reply breaks off.
func breaking(t *testing.T) *serving {
	t.Helper()
	return serve(t, func(o *options) {
		broken := script.Turn{Parts: []llm.Part{llm.Text{Text: "half of it"}},
			Err: &llm.ProviderError{Code: llm.CodeStream, Message: "the reply broke off", Retryable: true}}
		o.A2A = &server.A2A{}
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: &runtest.InTurn{Turns: []script.Turn{broken, script.Say("the whole")}}}}
	})
}

// a2aArtifact returns the text of the artifact that a client of a stream has in the end.
func a2aArtifact(t *testing.T, stream string) (text string) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var event struct {
			Result struct {
				ArtifactUpdate *struct {
					Append   bool
					Artifact struct{ Parts []struct{ Text string } }
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		update := event.Result.ArtifactUpdate
		if update == nil {
			continue
		}
		if !update.Append {
			text = ""
		}
		for _, p := range update.Artifact.Parts {
			text += p.Text
		}
	}
	return text
}

// readAll sends a request and returns the body of its response.
func (v *serving) readAll(path, body string, headers ...string) string {
	v.t.Helper()
	res := v.request(http.MethodPost, path, body, headers...)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
	}
	return string(b)
}

// A client that does not stream never sees the beginning of a reply that broke off.
func TestABrokenReplyIsAskedForAgain(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"clerk","messages":[{"role":"user","content":"hi"}]}`,
		"/v1/responses":        `{"model":"clerk","input":"hi"}`,
	} {
		got := breaking(t).readAll(path, body)
		if !strings.Contains(got, `"the whole"`) || strings.Contains(got, "half") {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

// A client that has seen the beginning of a reply learns that it is void, at every endpoint.
func TestABrokenReplyIsWithdrawn(t *testing.T) {
	order := func(t *testing.T, got string, want ...string) {
		t.Helper()
		rest := got
		for _, w := range want {
			_, after, ok := strings.Cut(rest, w)
			if !ok {
				t.Fatalf("%q does not follow in %s", w, got)
			}
			rest = after
		}
	}

	t.Run("Chat Completions", func(t *testing.T) {
		got := breaking(t).readAll("/v1/chat/completions", `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
		order(t, got, `half of`, `is void`, `"text_retracted":true`, `the whol`, `"finish_reason":"stop"`)
	})
	t.Run("Responses", func(t *testing.T) {
		got := breaking(t).readAll("/v1/responses", `{"model":"clerk","stream":true,"input":"hi"}`)
		order(t, got, `half of`, `response.output_item.done`, `"status":"incomplete"`, `response.output_item.added`, `"output_index":1`, `the whol`, `response.completed`)
		last := got[strings.LastIndex(got, "data: {"):]
		var end struct {
			Response struct{ Output []json.RawMessage }
		}
		line, _, _ := strings.Cut(strings.TrimPrefix(last, "data: "), "\n")
		err := json.Unmarshal([]byte(line), &end)
		if err != nil || len(end.Response.Output) != 1 || strings.Contains(line, "half") {
			t.Errorf("got %s, %v", line, err)
		}
	})
	t.Run("events", func(t *testing.T) {
		v := breaking(t)
		res := v.request(http.MethodPost, "/v1/runs", `{"agent":"clerk","input":"hi"}`, "Accept", "text/event-stream")
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		order(t, string(got), `half of`, `event: text_retracted`, `"text":"half of it"`, `event: step_started`, `the whol`, `event: run_ended`)
	})
	t.Run("AI SDK", func(t *testing.T) {
		got := breaking(t).readAll("/v1/ui/clerk", `{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`)
		order(t, got, `half of`, `data-pawl-retracted`, `start-step`, `the whol`, `"finish"`)
	})
	t.Run("A2A", func(t *testing.T) {
		v := breaking(t)
		got := v.readAll("/a2a/clerk", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage",`+
			`"params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}}`, "A2A-Version", "1.0")
		order(t, got, `half of`, `"text_retracted":true`, `the whol`, `TASK_STATE_COMPLETED`)
		if answer := a2aArtifact(t, got); answer != "the whole" {
			t.Errorf("a client has the answer %q in the end: %s", answer, got)
		}
	})
	t.Run("A2A, and no reply follows", func(t *testing.T) {
		v := serve(t, func(o *options) {
			broken := script.Turn{Parts: []llm.Part{llm.Text{Text: "half of it"}},
				Err: &llm.ProviderError{Code: llm.CodeStream, Message: "the reply broke off", Retryable: true}}
			fails := script.Turn{Err: &llm.ProviderError{Code: llm.CodeServer, Message: "away"}}
			o.A2A = &server.A2A{}
			o.Agents = []*pawl.Agent{{Name: "clerk", Model: &runtest.InTurn{Turns: []script.Turn{broken, fails}}}}
		})
		got := v.readAll("/a2a/clerk", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage",`+
			`"params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}}`, "A2A-Version", "1.0")
		order(t, got, `half of`, `"text_retracted":true`, `TASK_STATE_FAILED`)
		if answer := a2aArtifact(t, got); answer != "" {
			t.Errorf("a client has the answer %q of a reply that broke off: %s", answer, got)
		}
	})
	t.Run("AG-UI", func(t *testing.T) {
		got := breaking(t).readAll("/v1/agui/clerk", `{"threadId":"t1","runId":"r1","state":{},"messages":[{"id":"m1","role":"user","content":"hi"}],"tools":[],"context":[],"forwardedProps":{}}`)
		order(t, got, `half of`, `MESSAGES_SNAPSHOT`, `the whol`, `RUN_FINISHED`)
		snapshot := got[strings.LastIndex(got, "MESSAGES_SNAPSHOT"):]
		if strings.Contains(snapshot, "half") {
			t.Errorf("the snapshot has what is void: %s", snapshot)
		}
	})
}

// breakingCall serves an agent whose first reply breaks off behind its second call. The tool pay
// counts its calls.
func breakingCall(t *testing.T, paid *atomic.Int32) *serving {
	t.Helper()
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid.Add(1)
		return "paid", nil
	})
	pay.Effect = pawl.EffectWrite
	return serve(t, func(o *options) {
		broken := script.Turn{
			Parts: []llm.Part{
				llm.Text{Text: "half of it"},
				llm.ToolCall{ID: "c1", Name: "pay", Args: []byte(`{}`)},
				llm.ToolCall{ID: "c2", Name: "pay", Args: []byte(`{"unfinished`)},
			},
			Err: &llm.ProviderError{Code: llm.CodeStream, Message: "the reply broke off", Retryable: true},
		}
		turns := []script.Turn{broken, script.Call("pay", nil), script.Say("the whole")}
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: &runtest.InTurn{Turns: turns}, Tools: []pawl.Toolset{pay}}}
	})
}

// A reply that breaks off after it has announced a call is asked for again, at every endpoint, and
// the call that runs is the call of the reply that is whole. Each reader learns that the calls
// before it are void.
func TestABrokenReplyWithCalls(t *testing.T) {
	const chat = `{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`
	const agui = `{"threadId":"t1","runId":"r1","state":{},"messages":[{"id":"m1","role":"user","content":"hi"}],"tools":[],"context":[],"forwardedProps":{}}`
	for _, test := range []struct {
		name, path, body string
		headers          []string
		want             []string // in this order
	}{
		{"Chat Completions", "/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"hi"}]}`, nil, []string{`the whole`}},
		{"Chat Completions, streamed", "/v1/chat/completions", `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"hi"}]}`, nil,
			[]string{`"text_retracted":true`, `the whol`}},
		{"Responses", "/v1/responses", `{"model":"clerk","input":"hi"}`, nil, []string{`the whole`}},
		{"events", "/v1/runs", `{"agent":"clerk","input":"hi"}`, []string{"Accept", "text/event-stream"}, []string{
			`event: call_delta`, `event: text_retracted`, `"index":2`, `event: text_retracted`, `"index":1`, `event: text_retracted`, `"index":0`,
			`event: step_started`, `event: call_ready`, `event: call_started`, `event: run_ended`}},
		{"AI SDK 6", "/v1/ui/clerk", chat, nil, []string{
			`tool-input-start`, `"run/1/1","type":"tool-output-error"`, `"run/1/0","type":"tool-output-error"`, `start-step`, `tool-input-start`, `tool-output-available`, `"finish"`}},
		{"AG-UI", "/v1/agui/clerk", agui, nil, []string{
			`TOOL_CALL_START`, `TOOL_CALL_END`, `MESSAGES_SNAPSHOT`, `TOOL_CALL_START`, `TOOL_CALL_RESULT`, `RUN_FINISHED`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var paid atomic.Int32
			got := breakingCall(t, &paid).readAll(test.path, test.body, test.headers...)
			rest := got
			for _, w := range test.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("%q does not follow in %s", w, got)
				}
				rest = after
			}
			if paid.Load() != 1 {
				t.Errorf("the tool ran %d times: %s", paid.Load(), got)
			}
		})
	}
}
