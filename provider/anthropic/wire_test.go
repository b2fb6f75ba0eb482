package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
)

type row = wiretest.ReplyRow

// The bodies into which the rows insert a value.
const (
	textBody = `{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":1,"output_tokens":1}}`
	callBody = `{"type":"message","stop_reason":"tool_use","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}],"usage":{"input_tokens":1,"output_tokens":1}}`
	thinking = `{"type":"message","stop_reason":"end_turn","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`
	opened   = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}|`
	thinks   = `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}|`
	calls    = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}|`
	adding   = `{"type":"content_block_delta","index":0}`
	ending   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`
)

var replyRows = []row{
	{Path: "id", Value: "msg_1", Field: "Response.ID", Get: wiretest.ID},
	{Path: "model", Value: "claude", Field: "Response.Model", Get: wiretest.Model},
	{Path: "content[0].text", Value: "hello", Field: "Text.Text", Get: wiretest.Text},
	{Path: "content[0].citations", Value: []any{map[string]any{"a": 1}}, Field: "Text.Opaque", Get: wiretest.TextKept, Want: `{"citations":[{"a":1}]}`},
	{Path: "content[0].thinking", Value: "so", Field: "Reasoning.Text", Get: wiretest.Thought, Base: thinking},
	{Path: "content[0].signature", Value: "s==", Field: "Reasoning.Opaque: the whole block", Get: wiretest.Kept, Want: `{"signature":"s==","thinking":"hm","type":"thinking"}`, Base: thinking},
	{Path: "content[0]", Value: map[string]any{"type": "redacted_thinking", "data": "x"}, Field: "Reasoning.Opaque: the whole block", Get: wiretest.Kept, Want: `{"data":"x","type":"redacted_thinking"}`},
	{Path: "content[0]", Value: map[string]any{"type": "server_tool_use", "id": "s", "input": map[string]any{}}, Field: "Reasoning.Opaque: the whole block, never run", Get: wiretest.Kept, Want: `{"id":"s","input":{},"type":"server_tool_use"}`},
	{Path: "container.id", Value: "c_1", Field: "Reasoning.Opaque, sent with the next request", Get: wiretest.Kept, Want: `{"container":"c_1"}`},
	{Path: "content[0].id", Value: "toolu_9", Field: "ToolCall.ID", Get: wiretest.CallID, Base: callBody},
	{Path: "content[0].name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: callBody},
	{Path: "content[0].input", Value: map[string]any{"x": 1}, Field: "ToolCall.Args, byte for byte", Get: wiretest.CallArgs, Want: `{"x":1}`, Base: callBody},
	{Path: "content[0].caller", Value: map[string]any{"type": "code"}, Field: "ToolCall.Opaque", Get: wiretest.CallKept, Want: `{"caller":{"type":"code"}}`, Base: callBody},
	{Path: "stop_reason", Value: "end_turn", Field: "Finish: stop", Get: wiretest.Finish, Want: "stop"},
	{Path: "stop_reason", Value: "stop_sequence", Field: "Finish: stop", Get: wiretest.Finish, Want: "stop"},
	{Path: "stop_reason", Value: "tool_use", Field: "Finish: tool_calls", Get: wiretest.Finish, Want: "tool_calls", Base: callBody},
	{Path: "stop_reason", Value: "end_turn", Field: "Finish: tool_calls, where there are calls", Get: wiretest.Finish, Want: "tool_calls", Base: callBody},
	{Path: "stop_reason", Value: "max_tokens", Field: "Finish: length", Get: wiretest.Finish, Want: "length", Base: callBody},
	{Path: "stop_reason", Value: "refusal", Field: "Finish: content_filter", Get: wiretest.Finish, Want: "content_filter"},
	{Path: "stop_reason", Value: "pause_turn", Field: "Finish: other, where the adapter does not go on by itself", Get: wiretest.Finish, Want: "other"},
	{Path: "usage.input_tokens", Value: 7, Field: "Usage.Input, with both of the cache's added", Get: wiretest.Input},
	{Path: "usage.cache_read_input_tokens", Value: 7, Field: "Usage.CacheRead", Get: wiretest.CacheRead},
	{Path: "usage.cache_creation_input_tokens", Value: 7, Field: "Usage.CacheWrite", Get: wiretest.CacheWrite},
	{Path: "usage.output_tokens", Value: 7, Field: "Usage.Output", Get: wiretest.Output},
	{Path: "usage.output_tokens_details.thinking_tokens", Value: 7, Field: "Usage.Reasoning", Get: wiretest.Reasoned},
	{Path: "usage.iterations", Value: []any{map[string]any{"input_tokens": 3}, map[string]any{"input_tokens": 4, "type": "compaction"}},
		Field: "Usage: the sums, in place of the figures above", Get: wiretest.Input, Want: 7},
}

var streamRows = []row{
	{Path: "message.id", Value: "msg_1", Field: "Response.ID", Get: wiretest.ID, Base: "|" + `{"type":"message_start","message":{"usage":{}}}`},
	{Path: "message.usage.input_tokens", Value: 7, Field: "Usage.Input", Get: wiretest.Input, Base: "|" + `{"type":"message_start","message":{"usage":{}}}`},
	{Path: "content_block.id", Value: "toolu_9", Field: "ToolCall.ID", Get: wiretest.CallID, Base: "|" + strings.TrimSuffix(calls, "|")},
	{Path: "content_block.name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: "|" + strings.TrimSuffix(calls, "|")},
	{Path: "delta", Value: map[string]any{"type": "text_delta", "text": "hello"}, Field: "Text.Text, appended", Get: wiretest.Text, Want: "hello", Base: opened + adding},
	{Path: "delta", Value: map[string]any{"type": "citations_delta", "citation": map[string]any{"a": 1}},
		Field: "Text.Opaque", Get: wiretest.TextKept, Want: `{"citations":[{"a":1}]}`, Base: opened + adding},
	{Path: "delta", Value: map[string]any{"type": "thinking_delta", "thinking": "hm"}, Field: "Reasoning.Text, appended", Get: wiretest.Thought, Want: "hm", Base: thinks + adding},
	{Path: "delta", Value: map[string]any{"type": "signature_delta", "signature": "s"}, Field: "Reasoning.Opaque: the whole block", Get: wiretest.Kept, Want: `{"type":"thinking","thinking":"","signature":"s"}`, Base: thinks + adding},
	{Path: "delta", Value: map[string]any{"type": "input_json_delta", "partial_json": `{"x": 1}`}, Field: "ToolCall.Args, appended", Get: wiretest.CallArgs, Want: `{"x": 1}`, Base: calls + adding},
	{Path: "delta.stop_reason", Value: "max_tokens", Field: "Finish: length", Get: wiretest.Finish, Want: "length", Base: "|" + ending},
	{Path: "usage.output_tokens", Value: 9, Field: "Usage.Output, the last one", Get: wiretest.Output, Base: "|" + ending},
	{Path: "usage.input_tokens", Value: 9, Field: "Usage.Input, the last one, with the cache's added", Get: wiretest.Input, Want: 14, Base: "|" + ending},
}

var errorRows = []wiretest.ErrorRow{
	wiretest.Fails(400, "error.message", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "message", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "error.type", "invalid_request_error", "Code: invalid_request", wiretest.Code, "invalid_request"),
	wiretest.Fails(400, "error.message", "prompt is too long: 9 tokens > 8 maximum", "Code: context_length", wiretest.Code, "context_length"),
	wiretest.Fails(400, "error.message", "Your credit balance is too low", "Code: quota", wiretest.Code, "quota"),
	wiretest.Fails(401, "error.type", "authentication_error", "Code: authentication", wiretest.Code, "authentication"),
	wiretest.Fails(402, "error.type", "billing_error", "Code: quota", wiretest.Code, "quota"),
	wiretest.Fails(403, "error.type", "permission_error", "Code: permission", wiretest.Code, "permission"),
	wiretest.Fails(404, "error.type", "not_found_error", "Code: not_found", wiretest.Code, "not_found"),
	wiretest.Fails(413, "error.type", "request_too_large", "Code: context_length", wiretest.Code, "context_length"),
	wiretest.Fails(429, "error.type", "rate_limit_error", "Code: rate_limit, Retryable", wiretest.Code, "rate_limit"),
	wiretest.Fails(429, "error.message", "Please try again in 1.5s", "RetryAfter, Retryable", wiretest.After, "1.5s"),
	wiretest.Fails(500, "error.type", "api_error", "Code: server, Retryable", wiretest.Code, "server"),
	wiretest.Fails(504, "error.type", "timeout_error", "Code: timeout, Retryable", wiretest.Code, "timeout"),
	wiretest.Fails(529, "error.type", "overloaded_error", "Code: overloaded, Retryable", wiretest.Code, "overloaded"),
}

var requestRows = func() []wiretest.RequestRow {
	half, no := 0.5, false
	with := func(f func(*llm.Request)) func(*llm.Request) {
		return func(r *llm.Request) { wiretest.Offer(r); f(r) }
	}
	asked := wiretest.Say(llm.Assistant(llm.ToolCall{ID: "toolu_1", Name: "f", Args: []byte(`{"x":1}`)}),
		llm.Results(llm.ToolResult{CallID: "toolu_1", Parts: []llm.Part{llm.Text{Text: "42"}}, IsError: true}))
	medium := func(m llm.Media) func(*llm.Request) {
		return wiretest.Say(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{m}})
	}
	object := map[string]any{"type": "object", "properties": map[string]any{}}
	closed := map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
	return []wiretest.RequestRow{
		wiretest.Sends("Request.Model", func(*llm.Request) {}, "model", "claude-opus-4-8"),
		wiretest.Sends("a system message at the head", func(r *llm.Request) { r.Messages = append([]llm.Message{llm.System("s")}, r.Messages...) }, "system[0].text", "s"),
		wiretest.Sends("a system message after a turn of the user's", wiretest.Say(llm.System("s")), "messages[1].role", "system"),
		wiretest.Sends("a user's Text", func(*llm.Request) {}, "messages[0].content[0].text", "u"),
		wiretest.Sends("a reply's Text", wiretest.Say(llm.Assistant(llm.Text{Text: "t"}), llm.User("v")), "messages[1].content[0].text", "t"),
		wiretest.Sends("Media by URL", medium(llm.Media{URL: "https://x"}), "messages[0].content[1].source.url", "https://x"),
		wiretest.Sends("Media by value", medium(llm.Media{MIME: "image/png", Data: []byte("x")}), "messages[0].content[1].source.data", "eA=="),
		wiretest.Sends("Media with the id of an uploaded file", medium(llm.Media{URL: "file_1"}), "messages[0].content[1].source.file_id", "file_1"),
		wiretest.Sends("Reasoning.Opaque of the same host",
			wiretest.Say(llm.Assistant(llm.Reasoning{
				Opaque: &llm.Opaque{Provider: "anthropic", Data: []byte(`{"type":"thinking","signature":"s"}`)}}, llm.Text{Text: "t"}), llm.User("v")), "messages[1].content[0].signature", "s"),
		wiretest.Sends("ToolCall.ID", asked, "messages[1].content[0].id", "toolu_1"),
		wiretest.Sends("ToolCall.Name", asked, "messages[1].content[0].name", "f"),
		wiretest.Sends("ToolCall.Args", asked, "messages[1].content[0].input", map[string]any{"x": 1.0}),
		wiretest.Sends("ToolResult.CallID", asked, "messages[2].content[0].tool_use_id", "toolu_1"),
		wiretest.Sends("ToolResult.Parts", asked, "messages[2].content[0].content", "42"),
		wiretest.Sends("ToolResult.IsError", asked, "messages[2].content[0].is_error", true),
		wiretest.Sends("Tool.Name", with(func(*llm.Request) {}), "tools[0].name", "f"),
		wiretest.Sends("Tool.Description", with(func(*llm.Request) {}), "tools[0].description", "Does f."),
		wiretest.Sends("Tool.Input", with(func(*llm.Request) {}), "tools[0].input_schema", object),
		wiretest.Sends("Choice: auto", with(func(*llm.Request) {}), "tool_choice.type", "auto"),
		wiretest.Sends("Choice: none", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolNone }), "tool_choice.type", "none"),
		wiretest.Sends("Choice: required", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolRequired }), "tool_choice.type", "any"),
		wiretest.Sends("Choice: named", with(func(r *llm.Request) { r.Choice = llm.Named("f") }), "tool_choice.name", "f"),
		wiretest.Sends("Output", func(r *llm.Request) {
			r.Output = []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
		}, "output_config.format.schema", closed),
		wiretest.Sends("Settings.MaxTokens", func(r *llm.Request) { r.Settings.MaxTokens = 9 }, "max_tokens", 9.0),
		wiretest.Sends("Settings.Temperature", func(r *llm.Request) { r.Settings.Temperature = &half }, "temperature", 0.5),
		wiretest.Sends("Settings.TopP", func(r *llm.Request) { r.Settings.TopP = &half }, "top_p", 0.5),
		wiretest.Sends("Settings.Stop", func(r *llm.Request) { r.Settings.StopSequences = []string{"x"} }, "stop_sequences[0]", "x"),
		wiretest.Sends("Settings.Effort", func(r *llm.Request) { r.Settings.Effort = "low" }, "output_config.effort", "low"),
		wiretest.Sends("Settings.Parallel", with(func(r *llm.Request) { r.Settings.Parallel = &no }), "tool_choice.disable_parallel_tool_use", true),
		wiretest.Sends("Settings.Options[\"anthropic\"]", func(r *llm.Request) {
			r.Settings.Options = map[string]json.RawMessage{"anthropic": []byte(`{"metadata":{"user_id":"u"}}`)}
		}, "metadata.user_id", "u"),
		wiretest.Sends("Whole false", func(r *llm.Request) { r.Whole = false }, "stream", true),
	}
}()

// The tables of docs/anthropic-wire.md, row by row.
func TestWire(t *testing.T) {
	messagesWire.Replies(t, replyRows, textBody, nil)
	messagesWire.Replies(t, streamRows, "", func(before, event string) string {
		all := []string{event}
		if before != "" {
			all = []string{before, event}
		}
		if !strings.Contains(event, `"message_start"`) {
			all = append([]string{begin}, all...)
		}
		if strings.Contains(event+before, `"content_block"`) {
			all = append(all, closes(0))
		}
		if !strings.Contains(event, `"message_delta"`) {
			all = append(all, ending)
		}
		return events(append(all, stop)...)
	})
	messagesWire.Failures(t, errorRows)
	messagesWire.Requested(t, "claude-opus-4-8", requestRows)
	var b strings.Builder
	b.WriteString(`# Anthropic's wire, field by field

What the adapter of package ` + "`provider/anthropic`" + ` makes of each field, for readers of logs and authors of adapters. TestWire
runs each row and writes this page (` + "`go test ./provider/anthropic -run TestWire -update`" + `). Behaviour of servers beyond the
documentation is in [anthropic-quirks.md](anthropic-quirks.md).
`)
	wiretest.ReplyTable(&b, "Replies, whole", replyRows)
	wiretest.ReplyTable(&b, "Replies, streamed", streamRows)
	wiretest.ErrorTable(&b, "Errors", errorRows)
	wiretest.RequestTable(&b, []string{"Messages"}, requestRows)
	wiretest.Page(t, "anthropic-wire.md", b.String())
}
