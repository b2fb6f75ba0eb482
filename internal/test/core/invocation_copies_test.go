package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// A tool changes everything that it can reach: its arguments, the messages, and its own results
// after it has returned them. The transcript, the requests and the record do not change.
func TestToolsCannotChangeTheTranscript(t *testing.T) {
	data := func() json.RawMessage { return json.RawMessage(`{"a":"aaaa"}`) }
	opaque := func() *llm.Opaque { return &llm.Opaque{Provider: "other", Data: data()} }
	image := func() llm.Media { return llm.Media{MIME: "image/png", Data: []byte("aaaa")} }
	reply := llm.Assistant(llm.Reasoning{Text: "aaaa", Opaque: opaque()}, llm.Text{Text: "aaaa", Opaque: opaque()},
		llm.ToolCall{ID: "c1", Name: "evil", Args: data(), Opaque: opaque()})
	var kept []llm.ToolResult
	var wreck func(parts []llm.Part)
	spoil := func(b []byte) {
		for i, c := range b {
			if c == 'a' {
				b[i] = 'X'
			}
		}
	}
	wreck = func(parts []llm.Part) {
		for i, p := range parts {
			switch p := p.(type) {
			case llm.Text:
				if p.Opaque != nil {
					spoil(p.Opaque.Data)
					p.Opaque.Provider = "X"
				}
			case llm.Reasoning:
				spoil(p.Opaque.Data)
			case llm.Media:
				spoil(p.Data)
			case llm.ToolCall:
				spoil(p.Args)
				if p.Opaque != nil {
					spoil(p.Opaque.Data)
				}
			case llm.ToolResult:
				spoil(p.Data)
				wreck(p.Parts)
			}
			parts[i] = llm.Text{Text: "X"}
		}
	}
	run := func(hostile bool) (transcript, requests, record string) {
		kept = nil
		evil := does("evil", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			if hostile {
				spoil(c.Args)
				spoil(v.Call.Args)
				for _, call := range []llm.ToolCall{c, v.Call} {
					if call.Opaque != nil {
						spoil(call.Opaque.Data)
					}
				}
				msgs := v.Messages()
				for i := range msgs {
					wreck(msgs[i].Parts)
					msgs[i] = llm.User("X")
				}
				for _, r := range kept {
					spoil(r.Data)
					wreck(r.Parts)
				}
			}
			r := llm.ToolResult{Parts: []llm.Part{llm.Text{Text: "aaaa", Opaque: opaque()}, image()}, Data: data()}
			kept = append(kept, r)
			return r, nil
		})
		evil.Serial = func(args json.RawMessage) string {
			if hostile {
				spoil(args)
			}
			return "one"
		}
		m := script.New(script.Turn{Parts: reply.Parts}, script.Together(script.Call("evil", `{"a":"aaaa"}`), script.Call("evil", `{"a":"aaaa"}`)),
			script.Say("aaaa"))
		res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{evil}}).Run(t.Context(), llm.User("aaaa"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range res.Steps {
			for _, x := range s.Executions {
				record += jsonOf(t, x.Call) + jsonOf(t, x.Result) + "\n"
			}
		}
		for _, req := range m.Requests() {
			requests += jsonOf(t, req) + "\n"
		}
		return jsonOf(t, res.Messages), requests, record
	}
	wantTranscript, wantRequests, wantRecord := run(false)
	transcript, requests, record := run(true)
	for what, pair := range map[string][2]string{"the transcript": {transcript, wantTranscript},
		"the requests": {requests, wantRequests}, "the record": {record, wantRecord}} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s changed: %s", what, diff)
		}
		if !strings.Contains(pair[0], "aaaa") {
			t.Errorf("%s has nothing to change", what)
		}
	}
}
