package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// assistant-ui's AssistantChatTransport sends tools as an object of names with each request, and
// system. Its first message failed: the tools were expected to be a list.
func TestToolsOfAPageInBothForms(t *testing.T) {
	var system string
	v := serve(t, func(o *options) {
		a := clerk(new(world))
		a.Instructions = "You are clerk."
		a.Model = &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
			system = req.Messages[0].Text()
			return clerkTurn(req)
		}))}}
		o.Agents = []*pawl.Agent{a}
	})
	locate := `{"description":"Where is the user?","parameters":{"type":"object"}}`
	for name, test := range map[string]struct {
		sent      string // of the request: tools and system
		asks, end string // of the prompt, and the text that the stream has
		system    string
	}{
		"an empty object": {`"tools":{}`, "hello", "You said: hello", "You are clerk."},
		"an empty list":   {`"tools":[]`, "hello", "You said: hello", "You are clerk."},
		"null":            {`"tools":null,"system":null`, "hello", "You said: hello", "You are clerk."},
		"system": {`"tools":{},"system":"The page shows invoices."`, "hello", "You said: hello",
			"You are clerk.\n\nThe page shows invoices."},
		"an object": {`"tools":{"locate":` + locate + `}`, "locate me", "Done: Rome", "You are clerk."},
		"a list": {`"tools":[{"type":"function","function":{"name":"locate",` + locate[1:] + `}]`, "locate me",
			"Done: Rome", "You are clerk."},
	} {
		t.Run(name, func(t *testing.T) {
			chat := `{"id":"` + strings.ReplaceAll(name, " ", "") + `","trigger":"submit-message",` + test.sent
			question := `{"id":"m1","role":"user","parts":[{"type":"text","text":"` + test.asks + `"}]}`
			got := v.readAll("/v1/ui/clerk", chat+`,"messages":[`+question+`]}`)
			if test.asks == "locate me" {
				got = v.readAll("/v1/ui/clerk", chat+`,"messages":[`+question+`,`+answeredPage(t, got, "Rome")+`]}`)
			}
			if said := textOfStream(t, got); said != test.end && said != test.end+" " {
				t.Errorf("got %q of\n%s\nwant %q", said, got, test.end)
			}
			if system != test.system {
				t.Errorf("got the instructions %q, want %q", system, test.system)
			}
		})
	}
	v.code("POST", "/v1/ui/clerk", `{"id":"c","messages":[{"id":"m","role":"user","parts":[]}],"tools":"locate"}`,
		400, "bad_request")
}

// chunks returns the parts of a UI message stream.
func chunks(t *testing.T, stream string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// textOfStream returns the text of a UI message stream.
func textOfStream(t *testing.T, stream string) (text string) {
	t.Helper()
	for _, m := range chunks(t, stream) {
		if m["type"] == "text-delta" {
			text += m["delta"].(string)
		}
	}
	return text
}

// answeredPage returns the message of the assistant in a UI message stream, with the result of its
// call.
func answeredPage(t *testing.T, stream, output string) string {
	t.Helper()
	var id, call any
	for _, m := range chunks(t, stream) {
		switch m["type"] {
		case "start":
			id = m["messageId"]
		case "tool-input-available":
			call = m["toolCallId"]
		}
	}
	if id == nil || call == nil {
		t.Fatalf("no call in the stream\n%s", stream)
	}
	part := map[string]any{"type": "tool-locate", "toolCallId": call, "state": "output-available", "output": output}
	m := map[string]any{"id": id, "role": "assistant", "parts": []any{part}}
	return string(must(json.Marshal(m)))
}
