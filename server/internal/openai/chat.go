package openai

// chat.go: Chat Completions.

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/web"
)

// chatRequest holds the supported fields of a request to /v1/chat/completions. Other fields are
// ignored, except that unsupported fields that would change the answer are an error.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Tools               []toolRequest   `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	Stop                json.RawMessage `json:"stop"`
	Choices             int             `json:"n"`
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

// chatCall is a call of a function or of a custom tool.
type chatCall struct {
	Index    *int          `json:"index,omitempty"`
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function *chatFunction `json:"function,omitempty"`
	Custom   *chatCustom   `json:"custom,omitempty"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// llm converts the call.
func (c *chatCall) llm() (llm.ToolCall, error) {
	call := llm.ToolCall{ID: c.ID}
	switch {
	case c.Custom != nil:
		call.Name = c.Custom.Name
		call.Args = textArgs(c.Custom.Input)
	case c.Function != nil:
		call.Name = c.Function.Name
		call.Args = json.RawMessage(c.Function.Arguments)
	default:
		return call, runs.BadRequest("the call "+c.ID+" has neither function nor custom", "")
	}
	return call, nil
}

// toAsked converts the request.
func (r *chatRequest) toAsked() (turns.Asked, error) {
	in, err := r.convert()
	return in.Asked, err
}

// convert converts the request, with an index of its tools.
func (r *chatRequest) convert() (in asked, err error) {
	switch {
	case r.Choices > 1:
		return in, runs.BadRequest("n: only one answer is supported", "leave n out")
	case r.Logprobs:
		return in, runs.BadRequest("logprobs: not supported", "leave logprobs out")
	case len(r.Audio) > 0 && string(r.Audio) != "null":
		return in, runs.BadRequest("audio: not supported", "leave audio out")
	}

	in.Prefix = turns.PrefixChat
	in.Agent = r.Model
	in.Stream = r.Stream
	in.Extras.Forget = !r.stored()
	in.Task = turns.SideTask(r.Metadata)
	if err := r.addExtras(&in); err != nil {
		return in, err
	}
	for _, m := range r.Messages {
		if err := m.add(&in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// addExtras adds the settings, the tools and the output of the request.
func (r *chatRequest) addExtras(in *asked) (err error) {
	x := &in.Extras
	x.Settings = llm.Settings{
		MaxTokens:   max(r.MaxTokens, r.MaxCompletionTokens),
		Temperature: r.Temperature,
		TopP:        r.TopP,
		Effort:      r.ReasoningEffort,
		Parallel:    r.Parallel,
	}
	x.Settings.StopSequences, err = stopsOf(r.Stop)
	if err != nil {
		return err
	}
	if err := in.tools.add(x, "", r.Tools); err != nil {
		return err
	}
	x.Choice, err = choiceOf(r.ToolChoice)
	if err != nil {
		return err
	}
	x.Output, err = outputOf(r.ResponseFormat.Type, r.ResponseFormat.JSONSchema.Schema)
	return err
}

// add adds a message to the conversation.
func (m *chatMessage) add(in *asked) error {
	parts, err := contentOf(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		in.Extras.AddSystem(parts)
	case "user":
		in.Messages = append(in.Messages, llm.Message{Role: llm.RoleUser, Parts: parts})
	case "assistant":
		for _, c := range m.ToolCalls {
			call, err := c.llm()
			if err != nil {
				return err
			}
			parts = append(parts, call)
		}
		in.Messages = append(in.Messages, llm.Message{Role: llm.RoleAssistant, Parts: parts})
	case "tool":
		in.Append(llm.RoleTool, llm.ToolResult{CallID: m.ToolCallID, Parts: parts})
	default:
		return runs.BadRequest("there is no role "+m.Role, "system, developer, user, assistant and tool")
	}
	return nil
}

// completion is a reply in the form of Chat Completions.
type completion struct {
	call    *call
	id      string
	model   string
	created int64
	send    *web.Sender // of a stream
}

func (c *call) newCompletion(t *turns.Turn) *completion {
	return &completion{
		call:    c,
		id:      "chatcmpl-" + strings.TrimPrefix(turns.ResponseID(t.ID, t.Skip), "chat_"),
		model:   runs.BaseName(t.Agent),
		created: time.Now().Unix(),
	}
}

// form returns the reply, or a chunk of it, with a choice; nil means none.
func (v *completion) form(kind string, choice object) object {
	m := object{
		"id":      v.id,
		"object":  kind,
		"created": v.created,
		"model":   v.model,
		"choices": []any{},
	}
	if choice != nil {
		choice["index"] = 0
		m["choices"] = []any{choice}
	}
	return m
}

// whole returns the complete reply.
func (v *completion) whole(out turns.Reply) object {
	message := object{"role": "assistant", "content": out.Text, "refusal": nil}
	if out.Reasoning != "" {
		message["reasoning_content"] = out.Reasoning
	}
	if len(out.Calls) > 0 {
		message["tool_calls"] = chatCalls(out.Calls, false)
		if out.Text == "" {
			message["content"] = nil
		}
	}
	m := v.form("chat.completion", object{
		"message":       message,
		"finish_reason": out.Finish,
		"logprobs":      nil,
	})
	m["usage"] = chatUsage(out.Usage)
	return m
}

// chunk sends a part of the reply.
func (v *completion) chunk(m object) {
	v.send.Event("", "", v.call.Encode(m))
	v.send.Flush()
}

// delta sends an addition to the message. finish ends it; nil means that it goes on.
func (v *completion) delta(d object, finish any) {
	v.chunk(v.form("chat.completion.chunk", object{
		"delta":         d,
		"finish_reason": finish,
		"logprobs":      nil,
	}))
}

// say returns a function that sends additions to a member of the message.
func (v *completion) say(member string) func(text string) {
	return func(text string) { v.delta(object{member: text}, nil) }
}

// withdraw says that the text of the reply so far is void: to people as text, and to programs as a
// member of the chunk.
func (v *completion) withdraw() {
	m := v.form("chat.completion.chunk", object{
		"delta":         object{"content": turns.Withdrawn},
		"finish_reason": nil,
		"logprobs":      nil,
	})
	m["pawl"] = object{"text_retracted": true}
	v.chunk(m)
}

// chat handles POST /v1/chat/completions.
func (c *call) chat() error {
	var r chatRequest
	t, leave, err := c.Accept(&r, r.toAsked)
	if err != nil {
		return err
	}
	defer leave()

	v := c.newCompletion(t)
	if !r.Stream {
		out, err := c.Follow(t, nil, turns.Mute)
		if err != nil {
			return err
		}
		return c.Write(http.StatusOK, v.whole(out))
	}

	v.send = c.StartStream()
	v.delta(object{"role": "assistant", "content": ""}, nil)
	out, err := c.Follow(t, v.send, turns.Voice{
		Say:      v.say("content"),
		Withdraw: v.withdraw,
		Think:    v.say("reasoning_content"),
	})
	if err != nil {
		// The status has been sent, so that the error is an event.
		v.send.Event("", "", c.errorBody(runs.ToError(err), "server_error"))
		v.send.Flush()
		return nil
	}

	if len(out.Calls) > 0 {
		v.delta(object{"tool_calls": chatCalls(out.Calls, true)}, nil)
	}
	v.delta(object{}, out.Finish)
	if r.StreamOptions.IncludeUsage {
		m := v.form("chat.completion.chunk", nil)
		m["usage"] = chatUsage(out.Usage)
		v.chunk(m)
	}
	v.send.Event("", "", []byte("[DONE]"))
	v.send.Flush()
	return nil
}

// chatCalls returns calls in the form of a message, or, numbered, of a chunk.
func chatCalls(calls []turns.ClientCall, numbered bool) (out []chatCall) {
	for i, call := range calls {
		v := chatCall{ID: call.ID, Type: "function"}
		if call.Freeform {
			v.Type = "custom"
			v.Custom = &chatCustom{Name: call.Name, Input: call.Input()}
		} else {
			v.Function = &chatFunction{Name: call.Name, Arguments: call.Input()}
		}
		if numbered {
			v.Index = &i
		}
		out = append(out, v)
	}
	return out
}

func chatUsage(u llm.Usage) object {
	return object{
		"prompt_tokens":             u.Input,
		"completion_tokens":         u.Output,
		"total_tokens":              u.Total(),
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}
