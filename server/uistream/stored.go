package uistream

// stored.go: an endpoint of an application's own: the newest message of a page, and the history of
// a stored conversation.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/llm"
)

// NewestMessage reads the body of a POST of useChat and returns its newest message, for a
// conversation that the application stores. A body that ends with a message of the assistant is an
// error: answers to approvals and results of tools of the page need Request.Answers.
func NewestMessage(r *http.Request) (llm.Message, error) {
	var in Request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return llm.Message{}, fmt.Errorf("the body is no request of useChat: %w", err)
	}
	if len(in.Messages) == 0 {
		return llm.Message{}, errors.New("the body is no request of useChat: it has no messages")
	}
	last := &in.Messages[len(in.Messages)-1]
	if last.Role != "user" {
		return llm.Message{}, errors.New("the last message is not one of the user")
	}

	msg, err := last.LLM()
	if err == nil && len(msg.Parts) == 0 {
		err = errors.New("the message has neither text nor files")
	}
	return msg, err
}

// UIMessages returns stored messages as UIMessages, for the messages of useChat when a page begins.
// The replies of a run, its calls and their results are one message of the assistant. Instructions
// are left out. A message has the number of its first stored message as its ID.
func UIMessages(msgs []llm.Message) []map[string]any {
	all := []map[string]any{}
	calls := map[string]object{} // by the ID of the call
	for i := range msgs {
		m := &msgs[i]
		id := "m" + strconv.Itoa(i)
		switch m.Role {
		case llm.RoleUser:
			all = append(all, object{"id": id, "role": "user", "parts": UIParts(m)})
		case llm.RoleAssistant:
			if n := len(all); n == 0 || all[n-1]["role"] != "assistant" {
				all = append(all, object{"id": id, "role": "assistant", "parts": []any{}})
			}
			last := all[len(all)-1]
			last["parts"] = append(last["parts"].([]any), replyParts(m, calls)...)
		case llm.RoleTool:
			addResults(m, calls)
		}
	}
	return all
}

// replyParts returns the parts of a reply, and adds its calls to calls.
func replyParts(m *llm.Message, calls map[string]object) []any {
	parts := append([]any{object{"type": "step-start"}}, UIParts(m)...)
	for _, call := range m.Calls() {
		p := object{
			"type":             "tool-" + call.Name,
			"toolCallId":       call.ID,
			"state":            "input-available",
			"input":            jsonOr(string(call.Args)),
			"providerExecuted": true,
		}
		calls[call.ID] = p
		parts = append(parts, p)
	}
	return parts
}

// addResults adds the results in m to their calls.
func addResults(m *llm.Message, calls map[string]object) {
	for _, p := range m.Parts {
		result, ok := p.(llm.ToolResult)
		if !ok || calls[result.CallID] == nil {
			continue
		}
		call := calls[result.CallID]
		if result.IsError {
			call["state"] = "output-error"
			call["errorText"] = result.Text()
			continue
		}
		call["state"] = "output-available"
		call["output"] = resultOf(&result)
	}
}
