package anthropic

// blocks.go: the content of messages.

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
)

// content is the content of a message, of a result or of the system prompt: text or blocks.
type content []block

// block is a block of content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Source    *source         `json:"source"`      // of an image or a document
	ID        string          `json:"id"`          // of a call
	Name      string          `json:"name"`        // of the tool of a call
	Input     json.RawMessage `json:"input"`       // of a call
	ToolUseID string          `json:"tool_use_id"` // of a result
	Content   content         `json:"content"`     // of a result
	IsError   bool            `json:"is_error"`    // of a result
}

// source is where an image or a document is.
type source struct {
	Type      string  `json:"type"`
	MediaType string  `json:"media_type"`
	Data      string  `json:"data"`
	URL       string  `json:"url"`
	Content   content `json:"content"`
}

// UnmarshalJSON reads text or a list of blocks.
func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	var list []block
	switch {
	case bytes.Equal(b, []byte("null")):
		*c = nil
		return nil
	case json.Unmarshal(b, &text) == nil:
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return errors.New("content is neither text nor a list of blocks")
	}
	*c = list
	return nil
}

// parts converts the content.
func (c content) parts() (all []llm.Part, err error) {
	for i := range c {
		parts, err := c[i].parts()
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	return all, nil
}

// parts converts the block. The agent stores its own reasoning, so that the client's copy of it is
// dropped.
func (b *block) parts() ([]llm.Part, error) {
	switch b.Type {
	case "text":
		return []llm.Part{llm.Text{Text: b.Text}}, nil
	case "thinking", "redacted_thinking":
		return nil, nil
	case "image", "document":
		if b.Source == nil {
			return nil, runs.BadRequest("a block of the type "+b.Type+" has no source", "")
		}
		return b.Source.parts()
	case "tool_use":
		return []llm.Part{llm.ToolCall{ID: b.ID, Name: b.Name, Args: b.Input}}, nil
	case "tool_result":
		parts, err := b.Content.parts()
		if err != nil {
			return nil, err
		}
		return []llm.Part{llm.ToolResult{CallID: b.ToolUseID, Parts: parts, IsError: b.IsError}}, nil
	}
	return nil, runs.BadRequest("blocks of the type "+b.Type+" are not taken",
		"text, image, document, tool_use, tool_result and thinking")
}

// parts converts the source.
func (s *source) parts() ([]llm.Part, error) {
	url := s.URL
	switch s.Type {
	case "text":
		return []llm.Part{llm.Text{Text: s.Data}}, nil
	case "content":
		return s.Content.parts()
	case "base64":
		url = "data:;base64," + s.Data
	case "url":
	default:
		return nil, runs.BadRequest("a source of the type "+s.Type+" is not taken, and no files are stored here",
			"base64, url, text and content")
	}

	media, err := uistream.Media(url, s.MediaType)
	if err != nil {
		return nil, runs.BadRequest(err.Error(), "")
	}
	return []llm.Part{media}, nil
}
