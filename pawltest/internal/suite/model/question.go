package model

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// Question is a request that starts a conversation.
func Question() *llm.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)
	return &llm.Request{
		Model:    "test-model",
		Messages: []llm.Message{llm.System("Be brief."), llm.User("What is there?")},
		Tools: []*llm.ToolSpec{
			{Name: "look", Description: "Looks.", Input: schema},
			{Name: "find", Description: "Finds.", Input: schema},
		},
	}
}

// Answer returns a result for each call of m. nil means that m has no call.
func Answer(m llm.Message) *llm.Message {
	calls := m.Calls()
	if len(calls) == 0 {
		return nil
	}
	results := make([]llm.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = llm.TextResult(fmt.Sprintf("%s of %s", c.Name, c.Args))
		results[i].CallID = c.ID
	}
	message := llm.Results(results...)
	return &message
}
