package openai_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
)

// The bodies into which the rows insert a value.
const (
	chatBase     = `{"choices":[{"index":0,"message":{"role":"assistant"},"finish_reason":"stop"}]}`
	chatCallBase = `{"choices":[{"index":0,"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	chunkBase    = `{"choices":[{"index":0,"delta":{},"finish_reason":null}]}`
	chunkCall    = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`
	respBase     = `{"status":"completed","output":[]}`
	respText     = `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`
	respCall     = `{"status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}"}]}`
	respThought  = `{"status":"completed","output":[{"type":"reasoning"}]}`
)

var chatReplyRows = []wiretest.ReplyRow{
	{Path: "id", Value: "chatcmpl-1", Field: "Response.ID", Get: wiretest.ID},
	{Path: "model", Value: "gpt", Field: "Response.Model", Get: wiretest.Model},
	{Path: "choices[0].message.content", Value: "hello", Field: "Text.Text", Get: wiretest.Text},
	{Path: "choices[0].message.content[0]", Value: map[string]any{"type": "text", "text": "hello"}, Field: "Text.Text", Get: wiretest.Text, Want: "hello"},
	{Path: "choices[0].message.refusal", Value: "no", Field: "Text.Text, with finish content_filter",
		Get: func(r *llm.Response) any { return r.Message.Text() + ", " + string(r.Finish) }, Want: "no, content_filter"},
	{Path: "choices[0].message.reasoning_content", Value: "hm", Field: "Reasoning.Text", Get: wiretest.Thought},
	{Path: "choices[0].message.reasoning", Value: "hm", Field: "Reasoning.Text", Get: wiretest.Thought},
	{Path: "choices[0].message.reasoning_details", Value: []any{map[string]any{"data": "x"}}, Field: "Reasoning.Opaque", Get: wiretest.Kept, Want: `{"reasoning_details":[{"data":"x"}]}`},
	{Path: "choices[0].message.tool_calls[0].id", Value: "call_1", Field: "ToolCall.ID", Get: wiretest.CallID, Base: chatCallBase},
	{Path: "choices[0].message.tool_calls[0].function.name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: chatCallBase},
	{Path: "choices[0].message.tool_calls[0].function.arguments", Value: `{"x": 1}`, Field: "ToolCall.Args, byte for byte", Get: wiretest.CallArgs, Base: chatCallBase},
	{Path: "choices[0].message.function_call", Value: map[string]any{"name": "f", "arguments": "{}"},
		Field: "ToolCall, with an ID of our own", Get: func(r *llm.Response) any { return r.Message.Calls() },
		Want: []llm.ToolCall{{ID: "call_0", Name: "f", Args: []byte("{}")}}},
	{Path: "choices[0].finish_reason", Value: "stop", Field: "Finish: stop", Get: wiretest.Finish},
	{Path: "choices[0].finish_reason", Value: "length", Field: "Finish: length", Get: wiretest.Finish, Base: chatCallBase},
	{Path: "choices[0].finish_reason", Value: "content_filter", Field: "Finish: content_filter", Get: wiretest.Finish, Base: chatCallBase},
	{Path: "choices[0].finish_reason", Value: "tool_calls", Field: "Finish: tool_calls", Get: wiretest.Finish, Base: chatCallBase},
	{Path: "choices[0].finish_reason", Value: "stop", Field: "Finish: tool_calls, where there are calls", Get: wiretest.Finish, Base: chatCallBase, Want: "tool_calls"},
	{Path: "choices[0].finish_reason", Value: "another", Field: "Finish: length, with a notice; other at servers that are not OpenAI's", Get: wiretest.Finish, Want: "length"},
	{Path: "usage.prompt_tokens", Value: 7, Field: "Usage.Input", Get: wiretest.Input},
	{Path: "usage.completion_tokens", Value: 7, Field: "Usage.Output", Get: wiretest.Output},
	{Path: "usage.completion_tokens_details.reasoning_tokens", Value: 7, Field: "Usage.Reasoning", Get: wiretest.Reasoned},
	{Path: "usage.prompt_tokens_details.cached_tokens", Value: 7, Field: "Usage.CacheRead", Get: wiretest.CacheRead},
	{Path: "usage.prompt_cache_hit_tokens", Value: 7, Field: "Usage.CacheRead", Get: wiretest.CacheRead},
	{Path: "usage.prompt_tokens_details.cache_write_tokens", Value: 7, Field: "Usage.CacheWrite", Get: wiretest.CacheWrite},
	{Path: "usage.cost", Value: 0.5, Field: "Usage.Cost", Get: wiretest.Cost},
}

var chatStreamRows = []wiretest.ReplyRow{
	{Path: "id", Value: "chatcmpl-1", Field: "Response.ID", Get: wiretest.ID},
	{Path: "choices[0].delta.content", Value: "hello", Field: "Text.Text, appended", Get: wiretest.Text},
	{Path: "choices[0].delta.refusal", Value: "no", Field: "Text.Text, appended", Get: wiretest.Text},
	{Path: "choices[0].delta.reasoning_content", Value: "hm", Field: "Reasoning.Text, appended", Get: wiretest.Thought},
	{Path: "choices[0].delta.reasoning", Value: "hm", Field: "Reasoning.Text, appended", Get: wiretest.Thought},
	{Path: "choices[0].delta.tool_calls[0].id", Value: "call_1", Field: "ToolCall.ID", Get: wiretest.CallID, Base: chunkCall},
	{Path: "choices[0].delta.tool_calls[0].function.name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: chunkCall},
	{Path: "choices[0].delta.tool_calls[0].function.arguments", Value: `{"x": 1}`, Field: "ToolCall.Args, appended", Get: wiretest.CallArgs, Base: chunkCall},
	{Path: "usage.prompt_tokens", Value: 7, Field: "Usage.Input, the last one", Get: wiretest.Input},
	{Path: "x_groq.usage.prompt_tokens", Value: 7, Field: "Usage.Input, where there is no other", Get: wiretest.Input},
}

var responsesReplyRows = []wiretest.ReplyRow{
	{Path: "id", Value: "resp_1", Field: "Response.ID", Get: wiretest.ID},
	{Path: "model", Value: "gpt", Field: "Response.Model", Get: wiretest.Model},
	{Path: "output[0].content[0].text", Value: "hello", Field: "Text.Text", Get: wiretest.Text, Base: respText},
	{Path: "output[0].content[0]", Value: map[string]any{"type": "refusal", "refusal": "no"},
		Field: "Text.Text, with finish content_filter",
		Get:   func(r *llm.Response) any { return r.Message.Text() + ", " + string(r.Finish) }, Want: "no, content_filter", Base: respText},
	{Path: "output[0].phase", Value: "commentary", Field: "Text.Opaque", Get: wiretest.TextKept, Want: `{"phase":"commentary"}`, Base: respText},
	{Path: "output[0].summary[0]", Value: map[string]any{"type": "summary_text", "text": "hm"}, Field: "Reasoning.Text", Get: wiretest.Thought, Want: "hm", Base: respThought},
	{Path: "output[0].content[0]", Value: map[string]any{"type": "reasoning_text", "text": "hm"}, Field: "Reasoning.Text, without a summary", Get: wiretest.Thought, Want: "hm", Base: respThought},
	{Path: "output[0].encrypted_content", Value: "gAA=", Field: "Reasoning.Opaque: the whole item", Get: wiretest.Kept, Want: `{"encrypted_content":"gAA=","type":"reasoning"}`, Base: respThought},
	{Path: "output[0].call_id", Value: "call_1", Field: "ToolCall.ID", Get: wiretest.CallID, Base: respCall},
	{Path: "output[0].name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: respCall},
	{Path: "output[0].arguments", Value: `{"x": 1}`, Field: "ToolCall.Args, byte for byte", Get: wiretest.CallArgs, Base: respCall},
	{Path: "output[0].namespace", Value: "n", Field: "ToolCall.Opaque", Get: wiretest.CallKept, Want: `{"namespace":"n"}`, Base: respCall},
	{Path: "output[0]", Value: map[string]any{"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT"}, Field: "ToolCall, the input as Args", Get: wiretest.CallArgs, Want: "SELECT"},
	{Path: "output[0]", Value: map[string]any{"type": "web_search_call"}, Field: "Reasoning.Opaque: the whole item", Get: wiretest.Kept, Want: `{"type":"web_search_call"}`},
	{Path: "status", Value: "completed", Field: "Finish: stop", Get: wiretest.Finish, Want: "stop"},
	{Path: "status", Value: "completed", Field: "Finish: tool_calls, where there are calls", Get: wiretest.Finish, Want: "tool_calls", Base: respCall},
	{Path: "incomplete_details.reason", Value: "max_output_tokens", Field: "Finish: length", Get: wiretest.Finish, Want: "length", Base: `{"status":"incomplete","output":[]}`},
	{Path: "incomplete_details.reason", Value: "content_filter", Field: "Finish: content_filter", Get: wiretest.Finish, Base: `{"status":"incomplete","output":[]}`},
	{Path: "usage.input_tokens", Value: 7, Field: "Usage.Input", Get: wiretest.Input},
	{Path: "usage.output_tokens", Value: 7, Field: "Usage.Output", Get: wiretest.Output},
	{Path: "usage.output_tokens_details.reasoning_tokens", Value: 7, Field: "Usage.Reasoning", Get: wiretest.Reasoned},
	{Path: "usage.input_tokens_details.cached_tokens", Value: 7, Field: "Usage.CacheRead", Get: wiretest.CacheRead},
}

// In these rows, base has the earlier events and, after a bar, the event itself.
const (
	textAdded = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`
	callAdded = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`
)

var responsesStreamRows = []wiretest.ReplyRow{
	{Path: "delta", Value: "hello", Field: "Text.Text, appended", Get: wiretest.Text, Base: textAdded + `|{"type":"response.output_text.delta","output_index":0,"content_index":0}`},
	{Path: "delta", Value: "no", Field: "Text.Text, appended", Get: wiretest.Text, Base: textAdded + `|{"type":"response.refusal.delta","output_index":0,"content_index":0}`},
	{Path: "delta", Value: "hm", Field: "Reasoning.Text, appended", Get: wiretest.Thought, Base: `|{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0}`},
	{Path: "delta", Value: "hm", Field: "Reasoning.Text, appended", Get: wiretest.Thought, Base: `|{"type":"response.reasoning_text.delta","output_index":0,"content_index":0}`},
	{Path: "item.call_id", Value: "call_1", Field: "ToolCall.ID", Get: wiretest.CallID, Base: `|` + callAdded},
	{Path: "item.name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: `|` + callAdded},
	{Path: "delta", Value: `{"x": 1}`, Field: "ToolCall.Args, appended", Get: wiretest.CallArgs, Base: callAdded + `|{"type":"response.function_call_arguments.delta","output_index":0}`},
	{Path: "arguments", Value: `{"x": 1}`, Field: "ToolCall.Args, where no fragment came; the call is sealed", Get: wiretest.CallArgs, Base: callAdded + `|{"type":"response.function_call_arguments.done","output_index":0}`},
	{Path: "item", Value: map[string]any{"type": "reasoning", "encrypted_content": "x"}, Field: "Reasoning.Opaque: the whole item", Get: wiretest.Kept, Want: `{"encrypted_content":"x","type":"reasoning"}`, Base: `|{"type":"response.output_item.done","output_index":0}`},
	{Path: "response.usage.input_tokens", Value: 7, Field: "Usage.Input", Get: wiretest.Input, Base: `|{"type":"response.completed","response":{"status":"completed","output":[]}}`},
	{Path: "response.incomplete_details.reason", Value: "max_output_tokens", Field: "Finish: length", Get: wiretest.Finish, Want: "length", Base: `|{"type":"response.incomplete","response":{"status":"incomplete","output":[]}}`},
}

var errorRows = []wiretest.ErrorRow{
	wiretest.Fails(400, "error.message", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "error", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "message", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "detail", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "error.type", "invalid_request_error", "Code: invalid_request", wiretest.Code, "invalid_request"),
	wiretest.Fails(400, "error.code", "context_length_exceeded", "Code: context_length", wiretest.Code, "context_length"),
	wiretest.Fails(400, "error.code", "insufficient_quota", "Code: quota", wiretest.Code, "quota"),
	wiretest.Fails(400, "error.code", "content_filter", "Code: content_filter", wiretest.Code, "content_filter"),
	wiretest.Fails(401, "error.code", "invalid_api_key", "Code: authentication", wiretest.Code, "authentication"),
	wiretest.Fails(403, "error.message", "no", "Code: permission", wiretest.Code, "permission"),
	wiretest.Fails(404, "error.code", "model_not_found", "Code: not_found", wiretest.Code, "not_found"),
	wiretest.Fails(429, "error.code", "rate_limit_exceeded", "Code: rate_limit, Retryable", wiretest.Code, "rate_limit"),
	wiretest.Fails(429, "error.code", "insufficient_quota", "Code: quota", wiretest.Code, "quota"),
	wiretest.Fails(500, "error.message", "oops", "Code: server, Retryable", wiretest.Code, "server"),
	wiretest.Fails(503, "error.message", "busy", "Code: overloaded, Retryable", wiretest.Code, "overloaded"),
}

// requestRow is one line of the table from the neutral form to the two wires.
type requestRow struct {
	field           string
	set             func(*llm.Request)
	chat, responses string // paths; "" means that the API has no such field
	chatWant        any
	responsesWant   any
}

var requestRows = func() []requestRow {
	half, no := 0.5, false
	with := func(f func(*llm.Request)) func(*llm.Request) {
		return func(r *llm.Request) { wiretest.Offer(r); f(r) }
	}
	object := map[string]any{"type": "object", "properties": map[string]any{}}
	call := llm.ToolCall{ID: "a", Name: "f", Args: []byte(`{"x": 1}`)}
	result := llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "42"}}}
	asked := wiretest.Say(llm.Assistant(call), llm.Results(result))
	return []requestRow{
		{"Request.Model", func(*llm.Request) {}, "model", "model", "m", "m"},
		{"a system message at the head", func(r *llm.Request) { r.Messages = append([]llm.Message{llm.System("s")}, r.Messages...) }, "messages[0].content", "instructions", "s", "s"},
		{"a user's Text", func(*llm.Request) {}, "messages[0].content", "input[0].content", "u", "u"},
		{"a reply's Text", wiretest.Say(llm.Assistant(llm.Text{Text: "t"})), "messages[1].content", "input[1].content", "t", "t"},
		{"Media (an image)", wiretest.Say(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Media{URL: "https://x"}}}), "messages[1].content[0].image_url.url", "input[1].content[0].image_url", "https://x", "https://x"},
		{"Reasoning.Opaque of the same host", wiretest.Say(llm.Assistant(
			llm.Reasoning{Opaque: &llm.Opaque{Provider: "openai", Data: []byte(`{"type":"reasoning","encrypted_content":"x"}`)}},
			llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "openai-chat", Data: []byte(`{"field":"reasoning_content"}`)}}, llm.Text{Text: "t"})),
			"messages[1].reasoning_content", "input[1].encrypted_content", "hm", "x"},
		{"ToolCall.ID", asked, "messages[1].tool_calls[0].id", "input[1].call_id", "a", "a"},
		{"ToolCall.Name", asked, "messages[1].tool_calls[0].function.name", "input[1].name", "f", "f"},
		{"ToolCall.Args", asked, "messages[1].tool_calls[0].function.arguments", "input[1].arguments", `{"x": 1}`, `{"x": 1}`},
		{"ToolResult.CallID", asked, "messages[2].tool_call_id", "input[2].call_id", "a", "a"},
		{"ToolResult.Parts", asked, "messages[2].content", "input[2].output", "42", "42"},
		{"Tool.Name", with(func(*llm.Request) {}), "tools[0].function.name", "tools[0].name", "f", "f"},
		{"Tool.Description", with(func(*llm.Request) {}), "tools[0].function.description", "tools[0].description", "Does f.", "Does f."},
		{"Tool.Input", with(func(*llm.Request) {}), "tools[0].function.parameters", "tools[0].parameters", object, object},
		{"Choice: auto", with(func(*llm.Request) {}), "tool_choice", "tool_choice", "auto", "auto"},
		{"Choice: none", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolNone }), "tool_choice", "tool_choice", "none", "none"},
		{"Choice: required", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolRequired }), "tool_choice", "tool_choice", "required", "required"},
		{"Choice: named", with(func(r *llm.Request) { r.Choice = llm.Named("f") }), "tool_choice.function.name", "tool_choice.name", "f", "f"},
		{"Output", func(r *llm.Request) { r.Output = []byte(`{"type":"object","properties":{}}`) }, "response_format.json_schema.schema", "text.format.schema", object, object},
		{"Settings.MaxTokens", func(r *llm.Request) { r.Settings.MaxTokens = 9 }, "max_completion_tokens", "max_output_tokens", 9.0, 9.0},
		{"Settings.Temperature", func(r *llm.Request) { r.Settings.Temperature = &half }, "temperature", "temperature", 0.5, 0.5},
		{"Settings.TopP", func(r *llm.Request) { r.Settings.TopP = &half }, "top_p", "top_p", 0.5, 0.5},
		{"Settings.Stop", func(r *llm.Request) { r.Settings.StopSequences = []string{"x"} }, "stop[0]", "", "x", nil},
		{"Settings.Effort", func(r *llm.Request) { r.Settings.Effort = "low" }, "reasoning_effort", "reasoning.effort", "low", "low"},
		{"Settings.Parallel", with(func(r *llm.Request) { r.Settings.Parallel = &no }), "parallel_tool_calls", "parallel_tool_calls", false, false},
		{"Whole false", func(r *llm.Request) { r.Whole = false }, "stream", "stream", true, true},
		{"Whole false", func(r *llm.Request) { r.Whole = false }, "stream_options.include_usage", "", true, nil},
		{"(always)", func(*llm.Request) {}, "", "store", nil, false},
	}
}()

// The tables of docs/openai-wire.md, row by row.
func TestWire(t *testing.T) {
	chatWire.Replies(t, chatReplyRows, chatBase, nil)
	chatWire.Replies(t, chatStreamRows, chunkBase, func(_, chunk string) string {
		return events(chunk, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	})
	responsesWire.Replies(t, responsesReplyRows, respBase, nil)
	responsesWire.Replies(t, responsesStreamRows, "", func(before, event string) string {
		all := []string{cmp.Or(before, `{"type":"response.created","response":{"status":"in_progress"}}`), event}
		if !strings.Contains(event, `"response":`) {
			all = append(all, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)
		}
		return events(all...)
	})
	chatWire.Failures(t, errorRows)
	responsesWire.Failures(t, errorRows)
	var chat, responses []wiretest.RequestRow
	for _, r := range requestRows {
		chat = append(chat, wiretest.RequestRow{Field: r.field, Set: r.set, Path: r.chat, Want: r.chatWant})
		responses = append(responses, wiretest.RequestRow{Field: r.field, Set: r.set, Path: r.responses,
			Want: r.responsesWant})
	}
	chatWire.Requested(t, "m", chat)
	responsesWire.Requested(t, "m", responses)

	var b strings.Builder
	b.WriteString(`# OpenAI's wire, field by field

What the adapter of package ` + "`provider/openai`" + ` makes of each field, for readers of logs and authors of adapters. TestWire
runs each row and writes this page (` + "`go test ./provider/openai -run TestWire -update`" + `). Behaviour of servers beyond the
documentation is in [openai-quirks.md](openai-quirks.md).
`)
	wiretest.ReplyTable(&b, "Replies of Chat Completions, whole", chatReplyRows)
	wiretest.ReplyTable(&b, "Replies of Chat Completions, streamed", chatStreamRows)
	wiretest.ReplyTable(&b, "Replies of Responses, whole", responsesReplyRows)
	wiretest.ReplyTable(&b, "Replies of Responses, streamed", responsesStreamRows)
	wiretest.ErrorTable(&b, "Errors of both", errorRows)
	wiretest.RequestTable(&b, []string{"Chat Completions", "Responses"}, chat, responses)
	wiretest.Page(t, "openai-wire.md", b.String())
}
