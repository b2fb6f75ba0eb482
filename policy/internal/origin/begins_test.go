package origin

import (
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// An index is used again for a conversation that says the same in all that it reads. A client's
// copy of a conversation, whose results have neither keys nor labels, is another one.
func TestBeginsComparesAllThatIsRead(t *testing.T) {
	made := llm.TextResult("mail of bob@x.example")
	made.CallID = "1"
	made.Key = "run/1/0"
	made.LeftOut = 7
	made.Data = json.RawMessage(`{"from":"bob@x.example"}`)
	made.Label = &llm.Label{
		By:      llm.Trusted,
		From:    []llm.Source{{Kind: "tool", Name: "get"}},
		Readers: []string{"*"},
	}
	conversation := func(change func(r *llm.ToolResult)) []llm.Message {
		r := made
		label := *made.Label
		r.Label = &label
		change(&r)
		call := llm.ToolCall{ID: "1", Name: "get", Args: []byte(`{}`)}
		return []llm.Message{llm.User("Read my mail."), llm.Assistant(call), llm.Results(r)}
	}
	ix := NewIndex(nil, false, "")
	ix.Read(conversation(func(*llm.ToolResult) {}), reads)

	for name, change := range map[string]func(r *llm.ToolResult){
		"key":      func(r *llm.ToolResult) { r.Key = "" },
		"left out": func(r *llm.ToolResult) { r.LeftOut = 0 },
		"error":    func(r *llm.ToolResult) { r.IsError = true },
		"data":     func(r *llm.ToolResult) { r.Data = nil },
		"label":    func(r *llm.ToolResult) { r.Label = nil },
		"author":   func(r *llm.ToolResult) { r.Label.By = llm.Stranger },
		"source":   func(r *llm.ToolResult) { r.Label.From = nil },
		"readers":  func(r *llm.ToolResult) { r.Label.Readers = nil },
	} {
		if ix.Begins(conversation(change)) {
			t.Errorf("a conversation with another %s is taken for the same", name)
		}
	}
	if !ix.Begins(conversation(func(*llm.ToolResult) {})) {
		t.Error("an equal conversation is taken for another one")
	}
}
