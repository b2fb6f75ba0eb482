package openai_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

func asks(m llm.Media) *llm.Request {
	return &llm.Request{Model: "m", Whole: true, Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{m}}}}
}

// Uploaded files are sent by their ID. Files of another provider are refused.
func TestUploadedFiles(t *testing.T) {
	for _, c := range []struct {
		wire *wiretest.Wire
		m    llm.Media
		want string
	}{
		{responsesWire, llm.Media{URL: "file-1"}, `{"type":"input_file","file_id":"file-1"}`},
		{responsesWire, llm.Media{URL: "file-1", MIME: "image/png"}, `{"type":"input_image","file_id":"file-1"}`},
		{chatWire, llm.Media{URL: "file-1"}, `{"type":"file","file":{"file_id":"file-1"}}`},
		{chatWire, llm.Media{URL: "file-1", MIME: "image/png"}, "error unsupported: messages[0].parts[0]: Chat Completions takes uploaded documents by their id, but no images; the Responses API does"},
		{responsesWire, llm.Media{URL: "file_1"}, "error unsupported: messages[0].parts[0]: file_1 is a file at Anthropic; those at OpenAI begin with file-"},
		{chatWire, llm.Media{URL: "file_1"}, "error unsupported: messages[0].parts[0]: file_1 is a file at Anthropic; those at OpenAI begin with file-"},
	} {
		c.wire.CheckEncode(t, c.wire.API+" "+c.m.URL+" "+c.m.MIME, asks(c.m), `{"model"`, c.want)
	}
}

// A user's message can name a file of this machine. No other message can.
func TestLocalFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*wiretest.Wire{chatWire, responsesWire} {
		w.CheckEncode(t, w.API, asks(llm.Media{URL: name}), `{"model"`, `data:image/png;base64,eA==`)
		if _, err := w.Encode(asks(llm.Media{URL: name + ".none", MIME: "image/png"})); err == nil {
			t.Errorf("%s: a file that is not there was sent", w.API)
		}
		req := &llm.Request{Model: "m", Messages: []llm.Message{llm.User("u"), llm.Assistant(llm.ToolCall{ID: "a", Name: "f"}),
			llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Media{URL: name}}})}}
		if b, err := w.Encode(req); err != nil || !strings.Contains(string(b), "a result cannot name a local file") {
			t.Errorf("%s: a result names a file: got %s, %v", w.API, b, err)
		}
	}
}

// The provider's own tools follow the request's, and the other options are copied as before.
func TestHostedToolsBesideFunctions(t *testing.T) {
	for _, w := range []*wiretest.Wire{chatWire, responsesWire} {
		req := user("go")
		req.Tools = []*llm.ToolSpec{tool("f")}
		req.Settings.Options = map[string]json.RawMessage{w.Provider: []byte(`{ "tools": [ {"type":"web_search"} ], "seed" : 1 }`)}
		w.CheckEncode(t, w.API, req, `{"model"`, `,{"type":"web_search"}]`)
		w.CheckEncode(t, w.API, req, `{"model"`, `"name":"f"`)
		w.CheckEncode(t, w.API, req, `{"model"`, `"seed":1}`)
		req.Tools = nil
		w.CheckEncode(t, w.API, req, `{"model"`, `"tools":[{"type":"web_search"}]`)
	}
}

// A tool that is offered under the wrapper's name is a tool.
func TestWrapperThatIsATool(t *testing.T) {
	const body = `{"choices":[{"index":0,"message":{"tool_calls":[{"id":"p","function":{"name":"parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{}}]}"}}]},"finish_reason":"tool_calls"}]}`
	for offered, want := range map[string]string{"parallel": "parallel", "f": "f"} {
		m := openai.NewChat("m", known(wiretest.Transport(
			func(*http.Request) (*http.Response, error) { return reply(200, body), nil })))
		req := user("go")
		req.Tools = []*llm.ToolSpec{tool(offered)}
		resp, err := llm.Complete(t.Context(), m, req)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Message.Calls(); len(got) != 1 || got[0].Name != want {
			t.Errorf("with the tool %s: got %+v, want a call of %s", offered, got, want)
		}
	}
}

// Pictures and sounds of a server are either in the reply or reported.
func TestMediaOfReplies(t *testing.T) {
	const image = `{"type":"image_generation_call","id":"ig","status":"completed","result":"eA=="}`
	for _, c := range []struct {
		name, body, want string
		sse              bool
		wire             *wiretest.Wire
	}{
		{"sound", whole("stop", `{"content":null,"audio":{"id":"a","data":"eA==","transcript":"hi"}}`), "left out of the reply: the server sent it next to its text, as audio", false, chatWire},
		{"pictures", whole("stop", `{"content":"here","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}`), "as images", false, chatWire},
		{"pictures, streamed", deltas("stop", `{"content":"here"}`, `{"images":[{"type":"image_url"}]}`, `{"images":[{"type":"image_url"}]}`), "as images", true, chatWire},
		{"empty members", whole("stop", `{"content":"here","audio":{"data":"","id":""},"images":[]}`), "", false, chatWire},
		{"a picture of a tool", response(image), "Reasoning.Opaque", false, responsesWire},
		{"a picture of a tool, streamed", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"image_generation_call","id":"ig"}}`, `{"type":"response.output_item.done","output_index":0,"item":`+image+`}`,
			`{"type":"response.completed","response":{"status":"completed","output":[]}}`), "Reasoning.Opaque", true, responsesWire},
	} {
		m := c.wire.Open(transport(func(*http.Request) (*http.Response, error) { return reply(200, c.body), nil }))
		_, notices, err := ask(t.Context(), m, user("go"), c.sse)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if n := len(notices); c.want == "" && n > 0 || c.want != "" &&
			(n != 1 || notices[0].Code != "media_left_out" || !strings.Contains(notices[0].Text, c.want)) {
			t.Errorf("%s: got the notices %v, want one that says %q", c.name, notices, c.want)
		}
	}
}
