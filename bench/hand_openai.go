package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/pawl-go/pawl/internal/test/speed"
)

// The conversation in Chat Completions.

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type chatRequest struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Tools    []chatTool    `json:"tools"`
	Stream   bool          `json:"stream,omitempty"`
}

type chatChunk struct {
	Choices []struct {
		Message chatMessage `json:"message"`
		Delta   struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				Index    int          `json:"index"`
				ID       string       `json:"id"`
				Function chatFunction `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

// chat is a conversation in Chat Completions.
type chat struct {
	url     string
	request chatRequest

	text  strings.Builder // of a streamed reply
	calls []chatCall
	args  []*strings.Builder
}

func openChat(h *hand) func(*hand) conversation {
	var tools []chatTool
	for _, t := range h.tools {
		tool := chatTool{Type: "function"}
		tool.Function.Name = t.Name
		tool.Function.Description = t.Description
		tool.Function.Parameters = json.RawMessage(speed.Schema)
		tools = append(tools, tool)
	}
	system := speed.Instructions
	before := h.history()
	return func(h *hand) conversation {
		msgs := []chatMessage{{Role: "system", Content: &system}}
		for i := range before {
			msgs = append(msgs, chatMessage{Role: before[i][0], Content: &before[i][1]})
		}
		return &chat{
			url:     h.task.URL + "/chat/completions",
			request: chatRequest{Model: h.task.Job.Model(), Messages: msgs, Tools: tools, Stream: h.task.Stream},
		}
	}
}

func (c *chat) post() (string, []string) { return c.url, []string{"Authorization", "Bearer sk-load"} }
func (c *chat) body() any                { return c.request }

func (c *chat) whole(body io.Reader) ([]handCall, string, error) {
	var r chatChunk
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return nil, "", err
	}
	if len(r.Choices) == 0 {
		return nil, "", errors.New("the reply has no choice")
	}
	calls, text := c.add(r.Choices[0].Message)
	return calls, text, nil
}

func (c *chat) event(data []byte) error {
	var r chatChunk
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if len(r.Choices) == 0 {
		return nil
	}
	delta := &r.Choices[0].Delta
	c.text.WriteString(delta.Content)
	for _, piece := range delta.ToolCalls {
		for len(c.calls) <= piece.Index {
			c.calls = append(c.calls, chatCall{Type: "function"})
			c.args = append(c.args, new(strings.Builder))
		}
		call := &c.calls[piece.Index]
		if piece.ID != "" {
			call.ID = piece.ID
			call.Function.Name = piece.Function.Name
		}
		c.args[piece.Index].WriteString(piece.Function.Arguments)
	}
	return nil
}

func (c *chat) finish() ([]handCall, string, error) {
	text := c.text.String()
	m := chatMessage{Role: "assistant", Content: &text, ToolCalls: c.calls}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Function.Arguments = c.args[i].String()
	}
	c.calls, c.args = nil, nil
	c.text.Reset()
	calls, text := c.add(m)
	return calls, text, nil
}

// add appends a reply.
func (c *chat) add(m chatMessage) (calls []handCall, text string) {
	c.request.Messages = append(c.request.Messages, m)
	for _, call := range m.ToolCalls {
		calls = append(calls, handCall{call.ID, call.Function.Name, []byte(call.Function.Arguments)})
	}
	if m.Content != nil {
		text = *m.Content
	}
	return calls, text
}

func (c *chat) results(calls []handCall, results []string) {
	for i := range calls {
		c.request.Messages = append(c.request.Messages, chatMessage{Role: "tool", Content: &results[i], CallID: calls[i].id})
	}
}

// The conversation in Responses.

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type responsesItem struct {
	Type      string `json:"type"`
	Role      string `json:"role,omitempty"`
	Content   any    `json:"content,omitempty"` // a text, or what the server wrote
	ID        string `json:"id,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Output    string `json:"output,omitempty"`
}

type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        []responsesItem `json:"input"`
	Tools        []responsesTool `json:"tools"`
	Store        bool            `json:"store"`
	Stream       bool            `json:"stream,omitempty"`
}

type responsesOutput struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Content   []struct {
		Text string `json:"text"`
	} `json:"content"`
}

type responsesReply struct {
	Output []responsesOutput `json:"output"`
}

// responses is a conversation in Responses.
type responses struct {
	url     string
	request responsesRequest
	reply   responsesReply // of a stream
	pieces  []*strings.Builder
}

func openResponses(h *hand) func(*hand) conversation {
	var tools []responsesTool
	for _, t := range h.tools {
		tools = append(tools, responsesTool{"function", t.Name, t.Description, json.RawMessage(speed.Schema)})
	}
	before := h.history()
	return func(h *hand) conversation {
		var input []responsesItem
		for _, m := range before {
			input = append(input, responsesItem{Type: "message", Role: m[0], Content: m[1]})
		}
		return &responses{
			url: h.task.URL + "/responses",
			request: responsesRequest{Model: h.task.Job.Model(), Instructions: speed.Instructions, Input: input,
				Tools: tools, Stream: h.task.Stream},
		}
	}
}

func (c *responses) post() (string, []string) {
	return c.url, []string{"Authorization", "Bearer sk-load"}
}
func (c *responses) body() any { return c.request }

func (c *responses) whole(body io.Reader) ([]handCall, string, error) {
	c.reply = responsesReply{}
	if err := json.NewDecoder(body).Decode(&c.reply); err != nil {
		return nil, "", err
	}
	calls, text := c.add()
	return calls, text, nil
}

func (c *responses) event(data []byte) error {
	var e struct {
		Type  string          `json:"type"`
		Index int             `json:"output_index"`
		Item  responsesOutput `json:"item"`
		Delta string          `json:"delta"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "response.output_item.added":
		c.reply.Output = append(c.reply.Output, e.Item)
		c.pieces = append(c.pieces, new(strings.Builder))
	case "response.function_call_arguments.delta", "response.output_text.delta":
		c.pieces[e.Index].WriteString(e.Delta)
	}
	return nil
}

func (c *responses) finish() ([]handCall, string, error) {
	text := ""
	for i := range c.reply.Output {
		if o := &c.reply.Output[i]; o.Type == "message" {
			text += c.pieces[i].String()
		} else {
			o.Arguments = c.pieces[i].String()
		}
	}
	calls, _ := c.add()
	c.reply, c.pieces = responsesReply{}, nil
	return calls, text, nil
}

// add appends the reply.
func (c *responses) add() (calls []handCall, text string) {
	for _, o := range c.reply.Output {
		if o.Type != "function_call" {
			for _, part := range o.Content {
				text += part.Text
			}
			continue
		}
		c.request.Input = append(c.request.Input, responsesItem{Type: o.Type, ID: o.ID, CallID: o.CallID, Name: o.Name,
			Arguments: o.Arguments})
		calls = append(calls, handCall{o.CallID, o.Name, []byte(o.Arguments)})
	}
	return calls, text
}

func (c *responses) results(calls []handCall, results []string) {
	for i := range calls {
		c.request.Input = append(c.request.Input, responsesItem{Type: "function_call_output", CallID: calls[i].id, Output: results[i]})
	}
}
