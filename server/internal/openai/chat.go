package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// chatRequest holds the supported fields of a request to /v1/chat/completions. Other fields are
// ignored, except that unsupported fields that would change the answer are an error.
type chatRequest struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Type     string          `json:"type"`
		Function runs.ClientTool `json:"function"`
	} `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	Stop                json.RawMessage `json:"stop"`
	N                   int             `json:"n"`
	Logprobs            bool            `json:"logprobs"`
	Audio               json.RawMessage `json:"audio"`
	ResponseFormat      struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Stream        bool            `json:"stream"`
	Metadata      json.RawMessage `json:"metadata"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	sampling
}

// sampling holds the fields that both API forms share.
type sampling struct {
	Store       *bool    `json:"store"` // false means that the run is deleted when it has ended
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	Parallel    *bool    `json:"parallel_tool_calls"`
}

// stored reports whether the run stays stored after its end.
func (s *sampling) stored() bool { return s.Store == nil || *s.Store }

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []chatCall      `json:"tool_calls"`
}

type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// asked converts the request.
func (r *chatRequest) asked() (in runs.Asked, err error) {
	switch {
	case r.N > 1:
		return in, runs.BadRequest("n: only one answer is supported", "leave n out")
	case r.Logprobs:
		return in, runs.BadRequest("logprobs: not supported", "leave logprobs out")
	case len(r.Audio) > 0 && string(r.Audio) != "null":
		return in, runs.BadRequest("audio: not supported", "leave audio out")
	}
	in.Model, in.Stream, in.Dress.Forget = r.Model, r.Stream, !r.stored()
	if r.side() {
		in.Model, in.Dress.Forget = r.Model+runs.SideSuffix, true
	}
	in.Dress.Settings = llm.Settings{MaxTokens: max(r.MaxTokens, r.MaxCompletionTokens), Temperature: r.Temperature,
		TopP: r.TopP, Effort: r.ReasoningEffort, Parallel: r.Parallel}
	in.Dress.Settings.StopSequences, err = stopsOf(r.Stop)
	if err != nil {
		return in, err
	}
	for _, t := range r.Tools {
		if t.Type != "function" {
			return in, runs.BadRequest("tools of the type "+t.Type+" are not taken", "functions are")
		}
		in.Dress.Tools = append(in.Dress.Tools, t.Function)
	}
	in.Dress.Choice, err = choiceOf(r.ToolChoice)
	if err != nil {
		return in, err
	}
	in.Dress.Output, err = outputOf(r.ResponseFormat.Type, r.ResponseFormat.JSONSchema.Schema)
	if err != nil {
		return in, err
	}
	for _, m := range r.Messages {
		if err := m.add(&in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// add adds a message to the conversation.
func (m *chatMessage) add(in *runs.Asked) error {
	parts, err := contentOf(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		in.System(parts)
	case "user":
		in.Messages = append(in.Messages, llm.Message{Role: llm.RoleUser, Parts: parts})
	case "assistant":
		for _, c := range m.ToolCalls {
			parts = append(parts, llm.ToolCall{ID: c.ID, Name: c.Function.Name,
				Args: json.RawMessage(c.Function.Arguments)})
		}
		in.Messages = append(in.Messages, llm.Message{Role: llm.RoleAssistant, Parts: parts})
	case "tool":
		in.Join(llm.RoleTool, llm.ToolResult{CallID: m.ToolCallID, Parts: parts})
	default:
		return runs.BadRequest("there is no role "+m.Role, "system, developer, user, assistant and tool")
	}
	return nil
}

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
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &word) == nil:
		modes := map[string]llm.ToolMode{"auto": llm.ToolAuto, "none": llm.ToolNone, "required": llm.ToolRequired}
		if mode, ok := modes[word]; ok {
			return &llm.ToolChoice{Mode: mode}, nil
		}
	case json.Unmarshal(raw, &named) == nil && named.Type == "function":
		c := llm.Named(named.Name + named.Function.Name)
		return &c, nil
	}
	return nil, runs.BadRequest("tool_choice is not understood", "auto, none, required, or a function")
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

// accept decodes a request into r and opens its turn, which of converts. A streaming request is
// counted as a stream first. The caller calls leave when the request is answered.
func (c *call) accept(prefix string, r any, of func() (runs.Asked, error)) (t *Turn, leave func(), err error) {
	if err := c.Read(r); err != nil {
		return nil, nil, err
	}
	in, err := of()
	if err != nil {
		return nil, nil, err
	}
	in.Dress.Thread = c.R.Header.Get("X-OpenWebUI-Chat-Id")
	if in.Dress.Thread != "" {
		if err := store.CheckID(in.Dress.Thread); err != nil {
			return nil, nil, runs.BadRequest("X-OpenWebUI-Chat-Id: "+err.Error(), "")
		}
	}
	free := func() {}
	if in.Stream {
		free, err = c.EnterStream()
		if err != nil {
			return nil, nil, err
		}
	}
	t, err = c.open(prefix, in)
	if err != nil {
		free()
		return nil, nil, err
	}
	return t, func() { free(); c.leave(t) }, nil
}

// Chat handles POST /v1/chat/completions.
func (c *call) Chat() error {
	var r chatRequest
	t, leave, err := c.accept("chat", &r, r.asked)
	if err != nil {
		return err
	}
	defer leave()
	reply := func(object string, choice map[string]any) map[string]any {
		id := "chatcmpl-" + strings.TrimPrefix(responseID(t.Id, t.skip), "chat_")
		m := map[string]any{"id": id, "object": object, "created": t.created(), "model": runs.BaseName(t.Agent), "choices": []any{}}
		if choice != nil {
			choice["index"] = 0
			m["choices"] = []any{choice}
		}
		return m
	}
	if !r.Stream {
		out, err := c.follow(t, nil, func(string) {}, new(thoughts))
		if err != nil {
			return err
		}
		message := map[string]any{"role": "assistant", "content": out.text, "refusal": nil}
		if out.reasoning != "" {
			message["reasoning_content"] = out.reasoning
		}
		if len(out.calls) > 0 {
			message["tool_calls"] = chatCalls(out.calls, false)
			if out.text == "" {
				message["content"] = nil
			}
		}
		m := reply("chat.completion", map[string]any{"message": message, "finish_reason": out.finish, "logprobs": nil})
		m["usage"] = chatUsage(out.usage)
		return c.Write(http.StatusOK, m)
	}
	w := c.Events()
	chunk := func(m map[string]any) bool { w.Event("", "", c.Json(m)); return w.Flush() }
	delta := func(d map[string]any, finish any) map[string]any {
		return reply("chat.completion.chunk", map[string]any{"delta": d, "finish_reason": finish, "logprobs": nil})
	}
	chunk(delta(map[string]any{"role": "assistant", "content": ""}, nil))
	say := func(field string) func(string) {
		return func(text string) { chunk(delta(map[string]any{field: text}, nil)) }
	}
	out, err := c.follow(t, w, say("content"), &thoughts{say: say("reasoning_content")})
	t.failed = err != nil
	if t.failed {
		w.Event("", "", openAIFault(runs.ToError(err), "server_error", c.S.O.Secrets))
		w.Flush()
		return nil
	}
	if len(out.calls) > 0 {
		chunk(delta(map[string]any{"tool_calls": chatCalls(out.calls, true)}, nil))
	}
	chunk(delta(map[string]any{}, out.finish))
	if r.StreamOptions.IncludeUsage {
		m := reply("chat.completion.chunk", nil)
		m["usage"] = chatUsage(out.usage)
		chunk(m)
	}
	w.Event("", "", []byte("[DONE]"))
	w.Flush()
	return nil
}

func chatCalls(calls []llm.ToolCall, numbered bool) (out []chatCall) {
	for i, call := range calls {
		v := chatCall{ID: call.ID, Type: "function"}
		v.Function.Name, v.Function.Arguments = call.Name, string(call.Args)
		if numbered {
			v.Index = &i
		}
		out = append(out, v)
	}
	return out
}

func chatUsage(u llm.Usage) map[string]any {
	return map[string]any{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Total(),
		"prompt_tokens_details": map[string]any{"cached_tokens": u.CacheRead}, "completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}
}
