package gemini_test

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
	textBody = `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`
	callBody = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}`
	part     = "candidates[0].content.parts[0]"
)

var replyRows = []row{
	{Path: "responseId", Value: "r_1", Field: "Response.ID", Get: wiretest.ID},
	{Path: "modelVersion", Value: "gemini", Field: "Response.Model", Get: wiretest.Model},
	{Path: part + ".text", Value: "hello", Field: "Text.Text", Get: wiretest.Text},
	{Path: part + ".thoughtSignature", Value: "s==", Field: "Text.Opaque", Get: wiretest.TextKept, Want: `{"thoughtSignature":"s=="}`},
	{Path: part, Value: map[string]any{"text": "hm", "thought": true}, Field: "Reasoning.Text, where thought is true", Get: wiretest.Thought, Want: "hm"},
	{Path: part, Value: map[string]any{"inlineData": map[string]any{"mimeType": "image/png", "data": "eA=="}}, Field: "Media", Get: wiretest.FirstMedia, Want: "image/png x"},
	{Path: part, Value: map[string]any{"executableCode": map[string]any{"code": "1"}}, Field: "Reasoning.Opaque: the whole part, never run", Get: wiretest.Kept, Want: `{"executableCode":{"code":"1"}}`},
	{Path: part + ".functionCall.id", Value: "c1", Field: "ToolCall.ID; where there is none, one of our own", Get: wiretest.CallID, Base: callBody},
	{Path: part + ".functionCall.name", Value: "look", Field: "ToolCall.Name", Get: wiretest.CallName, Base: callBody},
	{Path: part + ".functionCall.args", Value: map[string]any{"x": 1}, Field: "ToolCall.Args, byte for byte", Get: wiretest.CallArgs, Want: `{"x":1}`, Base: callBody},
	{Path: part + ".thoughtSignature", Value: "s==", Field: "ToolCall.Opaque", Get: wiretest.CallKept, Want: `{"thoughtSignature":"s=="}`, Base: callBody},
	{Path: "candidates[0].finishReason", Value: "STOP", Field: "Finish: stop", Get: wiretest.Finish, Want: "stop"},
	{Path: "candidates[0].finishReason", Value: "STOP", Field: "Finish: tool_calls, where there are calls", Get: wiretest.Finish, Want: "tool_calls", Base: callBody},
	{Path: "candidates[0].finishReason", Value: "MAX_TOKENS", Field: "Finish: length", Get: wiretest.Finish, Want: "length", Base: callBody},
	{Path: "candidates[0].finishReason", Value: "SAFETY", Field: "Finish: content_filter", Get: wiretest.Finish, Want: "content_filter"},
	{Path: "promptFeedback.blockReason", Value: "SAFETY", Field: "Finish: content_filter", Get: wiretest.Finish, Want: "content_filter", Base: `{}`},
	{Path: "candidates[0].finishReason", Value: "MALFORMED_FUNCTION_CALL", Field: "Finish: error", Get: wiretest.Finish, Want: "error"},
	{Path: "candidates[0].finishReason", Value: "UNEXPECTED_TOOL_CALL", Field: "Finish: error, so the call is not run", Get: wiretest.Finish, Want: "error", Base: callBody},
	{Path: "usageMetadata.promptTokenCount", Value: 7, Field: "Usage.Input", Get: wiretest.Input},
	{Path: "usageMetadata.toolUsePromptTokenCount", Value: 7, Field: "Usage.Input, added", Get: wiretest.Input},
	{Path: "usageMetadata.candidatesTokenCount", Value: 7, Field: "Usage.Output", Get: wiretest.Output},
	{Path: "usageMetadata.thoughtsTokenCount", Value: 7, Field: "Usage.Output, added", Get: wiretest.Output},
	{Path: "usageMetadata.thoughtsTokenCount", Value: 7, Field: "Usage.Reasoning", Get: wiretest.Reasoned},
	{Path: "usageMetadata.cachedContentTokenCount", Value: 7, Field: "Usage.CacheRead", Get: wiretest.CacheRead},
}

var (
	chunkText = chunk("", `{"text":"a"}`)
	chunkCall = chunk("", `{"functionCall":{"name":"f","willContinue":true}}`)
)

var streamRows = []row{
	{Path: part + ".text", Value: "b", Field: "Text.Text, appended", Get: wiretest.Text, Want: "ab", Base: chunkText + "|" + chunkText},
	{Path: part + ".functionCall.args", Value: map[string]any{"x": 1}, Field: "ToolCall.Args: the call is whole", Get: wiretest.CallArgs, Want: `{"x":1}`, Base: "|" + chunk("", `{"functionCall":{"name":"f"}}`)},
	{Path: part + ".functionCall.partialArgs[0]", Value: map[string]any{"jsonPath": "$.x", "stringValue": "y"},
		Field: "ToolCall.Args, appended in the order of their text; sealed at an empty functionCall", Get: wiretest.CallArgs, Want: `{"x":"y"}`, Base: chunkCall + "|" + chunk("", `{"functionCall":{"willContinue":true}}`)},
	{Path: "candidates[0].finishReason", Value: "MAX_TOKENS", Field: "Finish: length", Get: wiretest.Finish, Want: "length", Base: "|" + chunkText},
	{Path: "usageMetadata.promptTokenCount", Value: 7, Field: "Usage.Input, the last one", Get: wiretest.Input, Base: "|" + chunkText},
}

var errorRows = []wiretest.ErrorRow{
	wiretest.Fails(400, "error.message", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "[0].error.message", "bad", "Message", wiretest.Message, nil),
	wiretest.Fails(400, "error.status", "INVALID_ARGUMENT", "Code: invalid_request", wiretest.Code, "invalid_request"),
	wiretest.Fails(400, "error.details[0].reason", "API_KEY_INVALID", "Code: authentication", wiretest.Code, "authentication"),
	wiretest.Fails(400, "error.message", "The input token count (9) exceeds the maximum number of tokens allowed (8).", "Code: context_length", wiretest.Code, "context_length"),
	wiretest.Fails(401, "error.status", "UNAUTHENTICATED", "Code: authentication", wiretest.Code, "authentication"),
	wiretest.Fails(403, "error.status", "PERMISSION_DENIED", "Code: permission", wiretest.Code, "permission"),
	wiretest.Fails(404, "error.status", "NOT_FOUND", "Code: not_found", wiretest.Code, "not_found"),
	wiretest.Fails(429, "error.status", "RESOURCE_EXHAUSTED", "Code: rate_limit, Retryable", wiretest.Code, "rate_limit"),
	wiretest.Fails(429, "error.details[0].violations[0].quotaId", "RequestsPerDay", "Code: quota", wiretest.Code, "quota"),
	wiretest.Fails(429, "error.details[0].retryDelay", "34.5s", "RetryAfter, Retryable", wiretest.After, "34.5s"),
	wiretest.Fails(429, "error.message", "Please retry in 34.5s.", "RetryAfter, Retryable", wiretest.After, "34.5s"),
	wiretest.Fails(500, "error.status", "INTERNAL", "Code: server, Retryable", wiretest.Code, "server"),
	wiretest.Fails(503, "error.status", "UNAVAILABLE", "Code: overloaded, Retryable", wiretest.Code, "overloaded"),
	wiretest.Fails(504, "error.status", "DEADLINE_EXCEEDED", "Code: timeout, Retryable", wiretest.Code, "timeout"),
}

var requestRows = func() []wiretest.RequestRow {
	half := 0.5
	with := func(f func(*llm.Request)) func(*llm.Request) {
		return func(r *llm.Request) { wiretest.Offer(r); f(r) }
	}
	call := llm.ToolCall{ID: "c1", Name: "f", Args: []byte(`{"x":1}`), Opaque: own(`{"thoughtSignature":"s=="}`)}
	said := func(bad bool) func(*llm.Request) {
		return wiretest.Say(llm.Assistant(call), llm.Results(
			llm.ToolResult{CallID: "c1", Parts: []llm.Part{llm.Text{Text: "42"}}, IsError: bad}))
	}
	asked := said(false)
	medium := func(m llm.Media) func(*llm.Request) {
		return wiretest.Say(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{m}})
	}
	return []wiretest.RequestRow{
		wiretest.Sends("a system message, wherever it stands", wiretest.Say(llm.System("s")), "systemInstruction.parts[0].text", "s"),
		wiretest.Sends("a user's Text", func(*llm.Request) {}, "contents[0].parts[0].text", "u"),
		wiretest.Sends("a reply's Text", wiretest.Say(llm.Assistant(llm.Text{Text: "t"}), llm.User("v")), "contents[1].parts[0].text", "t"),
		wiretest.Sends("Media by URL", medium(llm.Media{MIME: "image/png", URL: "https://x"}), "contents[0].parts[1].fileData.fileUri", "https://x"),
		wiretest.Sends("Media by value", medium(llm.Media{MIME: "image/png", Data: []byte("x")}), "contents[0].parts[1].inlineData.data", "eA=="),
		wiretest.Sends("ToolCall.ID, where it is the API's", asked, "contents[1].parts[0].functionCall.id", "c1"),
		wiretest.Sends("ToolCall.Name", asked, "contents[1].parts[0].functionCall.name", "f"),
		wiretest.Sends("ToolCall.Args", asked, "contents[1].parts[0].functionCall.args", map[string]any{"x": 1.0}),
		wiretest.Sends("ToolCall.Opaque of the same host", asked, "contents[1].parts[0].thoughtSignature", "s=="),
		wiretest.Sends("the name of the call that a ToolResult answers", asked, "contents[2].parts[0].functionResponse.name", "f"),
		wiretest.Sends("ToolResult.Parts", asked, "contents[2].parts[0].functionResponse.response.result", "42"),
		wiretest.Sends("ToolResult.Parts of an error", said(true), "contents[2].parts[0].functionResponse.response.error", "42"),
		wiretest.Sends("Tool.Name", with(func(*llm.Request) {}), "tools[0].functionDeclarations[0].name", "f"),
		wiretest.Sends("Tool.Description", with(func(*llm.Request) {}), "tools[0].functionDeclarations[0].description", "Does f."),
		wiretest.Sends("Tool.Input", with(func(*llm.Request) {}), "tools[0].functionDeclarations[0].parametersJsonSchema.type", "object"),
		wiretest.Sends("Choice: auto", with(func(*llm.Request) {}), "toolConfig.functionCallingConfig.mode", "AUTO"),
		wiretest.Sends("Choice: none", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolNone }), "toolConfig.functionCallingConfig.mode", "NONE"),
		wiretest.Sends("Choice: required", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolRequired }), "toolConfig.functionCallingConfig.mode", "ANY"),
		wiretest.Sends("Choice: named", with(func(r *llm.Request) { r.Choice = llm.Named("f") }), "toolConfig.functionCallingConfig.allowedFunctionNames[0]", "f"),
		wiretest.Sends("Output", func(r *llm.Request) { r.Output = []byte(`{"type":"object","properties":{}}`) }, "generationConfig.responseJsonSchema.type", "object"),
		wiretest.Sends("Settings.MaxTokens", func(r *llm.Request) { r.Settings.MaxTokens = 9 }, "generationConfig.maxOutputTokens", 9.0),
		wiretest.Sends("Settings.Temperature", func(r *llm.Request) { r.Settings.Temperature = &half }, "generationConfig.temperature", 0.5),
		wiretest.Sends("Settings.TopP", func(r *llm.Request) { r.Settings.TopP = &half }, "generationConfig.topP", 0.5),
		wiretest.Sends("Settings.Stop", func(r *llm.Request) { r.Settings.StopSequences = []string{"x"} }, "generationConfig.stopSequences[0]", "x"),
		wiretest.Sends("Settings.Effort", func(r *llm.Request) { r.Settings.Effort = "low" }, "generationConfig.thinkingConfig.thinkingLevel", "low"),
		wiretest.Sends(`Settings.Options["gemini"]`, func(r *llm.Request) {
			r.Settings.Options = map[string]json.RawMessage{"gemini": []byte(`{"cachedContent":"c"}`)}
		}, "cachedContent", "c"),
	}
}()

// The tables of docs/gemini-wire.md, row by row.
func TestWire(t *testing.T) {
	generateWire.Replies(t, replyRows, textBody, nil)
	generateWire.Replies(t, streamRows, "", func(before, event string) string {
		all := []string{event}
		if before != "" {
			all = []string{before, event}
		}
		if !strings.Contains(event, `"finishReason"`) {
			all = append(all, chunk("STOP"))
		}
		return events(all...)
	})
	generateWire.Failures(t, errorRows)
	generateWire.Requested(t, "gemini-3-pro", requestRows)
	var b strings.Builder
	b.WriteString(`# Gemini's wire, field by field

What the adapter of package ` + "`provider/gemini`" + ` makes of each field, for readers of logs and authors of adapters. TestWire
runs each row and writes this page (` + "`go test ./provider/gemini -run TestWire -update`" + `). Behaviour of the API beyond its
documentation is in [gemini-quirks.md](gemini-quirks.md). The address has the model, and selects streaming.
`)
	wiretest.ReplyTable(&b, "Replies, whole", replyRows)
	wiretest.ReplyTable(&b, "Replies, streamed", streamRows)
	wiretest.ErrorTable(&b, "Errors", errorRows)
	wiretest.RequestTable(&b, []string{"generateContent"}, requestRows)
	wiretest.Page(t, "gemini-wire.md", b.String())
}
