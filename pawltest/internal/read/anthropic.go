package read

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

type anthropicRequest struct {
	Model    string          `json:"model"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    llm.Role        `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type            string `json:"type"`
		Name            string `json:"name"`
		DisableParallel *bool  `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Stream       bool     `json:"stream"`
	MaxTokens    int      `json:"max_tokens"`
	Temperature  *float64 `json:"temperature"`
	TopP         *float64 `json:"top_p"`
	Stop         []string `json:"stop_sequences"`
	OutputConfig struct {
		Effort string          `json:"effort"`
		Format anthropicFormat `json:"format"`
	} `json:"output_config"`
	OutputFormat anthropicFormat `json:"output_format"` // of the beta
	Thinking     struct {
		Type string `json:"type"`
	} `json:"thinking"`
}

type anthropicFormat struct {
	Schema json.RawMessage `json:"schema"`
}

// anthropicBlock is a block of content, of any type.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  string          `json:"thinking"`
	Source    json.RawMessage `json:"source"`
	Citations json.RawMessage `json:"citations"`
	Caller    json.RawMessage `json:"caller"`
}

func readAnthropic(body []byte) (*llm.Request, error) {
	var w anthropicRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &llm.Request{Model: w.Model, Output: w.OutputConfig.Format.Schema, Whole: !w.Stream,
		Settings: llm.Settings{MaxTokens: w.MaxTokens, Temperature: w.Temperature, TopP: w.TopP, StopSequences: w.Stop,
			Effort: w.OutputConfig.Effort}}
	if req.Output == nil {
		req.Output = w.OutputFormat.Schema
	}
	system, err := readBlocks(w.System)
	if err != nil {
		return nil, fmt.Errorf("system: %w", err)
	}
	if len(system) > 0 {
		req.Messages = append(req.Messages, llm.Message{Role: llm.RoleSystem, Parts: system})
	}
	for i, m := range w.Messages {
		parts, err := readBlocks(m.Content)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		switch m.Role {
		case "user":
			req.Messages = append(req.Messages, splitResults(parts)...)
		case "assistant", "system":
			req.Messages = append(req.Messages, llm.Message{Role: m.Role, Parts: parts})
		default:
			return nil, fmt.Errorf("message %d: unknown role %q", i, m.Role)
		}
	}
	for _, t := range w.Tools {
		if t.Type == "" || t.Type == "custom" {
			req.Tools = append(req.Tools, &llm.ToolSpec{Name: t.Name, Description: t.Description, Input: t.InputSchema})
		}
	}
	switch c := w.ToolChoice; c.Type {
	case "none":
		req.Choice.Mode = llm.ToolNone
	case "any":
		req.Choice.Mode = llm.ToolRequired
	case "tool":
		req.Choice = llm.Named(c.Name)
	}
	if off := w.ToolChoice.DisableParallel; off != nil {
		parallel := !*off
		req.Settings.Parallel = &parallel
	}
	return req, nil
}

// ofAnthropic returns the member of a block that the API requires back. nil means none.
func ofAnthropic(name string, value json.RawMessage) *llm.Opaque {
	if s := string(value); s == "" || s == "null" || s == "[]" {
		return nil
	}
	return &llm.Opaque{Provider: "anthropic", Data: wire.Marshal(map[string]any{name: value})}
}

// splitResults splits a user message into one or two messages: its results, and the user's text
// after them.
func splitResults(parts []llm.Part) []llm.Message {
	var results, rest []llm.Part
	for _, p := range parts {
		if _, ok := p.(llm.ToolResult); ok {
			results = append(results, p)
		} else {
			rest = append(rest, p)
		}
	}
	var messages []llm.Message
	if results != nil {
		messages = append(messages, llm.Message{Role: llm.RoleTool, Parts: results})
	}
	if rest != nil || results == nil {
		messages = append(messages, llm.Message{Role: llm.RoleUser, Parts: rest})
	}
	return messages
}

// readBlocks reads a string, a list of blocks, or nothing.
func readBlocks(raw json.RawMessage) ([]llm.Part, error) {
	if parts, ok := readText(raw); ok {
		return parts, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("want a string or a list of blocks: %w", err)
	}
	var parts []llm.Part
	for i, raw := range list {
		p, err := readBlock(raw)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

func readBlock(raw json.RawMessage) (llm.Part, error) {
	var b anthropicBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, err
	}
	own := &llm.Opaque{Provider: "anthropic", Data: raw}
	switch b.Type {
	case "text":
		return llm.Text{Text: b.Text, Opaque: ofAnthropic("citations", b.Citations)}, nil
	case "tool_use":
		return llm.ToolCall{ID: b.ID, Name: b.Name, Args: b.Input, Opaque: ofAnthropic("caller", b.Caller)}, nil
	case "thinking":
		return llm.Reasoning{Text: b.Thinking, Opaque: own}, nil
	case "tool_result":
		parts, err := readBlocks(b.Content)
		return llm.ToolResult{CallID: b.ToolUseID, Parts: parts, IsError: b.IsError}, err
	case "image", "document":
		return readSource(b.Source, b.Type)
	case "container_upload", "search_result", "tool_reference", "tool_addition", "tool_removal":
		return nil, nil
	}
	// Redacted thinking, and blocks of the provider's own tools.
	return llm.Reasoning{Opaque: own}, nil
}

// readSource reads the location of an image or a document. nil means that only the provider has it.
func readSource(raw json.RawMessage, kind string) (llm.Part, error) {
	var source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
		FileID    string `json:"file_id"`
	}
	if err := json.Unmarshal(raw, &source); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	switch source.Type {
	case "base64":
		return media("data:"+source.MediaType+";base64,"+source.Data, ""), nil
	case "url":
		mime := ""
		if kind == "document" {
			mime = "application/pdf"
		}
		return llm.Media{MIME: mime, URL: source.URL}, nil
	case "file":
		mime := ""
		if kind == "image" {
			mime = "image/*"
		}
		return llm.Media{MIME: mime, URL: source.FileID}, nil
	case "text":
		return llm.Media{MIME: source.MediaType, Data: []byte(source.Data)}, nil
	}
	return nil, nil
}
