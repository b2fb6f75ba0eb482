package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/pawl-go/pawl/internal/test/speed"
)

// The conversation in Messages.

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
}

type blocks struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type messagesRequest struct {
	Model     string         `json:"model"`
	MaxTokens int            `json:"max_tokens"`
	System    string         `json:"system"`
	Messages  []blocks       `json:"messages"`
	Tools     []messagesTool `json:"tools"`
	Stream    bool           `json:"stream,omitempty"`
}

// messages is a conversation in Messages.
type messages struct {
	url     string
	request messagesRequest
	reply   blocks // of a stream
	pieces  []*strings.Builder
}

func openMessages(h *hand) func(*hand) conversation {
	var tools []messagesTool
	for _, t := range h.tools {
		tools = append(tools, messagesTool{t.Name, t.Description, json.RawMessage(speed.Schema)})
	}
	before := h.history()
	return func(h *hand) conversation {
		var msgs []blocks
		for _, m := range before {
			msgs = append(msgs, blocks{m[0], []block{{Type: "text", Text: m[1]}}})
		}
		return &messages{
			url: h.task.URL + "/messages",
			request: messagesRequest{
				Model:     h.task.Job.Model(),
				MaxTokens: 4096,
				System:    speed.Instructions,
				Messages:  msgs,
				Tools:     tools,
				Stream:    h.task.Stream,
			},
		}
	}
}

func (c *messages) post() (string, []string) {
	return c.url, []string{"X-Api-Key", "sk-load", "Anthropic-Version", "2023-06-01"}
}
func (c *messages) body() any { return c.request }

func (c *messages) whole(body io.Reader) ([]handCall, string, error) {
	var r blocks
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return nil, "", err
	}
	calls, text := c.add(r)
	return calls, text, nil
}

func (c *messages) event(data []byte) error {
	var e struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block block  `json:"content_block"`
		Delta struct {
			Text string `json:"text"`
			JSON string `json:"partial_json"`
		} `json:"delta"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "content_block_start":
		c.reply.Content = append(c.reply.Content, e.Block)
		c.pieces = append(c.pieces, new(strings.Builder))
	case "content_block_delta":
		c.pieces[e.Index].WriteString(e.Delta.Text)
		c.pieces[e.Index].WriteString(e.Delta.JSON)
	}
	return nil
}

func (c *messages) finish() ([]handCall, string, error) {
	for i := range c.reply.Content {
		if b := &c.reply.Content[i]; b.Type == "text" {
			b.Text = c.pieces[i].String()
		} else {
			b.Input = json.RawMessage(c.pieces[i].String())
		}
	}
	calls, text := c.add(c.reply)
	c.reply, c.pieces = blocks{}, nil
	return calls, text, nil
}

// add appends a reply.
func (c *messages) add(r blocks) (calls []handCall, text string) {
	r.Role = "assistant"
	c.request.Messages = append(c.request.Messages, r)
	for _, b := range r.Content {
		if b.Type == "tool_use" {
			calls = append(calls, handCall{b.ID, b.Name, b.Input})
		}
		text += b.Text
	}
	return calls, text
}

func (c *messages) results(calls []handCall, results []string) {
	m := blocks{Role: "user"}
	for i := range calls {
		m.Content = append(m.Content, block{Type: "tool_result", ToolUseID: calls[i].id, Content: results[i]})
	}
	c.request.Messages = append(c.request.Messages, m)
}
