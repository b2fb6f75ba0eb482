package read

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Tools        []wireTool      `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Text         struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Stream      bool     `json:"stream"`
	MaxTokens   int      `json:"max_output_tokens"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	Parallel    *bool    `json:"parallel_tool_calls"`
}

type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      llm.Role        `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Phase     string          `json:"phase"`
	Namespace string          `json:"namespace"`
	Caller    json.RawMessage `json:"caller"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

func readResponses(body []byte) (*llm.Request, error) {
	var w responsesRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	var j joiner
	if w.Instructions != "" {
		j.add(llm.RoleSystem, llm.Text{Text: w.Instructions})
	}
	var raw []json.RawMessage
	if len(w.Input) > 0 && json.Unmarshal(w.Input, &raw) != nil {
		var one string
		if err := json.Unmarshal(w.Input, &one); err != nil {
			return nil, fmt.Errorf("input: want a string or a list of items")
		}
		j.add(llm.RoleUser, llm.Text{Text: one})
	}
	for i, raw := range raw {
		if err := readItem(&j, raw); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	choice, err := readChoice(w.ToolChoice)
	if err != nil {
		return nil, err
	}
	return &llm.Request{Model: w.Model, Messages: j.messages, Tools: readTools(w.Tools), Choice: choice,
		Output: w.Text.Format.Schema, Whole: !w.Stream,
		Settings: llm.Settings{MaxTokens: w.MaxTokens, Temperature: w.Temperature, TopP: w.TopP,
			Effort: w.Reasoning.Effort, Parallel: w.Parallel}}, nil
}

func readItem(j *joiner, raw json.RawMessage) error {
	var item inputItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return err
	}
	switch item.Type {
	case "message", "":
		parts, err := readContent(item.Content)
		if err != nil {
			return fmt.Errorf("content: %w", err)
		}
		if text, ok := single(parts); ok && item.Phase != "" {
			parts = []llm.Part{llm.Text{Text: text, Opaque: ofResponses(map[string]any{"phase": item.Phase})}}
		}
		switch item.Role {
		case "system", "developer", "user", "assistant":
			j.add(item.Role, parts...)
		default:
			return fmt.Errorf("unknown role %q", item.Role)
		}
	case "function_call":
		var args string
		if err := json.Unmarshal(item.Arguments, &args); err != nil {
			return fmt.Errorf("arguments: %w", err)
		}
		call := llm.ToolCall{ID: item.CallID, Name: item.Name, Args: json.RawMessage(args)}
		extra := map[string]any{}
		if item.Namespace != "" {
			extra["namespace"] = item.Namespace
		}
		if item.Caller != nil {
			extra["caller"] = item.Caller
		}
		if len(extra) > 0 {
			call.Opaque = ofResponses(extra)
		}
		j.add(llm.RoleAssistant, call)
	case "function_call_output":
		parts, err := readContent(item.Output)
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		j.add(llm.RoleTool, llm.ToolResult{CallID: item.CallID, Parts: parts})
	case "reasoning":
		text, ours := seal.Open(item.Encrypted)
		for _, s := range item.Summary {
			if !ours {
				text += s.Text
			}
		}
		j.add(llm.RoleAssistant, llm.Reasoning{Text: text, Opaque: &llm.Opaque{Provider: "openai", Data: raw}})
	default: // of a hosted tool, a compaction, or another item that only the API knows
		j.add(llm.RoleAssistant, llm.Reasoning{Opaque: &llm.Opaque{Provider: "openai", Data: raw}})
	}
	return nil
}

// ofResponses returns the item that the API requires back with a part.
func ofResponses(members map[string]any) *llm.Opaque {
	return &llm.Opaque{Provider: "openai", Data: wire.Marshal(members)}
}

// single returns the text of parts that are one text.
func single(parts []llm.Part) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	t, ok := parts[0].(llm.Text)
	return t.Text, ok
}
