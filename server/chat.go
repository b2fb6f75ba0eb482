package server

// chat.go: OpenAI's Chat Completions; what it shares with Responses is in openai.go.

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// chatRequest holds the supported fields of a request to /v1/chat/completions. Other fields are
// ignored, except that unsupported fields that would change the answer are an error.
type chatRequest struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Type     string     `json:"type"`
		Function clientTool `json:"function"`
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
func (r *chatRequest) asked() (in asked, err error) {
	switch {
	case r.N > 1:
		return in, badRequest("n: only one answer is supported", "leave n out")
	case r.Logprobs:
		return in, badRequest("logprobs: not supported", "leave logprobs out")
	case len(r.Audio) > 0 && string(r.Audio) != "null":
		return in, badRequest("audio: not supported", "leave audio out")
	}
	in.model, in.stream, in.dress.Forget = r.Model, r.Stream, !r.stored()
	if r.side() {
		in.model = r.Model + sideSuffix
		in.dress.Forget = true
	}
	in.dress.Settings = llm.Settings{MaxTokens: max(r.MaxTokens, r.MaxCompletionTokens), Temperature: r.Temperature,
		TopP: r.TopP, Effort: r.ReasoningEffort, Parallel: r.Parallel}
	in.dress.Settings.StopSequences, err = stopsOf(r.Stop)
	if err != nil {
		return in, err
	}
	for _, t := range r.Tools {
		if t.Type != "function" {
			return in, badRequest("tools of the type "+t.Type+" are not taken", "functions are")
		}
		in.dress.Tools = append(in.dress.Tools, t.Function)
	}
	in.dress.Choice, err = choiceOf(r.ToolChoice)
	if err != nil {
		return in, err
	}
	in.dress.Output, err = outputOf(r.ResponseFormat.Type, r.ResponseFormat.JSONSchema.Schema)
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
func (m *chatMessage) add(in *asked) error {
	parts, err := contentOf(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		in.system(parts)
	case "user":
		in.messages = append(in.messages, llm.Message{Role: llm.RoleUser, Parts: parts})
	case "assistant":
		for _, c := range m.ToolCalls {
			parts = append(parts, llm.ToolCall{ID: c.ID, Name: c.Function.Name,
				Args: json.RawMessage(c.Function.Arguments)})
		}
		in.messages = append(in.messages, llm.Message{Role: llm.RoleAssistant, Parts: parts})
	case "tool":
		in.join(llm.RoleTool, llm.ToolResult{CallID: m.ToolCallID, Parts: parts})
	default:
		return badRequest("there is no role "+m.Role, "system, developer, user, assistant and tool")
	}
	return nil
}

// system adds to the system prompt.
func (in *asked) system(parts []llm.Part) {
	if in.dress.System != "" {
		in.dress.System += "\n\n"
	}
	in.dress.System += llm.Message{Parts: parts}.Text()
}

// join adds parts to the last message if it has that role: to the results or the items of the same
// reply. Otherwise they are a message.
func (in *asked) join(role llm.Role, parts ...llm.Part) {
	if n := len(in.messages); n > 0 && in.messages[n-1].Role == role {
		in.messages[n-1].Parts = append(in.messages[n-1].Parts, parts...)
		return
	}
	in.messages = append(in.messages, llm.Message{Role: role, Parts: parts})
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
	return nil, badRequest("stop is neither text nor a list of texts", "")
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
	return nil, badRequest("tool_choice is not understood", "auto, none, required, or a function")
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
			return nil, badRequest("json_schema has no schema", "")
		}
		return schema, nil
	}
	return nil, badRequest("there is no format "+kind, "text, json_object and json_schema")
}

// contentOf parses content: a string, or parts of text and images.
func contentOf(raw json.RawMessage) ([]llm.Part, error) {
	parts, err := uistream.Content(raw)
	if err != nil {
		return nil, badRequest(err.Error(), "")
	}
	return parts, nil
}

// accept decodes a request into r and opens its turn, which of converts. A streaming request is
// counted as a stream first. The caller calls leave when the request is answered.
func (c *call) accept(prefix string, r any, of func() (asked, error)) (t *turn, leave func(), err error) {
	if err := c.read(r); err != nil {
		return nil, nil, err
	}
	in, err := of()
	if err != nil {
		return nil, nil, err
	}
	in.dress.Thread = c.r.Header.Get("X-OpenWebUI-Chat-Id")
	if in.dress.Thread != "" {
		if err := store.CheckID(in.dress.Thread); err != nil {
			return nil, nil, badRequest("X-OpenWebUI-Chat-Id: "+err.Error(), "")
		}
	}
	free := func() {}
	if in.stream {
		free, err = c.enterStream()
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

// chat handles POST /v1/chat/completions.
func (c *call) chat() error {
	var r chatRequest
	t, leave, err := c.accept("chat", &r, r.asked)
	if err != nil {
		return err
	}
	defer leave()
	reply := func(object string, choice map[string]any) map[string]any {
		id := "chatcmpl-" + strings.TrimPrefix(responseID(t.id, t.skip), "chat_")
		m := map[string]any{"id": id, "object": object, "created": t.created(), "model": baseName(t.agent), "choices": []any{}}
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
		return c.write(http.StatusOK, m)
	}
	w := c.events()
	chunk := func(m map[string]any) bool { w.event("", "", c.json(m)); return w.flush() }
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
		w.event("", "", openAIFault(toError(err), "server_error", c.s.o.Secrets))
		w.flush()
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
	w.event("", "", []byte("[DONE]"))
	w.flush()
	return nil
}

// json returns v as JSON without secrets.
func (c *call) json(v any) []byte {
	b, err := c.s.marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return b
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
