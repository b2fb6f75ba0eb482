package openai

// parts.go: the parts of requests that both API forms share.

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
)

// stopsOf parses stop: a text or a list of texts.
func stopsOf(raw json.RawMessage) (all []string, err error) {
	var one string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &one) == nil:
		return []string{one}, nil
	case json.Unmarshal(raw, &all) == nil:
		return all, nil
	}
	return nil, runs.BadRequest("stop is neither text nor a list of texts", "")
}

// choiceOf parses tool_choice in either form.
func choiceOf(raw json.RawMessage) (*llm.ToolChoice, error) {
	var word string
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Custom struct {
			Name string `json:"name"`
		} `json:"custom"`
	}

	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil

	case json.Unmarshal(raw, &word) == nil:
		modes := map[string]llm.ToolMode{"auto": llm.ToolAuto, "none": llm.ToolNone, "required": llm.ToolRequired}
		if mode, ok := modes[word]; ok {
			return &llm.ToolChoice{Mode: mode}, nil
		}

	case json.Unmarshal(raw, &named) == nil && (named.Type == "function" || named.Type == "custom"):
		// Responses has the name next to the type, and Chat Completions in function or custom.
		c := llm.Named(named.Name + named.Function.Name + named.Custom.Name)
		return &c, nil
	}
	return nil, runs.BadRequest("tool_choice is not understood", "auto, none, required, a function or a custom tool")
}

// outputOf parses response_format and text.format.
func outputOf(kind string, schema json.RawMessage) (json.RawMessage, error) {
	switch kind {
	case "", "text":
		return nil, nil
	case "json_object":
		return json.RawMessage(`{"type":"object"}`), nil
	case "json_schema":
		if len(schema) == 0 {
			return nil, runs.BadRequest("json_schema has no schema", "")
		}
		return schema, nil
	}
	return nil, runs.BadRequest("there is no format "+kind, "text, json_object and json_schema")
}

// contentOf parses content: a string, or parts of text and images.
func contentOf(raw json.RawMessage) ([]llm.Part, error) {
	parts, err := uistream.Content(raw)
	if err != nil {
		return nil, runs.BadRequest(err.Error(), "")
	}
	return parts, nil
}
