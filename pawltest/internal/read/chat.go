package read

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

type chatRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role             llm.Role        `json:"role"`
		Content          json.RawMessage `json:"content"`
		ReasoningContent string          `json:"reasoning_content"`
		Reasoning        json.RawMessage `json:"reasoning"`
		ReasoningDetails json.RawMessage `json:"reasoning_details"`
		ToolCallID       string          `json:"tool_call_id"`
		Name             string          `json:"name"`
		ToolCalls        []struct {
			ID       string         `json:"id"`
			Function calledFunction `json:"function"`
		} `json:"tool_calls"`
		FunctionCall *calledFunction `json:"function_call"`
	} `json:"messages"`
	Tools          []wireTool      `json:"tools"`
	Functions      []wireFunction  `json:"functions"` // of the API's first form
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat struct {
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Stream        bool `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	Stop                json.RawMessage `json:"stop"`
	Effort              string          `json:"reasoning_effort"`
	Parallel            *bool           `json:"parallel_tool_calls"`
}

type calledFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func readChat(body []byte) (*llm.Request, error) {
	var w chatRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	var j joiner
	for i, m := range w.Messages {
		parts, err := readContent(m.Content)
		if err != nil {
			return nil, fmt.Errorf("message %d: content: %w", i, err)
		}
		switch m.Role {
		case "tool":
			j.add(llm.RoleTool, llm.ToolResult{CallID: m.ToolCallID, Parts: parts})
		case "function":
			j.add(llm.RoleTool, llm.ToolResult{CallID: "function " + m.Name, Parts: parts})
		case "assistant":
			var thought string
			json.Unmarshal(m.Reasoning, &thought) // not a string: an unknown form
			all := readThoughts(m.ReasoningContent, thought, m.ReasoningDetails)
			all = append(all, parts...)
			for _, c := range m.ToolCalls {
				all = append(all,
					llm.ToolCall{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
			}
			if f := m.FunctionCall; f != nil {
				all = append(all, llm.ToolCall{ID: "function " + f.Name, Name: f.Name, Args: json.RawMessage(f.Arguments)})
			}
			// One message is one reply, also after another.
			j.messages = append(j.messages, llm.Assistant(all...))
		case "system", "developer", "user":
			j.add(m.Role, parts...)
		default:
			return nil, fmt.Errorf("message %d: unknown role %q", i, m.Role)
		}
	}
	choice, err := readChoice(w.ToolChoice)
	if err != nil {
		return nil, err
	}
	req := &llm.Request{Model: w.Model, Messages: j.messages, Tools: readTools(w.Tools), Choice: choice,
		Output: w.ResponseFormat.Schema.Schema, Whole: !w.Stream,
		Settings: llm.Settings{MaxTokens: max(w.MaxTokens, w.MaxCompletionTokens), Temperature: w.Temperature,
			TopP:   w.TopP,
			Effort: w.Effort, Parallel: w.Parallel}}
	for _, f := range w.Functions {
		req.Tools = append(req.Tools, readTools([]wireTool{{Type: "function", wireFunction: f}})...)
	}
	if len(w.Stop) > 0 && json.Unmarshal(w.Stop, &req.Settings.StopSequences) != nil {
		var one string
		if err := json.Unmarshal(w.Stop, &one); err != nil {
			return nil, fmt.Errorf("stop: want a string or a list of strings")
		}
		req.Settings.StopSequences = []string{one}
	}
	return req, nil
}

// readThoughts reads reasoning under the names of several servers. Each is kept with its name, so
// that it can be sent back.
func readThoughts(content, plain string, details json.RawMessage) (all []llm.Part) {
	opaque := func(data string) *llm.Opaque { return &llm.Opaque{Provider: wire.Chat, Data: json.RawMessage(data)} }
	if content != "" {
		all = append(all, llm.Reasoning{Text: content, Opaque: opaque(`{"field":"reasoning_content"}`)})
	}
	if plain != "" {
		all = append(all, llm.Reasoning{Text: plain, Opaque: opaque(`{"field":"reasoning"}`)})
	}
	if len(details) > 0 && details[0] == '[' {
		all = append(all, llm.Reasoning{Opaque: opaque(`{"reasoning_details":` + string(details) + `}`)})
	}
	return all
}
