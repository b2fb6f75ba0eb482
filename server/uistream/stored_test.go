package uistream_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
)

// An endpoint of docs/server.md read the text from a form, which useChat does not send: the model
// was asked nothing, and an answer came as if all were well.
func TestNewestMessage(t *testing.T) {
	for _, test := range []struct{ body, text, fault string }{
		{`{"id":"c","messages":[{"role":"user","parts":[{"type":"text","text":"one"}]},` +
			`{"role":"assistant","parts":[]},{"role":"user","parts":[{"type":"text","text":"two"}]}]}`, "two", ""},
		{"text=hello", "", "no request of useChat"},
		{`{"id":"c"}`, "", "it has no messages"},
		{`{"messages":[{"role":"assistant","parts":[{"type":"text","text":"one"}]}]}`, "", "not one of the user"},
		{`{"messages":[{"role":"user","parts":[]}]}`, "", "neither text nor files"},
	} {
		msg, err := uistream.NewestMessage(httptest.NewRequest("POST", "/chat", strings.NewReader(test.body)))
		switch {
		case test.fault == "" && (err != nil || msg.Text() != test.text):
			t.Errorf("%s: got %q, %v", test.body, msg.Text(), err)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%s: got the error %v, want %q", test.body, err, test.fault)
		}
	}
}

// Stored messages become the messages that a page begins with: a run is one message.
func TestUIMessages(t *testing.T) {
	call := func(id string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: "look", Args: json.RawMessage(`{"at":"Oslo"}`)}
	}
	found := llm.TextResult("found")
	found.CallID = "a"
	failed := llm.ErrorResult("broken")
	failed.CallID = "b"
	got := must(json.Marshal(uistream.UIMessages([]llm.Message{
		{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: "You are clerk."}}},
		llm.User("look"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "I look."}, call("a"), call("b")}},
		{Role: llm.RoleTool, Parts: []llm.Part{found, failed}},
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Done."}, call("c")}},
	})))
	const input, executed = `"input":{"at":"Oslo"},`, `"providerExecuted":true,`
	want := `[{"id":"m1","parts":[{"text":"look","type":"text"}],"role":"user"},` +
		`{"id":"m2","parts":[{"type":"step-start"},{"text":"I look.","type":"text"},` +
		`{` + input + `"output":"found",` + executed + `"state":"output-available","toolCallId":"a","type":"tool-look"},` +
		`{"errorText":"broken",` + input + executed + `"state":"output-error","toolCallId":"b","type":"tool-look"},` +
		`{"type":"step-start"},{"text":"Done.","type":"text"},` +
		`{` + input + executed + `"state":"input-available","toolCallId":"c","type":"tool-look"}],"role":"assistant"}]`
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if got := must(json.Marshal(uistream.UIMessages(nil))); string(got) != "[]" {
		t.Errorf("no messages: got %s", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
