// Package plain is a tool loop written by hand over Chat Completions: ask, execute the calls, ask
// again. It is the control of the hostile kit. Most loops look like it, and runtimes in use have
// each of its gaps:
//
//   - an unknown tool, or a tool's error, ends the run
//   - arguments are passed on unread; text that is no JSON becomes {}
//   - the finish reason is not looked at
//   - every call gets a goroutine, without a bound and without recover
//   - there is no timeout, no retry and no policy, and a forced choice is sent each time
package plain

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Tool is a tool of the loop.
type Tool struct {
	Name, Description string
	Input             json.RawMessage // JSON Schema
	Run               func(ctx context.Context, args []byte) (string, error)
}

// Loop asks one server. Fill in a literal.
type Loop struct {
	URL    string // before /chat/completions
	Stream bool
	Choice string // a tool that is forced, required, none, or ""
	Tools  []Tool

	// Backward executes the calls of a turn one by one, the last one first. The scheduler may
	// choose this order for goroutines too; it makes the outcome of calls that depend on each other
	// the same in every run.
	Backward bool
}

// maxTurns is the only bound of the loop.
const maxTurns = 30

type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Run executes task and returns the answer.
func (l *Loop) Run(ctx context.Context, task string) (string, error) {
	messages := []message{{Role: "user", Content: task}}
	for range maxTurns {
		reply, err := l.ask(ctx, messages)
		if err != nil {
			return "", err
		}
		messages = append(messages, *reply)
		if len(reply.ToolCalls) == 0 {
			return reply.Content, nil
		}
		results, err := l.execute(ctx, reply.ToolCalls)
		if err != nil {
			return "", err
		}
		messages = append(messages, results...)
	}
	return "", errors.New("too many turns")
}

// execute runs calls, all at once.
func (l *Loop) execute(ctx context.Context, calls []toolCall) ([]message, error) {
	results := make([]message, len(calls))
	errs := make([]error, len(calls))
	var wait sync.WaitGroup
	for i, c := range slices.Backward(calls) {
		call := func() {
			results[i] = message{Role: "tool", ToolCallID: c.ID}
			results[i].Content, errs[i] = l.call(ctx, c)
		}
		if l.Backward {
			call()
			continue
		}
		wait.Go(call)
	}
	wait.Wait()
	return results, errors.Join(errs...)
}

func (l *Loop) call(ctx context.Context, c toolCall) (string, error) {
	for _, t := range l.Tools {
		if t.Name == c.Function.Name {
			args := []byte(c.Function.Arguments)
			if !json.Valid(args) {
				args = []byte("{}")
			}
			return t.Run(ctx, args)
		}
	}
	return "", fmt.Errorf("tool %q not found", c.Function.Name)
}

// ask sends the conversation and returns the reply.
func (l *Loop) ask(ctx context.Context, messages []message) (*message, error) {
	body := map[string]any{"model": "any", "messages": messages, "stream": l.Stream}
	var tools []any
	for _, t := range l.Tools {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "description": t.Description, "parameters": t.Input}})
	}
	body["tools"] = tools
	switch l.Choice {
	case "":
	case "none", "required":
		body["tool_choice"] = l.Choice
	default:
		body["tool_choice"] = map[string]any{"type": "function", "function": map[string]any{"name": l.Choice}}
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL+"/chat/completions", bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer none-needed")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	if l.Stream {
		return join(res.Body)
	}
	var whole struct {
		Choices []struct{ Message message }
	}
	if err := json.NewDecoder(res.Body).Decode(&whole); err != nil {
		return nil, err
	}
	if len(whole.Choices) == 0 {
		return nil, errors.New("no choices")
	}
	return &whole.Choices[0].Message, nil
}

// join joins a stream.
func join(body io.Reader) (*message, error) {
	reply := &message{Role: "assistant"}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			break
		}
		var chunk struct {
			Choices []struct{ Delta message }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return nil, err
		}
		for _, c := range chunk.Choices {
			reply.Content += c.Delta.Content
			for _, piece := range c.Delta.ToolCalls {
				if piece.Index > len(reply.ToolCalls)+1 {
					return nil, errors.New("a call is missing")
				}
				for len(reply.ToolCalls) <= piece.Index {
					reply.ToolCalls = append(reply.ToolCalls, toolCall{Type: "function"})
				}
				call := &reply.ToolCalls[piece.Index]
				if piece.ID != "" {
					call.ID = piece.ID
				}
				call.Function.Name += piece.Function.Name
				call.Function.Arguments += piece.Function.Arguments
			}
		}
	}
	return reply, lines.Err()
}
