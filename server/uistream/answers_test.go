package uistream_test

import (
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
)

// A client may send the result of a call twice, under another message ID or as another part. The
// first counts, so that a call has one answer.
func TestAnswersOnce(t *testing.T) {
	one := func(door string, ds []llm.Decision) {
		t.Helper()
		if len(ds) != 2 {
			t.Fatalf("%s: %d answers to two calls: %v", door, len(ds), ds)
		}
		for i, want := range []string{"Oslo", "Bergen"} {
			if got := ds[i].Result.Text(); got != want {
				t.Errorf("%s: answer %d is %q, want %q", door, i, got, want)
			}
		}
	}

	var agui uistream.RunInput
	decode(t, &agui, `{"messages": [
		{"id": "a", "role": "assistant", "toolCalls": [
			{"id": "r1/1/0", "type": "function", "function": {"name": "where", "arguments": "{}"}},
			{"id": "r1/1/1", "type": "function", "function": {"name": "where", "arguments": "{}"}}]},
		{"id": "t1", "role": "tool", "toolCallId": "r1/1/0", "content": "Oslo"},
		{"id": "t2", "role": "tool", "toolCallId": "r1/1/0", "content": "Rome"},
		{"id": "t3", "role": "tool", "toolCallId": "r1/1/1", "content": "Bergen"}]}`)
	one("AG-UI", agui.Answers("r1", new(uistream.Options)))

	var aisdk uistream.Request
	decode(t, &aisdk, `{"messages": [{"role": "assistant", "parts": [
		{"type": "tool-where", "toolCallId": "run/1/0", "state": "output-available", "output": "Oslo"},
		{"type": "tool-where", "toolCallId": "run/1/0", "state": "output-available", "output": "Rome"},
		{"type": "tool-where", "toolCallId": "run/1/1", "state": "output-available", "output": "Bergen"}]}]}`)
	one("AI SDK", aisdk.Answers(new(uistream.Options)))
}

func decode(t *testing.T, v any, text string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}
