package openai_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/wiretest"
	"github.com/pawl-go/pawl/provider/openai"
)

// put sets the value at a path such as choices[0].message.content, and makes what is missing on the way.
func put(v any, path string, value any) any {
	if path == "" {
		return value
	}
	if m := regexp.MustCompile(`^\[(\d+)\]\.?(.*)$`).FindStringSubmatch(path); m != nil {
		i, _ := strconv.Atoi(m[1])
		list, _ := v.([]any)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = put(list[i], m[2], value)
		return list
	}
	m := regexp.MustCompile(`^([^.\[]+)\.?(.*)$`).FindStringSubmatch(path)
	o, _ := v.(map[string]any)
	if o == nil {
		o = map[string]any{}
	}
	o[m[1]] = put(o[m[1]], m[2], value)
	return o
}

// take is the value at a path; nil where there is none.
func take(v any, path string) any {
	for path != "" && v != nil {
		if m := regexp.MustCompile(`^\[(\d+)\]\.?(.*)$`).FindStringSubmatch(path); m != nil {
			i, _ := strconv.Atoi(m[1])
			list, _ := v.([]any)
			if i >= len(list) {
				return nil
			}
			v, path = list[i], m[2]
			continue
		}
		m := regexp.MustCompile(`^([^.\[]+)\.?(.*)$`).FindStringSubmatch(path)
		o, _ := v.(map[string]any)
		v, path = o[m[1]], m[2]
	}
	return v
}

func parse(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return v
}

func printed(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// replyRow is one line of the table from the wire to the neutral form: the value is put at the path into base, and must be found
// in the field.
type replyRow struct {
	path  string
	value any
	field string
	get   func(*pawl.Response) any
	want  any // nil: the value
	base  string
}

// Where a field is read.
func text(r *pawl.Response) any   { return r.Message.Text() }
func finish(r *pawl.Response) any { return string(r.Finish) }
func firstCall(r *pawl.Response) pawl.ToolCall {
	calls := r.Message.Calls()
	if len(calls) == 0 {
		return pawl.ToolCall{}
	}
	return calls[0]
}
func callID(r *pawl.Response) any   { return firstCall(r).ID }
func callName(r *pawl.Response) any { return firstCall(r).Name }
func callArgs(r *pawl.Response) any { return string(firstCall(r).Args) }
func callKept(r *pawl.Response) any {
	if o := firstCall(r).Opaque; o != nil {
		return string(o.Data)
	}
	return nil
}
func reasoning(r *pawl.Response) pawl.Reasoning {
	for _, p := range r.Message.Parts {
		if p, ok := p.(pawl.Reasoning); ok {
			return p
		}
	}
	return pawl.Reasoning{}
}
func thought(r *pawl.Response) any { return reasoning(r).Text }
func kept(r *pawl.Response) any {
	if o := reasoning(r).Opaque; o != nil {
		return string(o.Data)
	}
	return nil
}
func phaseKept(r *pawl.Response) any {
	if t, ok := r.Message.Parts[0].(pawl.Text); ok && t.Opaque != nil {
		return string(t.Opaque.Data)
	}
	return nil
}
func id(r *pawl.Response) any         { return r.ID }
func model(r *pawl.Response) any      { return r.Model }
func input(r *pawl.Response) any      { return r.Usage.Input }
func output(r *pawl.Response) any     { return r.Usage.Output }
func reasoned(r *pawl.Response) any   { return r.Usage.Reasoning }
func cacheRead(r *pawl.Response) any  { return r.Usage.CacheRead }
func cacheWrite(r *pawl.Response) any { return r.Usage.CacheWrite }
func cost(r *pawl.Response) any       { return r.Usage.Cost }

// The bodies into which a value is put.
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

var chatReplyRows = []replyRow{
	{path: "id", value: "chatcmpl-1", field: "Response.ID", get: id},
	{path: "model", value: "gpt", field: "Response.Model", get: model},
	{path: "choices[0].message.content", value: "hello", field: "Text.Text", get: text},
	{path: "choices[0].message.content[0]", value: map[string]any{"type": "text", "text": "hello"}, field: "Text.Text", get: text, want: "hello"},
	{path: "choices[0].message.refusal", value: "no", field: "Text.Text, with finish content_filter", get: func(r *pawl.Response) any { return r.Message.Text() + ", " + string(r.Finish) }, want: "no, content_filter"},
	{path: "choices[0].message.reasoning_content", value: "hm", field: "Reasoning.Text", get: thought},
	{path: "choices[0].message.reasoning", value: "hm", field: "Reasoning.Text", get: thought},
	{path: "choices[0].message.reasoning_details", value: []any{map[string]any{"data": "x"}}, field: "Reasoning.Opaque", get: kept, want: `{"reasoning_details":[{"data":"x"}]}`},
	{path: "choices[0].message.tool_calls[0].id", value: "call_1", field: "ToolCall.ID", get: callID, base: chatCallBase},
	{path: "choices[0].message.tool_calls[0].function.name", value: "look", field: "ToolCall.Name", get: callName, base: chatCallBase},
	{path: "choices[0].message.tool_calls[0].function.arguments", value: `{"x": 1}`, field: "ToolCall.Args, byte for byte", get: callArgs, base: chatCallBase},
	{path: "choices[0].message.function_call", value: map[string]any{"name": "f", "arguments": "{}"}, field: "ToolCall, with an ID of our own", get: func(r *pawl.Response) any { return r.Message.Calls() }, want: []pawl.ToolCall{{ID: "call_0", Name: "f", Args: []byte("{}")}}},
	{path: "choices[0].finish_reason", value: "stop", field: "Finish: stop", get: finish},
	{path: "choices[0].finish_reason", value: "length", field: "Finish: length", get: finish, base: chatCallBase},
	{path: "choices[0].finish_reason", value: "content_filter", field: "Finish: content_filter", get: finish, base: chatCallBase},
	{path: "choices[0].finish_reason", value: "tool_calls", field: "Finish: tool_calls", get: finish, base: chatCallBase},
	{path: "choices[0].finish_reason", value: "stop", field: "Finish: tool_calls, where there are calls", get: finish, base: chatCallBase, want: "tool_calls"},
	{path: "choices[0].finish_reason", value: "whatever", field: "Finish: other", get: finish, want: "other"},
	{path: "usage.prompt_tokens", value: 7, field: "Usage.Input", get: input},
	{path: "usage.completion_tokens", value: 7, field: "Usage.Output", get: output},
	{path: "usage.completion_tokens_details.reasoning_tokens", value: 7, field: "Usage.Reasoning", get: reasoned},
	{path: "usage.prompt_tokens_details.cached_tokens", value: 7, field: "Usage.CacheRead", get: cacheRead},
	{path: "usage.prompt_cache_hit_tokens", value: 7, field: "Usage.CacheRead", get: cacheRead},
	{path: "usage.prompt_tokens_details.cache_write_tokens", value: 7, field: "Usage.CacheWrite", get: cacheWrite},
	{path: "usage.cost", value: 0.5, field: "Usage.Cost", get: cost},
}

var chatStreamRows = []replyRow{
	{path: "id", value: "chatcmpl-1", field: "Response.ID", get: id},
	{path: "choices[0].delta.content", value: "hello", field: "Text.Text, appended", get: text},
	{path: "choices[0].delta.refusal", value: "no", field: "Text.Text, appended", get: text},
	{path: "choices[0].delta.reasoning_content", value: "hm", field: "Reasoning.Text, appended", get: thought},
	{path: "choices[0].delta.reasoning", value: "hm", field: "Reasoning.Text, appended", get: thought},
	{path: "choices[0].delta.tool_calls[0].id", value: "call_1", field: "ToolCall.ID", get: callID, base: chunkCall},
	{path: "choices[0].delta.tool_calls[0].function.name", value: "look", field: "ToolCall.Name", get: callName, base: chunkCall},
	{path: "choices[0].delta.tool_calls[0].function.arguments", value: `{"x": 1}`, field: "ToolCall.Args, appended", get: callArgs, base: chunkCall},
	{path: "usage.prompt_tokens", value: 7, field: "Usage.Input, the last one", get: input},
	{path: "x_groq.usage.prompt_tokens", value: 7, field: "Usage.Input, where there is no other", get: input},
}

var responsesReplyRows = []replyRow{
	{path: "id", value: "resp_1", field: "Response.ID", get: id},
	{path: "model", value: "gpt", field: "Response.Model", get: model},
	{path: "output[0].content[0].text", value: "hello", field: "Text.Text", get: text, base: respText},
	{path: "output[0].content[0]", value: map[string]any{"type": "refusal", "refusal": "no"}, field: "Text.Text, with finish content_filter", get: func(r *pawl.Response) any { return r.Message.Text() + ", " + string(r.Finish) }, want: "no, content_filter", base: respText},
	{path: "output[0].phase", value: "commentary", field: "Text.Opaque", get: phaseKept, want: `{"phase":"commentary"}`, base: respText},
	{path: "output[0].summary[0]", value: map[string]any{"type": "summary_text", "text": "hm"}, field: "Reasoning.Text", get: thought, want: "hm", base: respThought},
	{path: "output[0].content[0]", value: map[string]any{"type": "reasoning_text", "text": "hm"}, field: "Reasoning.Text, without a summary", get: thought, want: "hm", base: respThought},
	{path: "output[0].encrypted_content", value: "gAA=", field: "Reasoning.Opaque: the whole item", get: kept, want: `{"encrypted_content":"gAA=","type":"reasoning"}`, base: respThought},
	{path: "output[0].call_id", value: "call_1", field: "ToolCall.ID", get: callID, base: respCall},
	{path: "output[0].name", value: "look", field: "ToolCall.Name", get: callName, base: respCall},
	{path: "output[0].arguments", value: `{"x": 1}`, field: "ToolCall.Args, byte for byte", get: callArgs, base: respCall},
	{path: "output[0].namespace", value: "n", field: "ToolCall.Opaque", get: callKept, want: `{"namespace":"n"}`, base: respCall},
	{path: "output[0]", value: map[string]any{"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT"}, field: "ToolCall, the input as Args", get: callArgs, want: "SELECT"},
	{path: "output[0]", value: map[string]any{"type": "web_search_call"}, field: "Reasoning.Opaque: the whole item", get: kept, want: `{"type":"web_search_call"}`},
	{path: "status", value: "completed", field: "Finish: stop", get: finish, want: "stop"},
	{path: "status", value: "completed", field: "Finish: tool_calls, where there are calls", get: finish, want: "tool_calls", base: respCall},
	{path: "incomplete_details.reason", value: "max_output_tokens", field: "Finish: length", get: finish, want: "length", base: `{"status":"incomplete","output":[]}`},
	{path: "incomplete_details.reason", value: "content_filter", field: "Finish: content_filter", get: finish, base: `{"status":"incomplete","output":[]}`},
	{path: "usage.input_tokens", value: 7, field: "Usage.Input", get: input},
	{path: "usage.output_tokens", value: 7, field: "Usage.Output", get: output},
	{path: "usage.output_tokens_details.reasoning_tokens", value: 7, field: "Usage.Reasoning", get: reasoned},
	{path: "usage.input_tokens_details.cached_tokens", value: 7, field: "Usage.CacheRead", get: cacheRead},
}

// In these, base is what comes before, and after a bar the event itself.
const (
	textAdded = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`
	callAdded = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`
)

var responsesStreamRows = []replyRow{
	{path: "delta", value: "hello", field: "Text.Text, appended", get: text, base: textAdded + `|{"type":"response.output_text.delta","output_index":0,"content_index":0}`},
	{path: "delta", value: "no", field: "Text.Text, appended", get: text, base: textAdded + `|{"type":"response.refusal.delta","output_index":0,"content_index":0}`},
	{path: "delta", value: "hm", field: "Reasoning.Text, appended", get: thought, base: `|{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0}`},
	{path: "delta", value: "hm", field: "Reasoning.Text, appended", get: thought, base: `|{"type":"response.reasoning_text.delta","output_index":0,"content_index":0}`},
	{path: "item.call_id", value: "call_1", field: "ToolCall.ID", get: callID, base: `|` + callAdded},
	{path: "item.name", value: "look", field: "ToolCall.Name", get: callName, base: `|` + callAdded},
	{path: "delta", value: `{"x": 1}`, field: "ToolCall.Args, appended", get: callArgs, base: callAdded + `|{"type":"response.function_call_arguments.delta","output_index":0}`},
	{path: "arguments", value: `{"x": 1}`, field: "ToolCall.Args, where no fragment came; the call is sealed", get: callArgs, base: callAdded + `|{"type":"response.function_call_arguments.done","output_index":0}`},
	{path: "item", value: map[string]any{"type": "reasoning", "encrypted_content": "x"}, field: "Reasoning.Opaque: the whole item", get: kept, want: `{"encrypted_content":"x","type":"reasoning"}`, base: `|{"type":"response.output_item.done","output_index":0}`},
	{path: "response.usage.input_tokens", value: 7, field: "Usage.Input", get: input, base: `|{"type":"response.completed","response":{"status":"completed","output":[]}}`},
	{path: "response.incomplete_details.reason", value: "max_output_tokens", field: "Finish: length", get: finish, want: "length", base: `|{"type":"response.incomplete","response":{"status":"incomplete","output":[]}}`},
}

// errorRow is one line of the table of errors.
type errorRow struct {
	status int
	path   string
	value  any
	field  string
	get    func(*pawl.ProviderError) any
	want   any
}

func code(e *pawl.ProviderError) any    { return string(e.Code) }
func message(e *pawl.ProviderError) any { return e.Message }

var errorRows = []errorRow{
	{400, "error.message", "bad", "Message", message, nil},
	{400, "error", "bad", "Message", message, nil},
	{400, "message", "bad", "Message", message, nil},
	{400, "detail", "bad", "Message", message, nil},
	{400, "error.type", "invalid_request_error", "Code: invalid_request", code, "invalid_request"},
	{400, "error.code", "context_length_exceeded", "Code: context_length", code, "context_length"},
	{400, "error.code", "insufficient_quota", "Code: quota", code, "quota"},
	{400, "error.code", "content_filter", "Code: content_filter", code, "content_filter"},
	{401, "error.code", "invalid_api_key", "Code: authentication", code, "authentication"},
	{403, "error.message", "no", "Code: permission", code, "permission"},
	{404, "error.code", "model_not_found", "Code: not_found", code, "not_found"},
	{429, "error.code", "rate_limit_exceeded", "Code: rate_limit, Retryable", code, "rate_limit"},
	{429, "error.code", "insufficient_quota", "Code: quota", code, "quota"},
	{500, "error.message", "oops", "Code: server, Retryable", code, "server"},
	{503, "error.message", "busy", "Code: overloaded, Retryable", code, "overloaded"},
}

// requestRow is one line of the table from the neutral form to the wire.
type requestRow struct {
	field           string
	set             func(*pawl.Request)
	chat, responses string // paths
	chatWant        any    // nil with chat "": the API has no such thing
	responsesWant   any
}

func messages(ms ...pawl.Message) func(*pawl.Request) {
	return func(r *pawl.Request) { r.Messages = append(r.Messages, ms...) }
}

func offer(r *pawl.Request) {
	r.Tools = []*pawl.Tool{{Name: "f", Description: "Does f.", Input: []byte(`{"type":"object","properties":{}}`), Passive: true}}
}

var requestRows = func() []requestRow {
	half, no := 0.5, false
	with := func(f func(*pawl.Request)) func(*pawl.Request) { return func(r *pawl.Request) { offer(r); f(r) } }
	object := map[string]any{"type": "object", "properties": map[string]any{}}
	call := pawl.ToolCall{ID: "a", Name: "f", Args: []byte(`{"x": 1}`)}
	result := pawl.ToolResult{CallID: "a", Parts: []pawl.Part{pawl.Text{Text: "42"}}}
	asked := messages(pawl.Assistant(call), pawl.Results(result))
	return []requestRow{
		{"Request.Model", func(*pawl.Request) {}, "model", "model", "m", "m"},
		{"a system message at the head", func(r *pawl.Request) { r.Messages = append([]pawl.Message{pawl.System("s")}, r.Messages...) }, "messages[0].content", "instructions", "s", "s"},
		{"a user's Text", func(*pawl.Request) {}, "messages[0].content", "input[0].content", "u", "u"},
		{"a reply's Text", messages(pawl.Assistant(pawl.Text{Text: "t"})), "messages[1].content", "input[1].content", "t", "t"},
		{"Media (an image)", messages(pawl.Message{Role: pawl.RoleUser, Parts: []pawl.Part{pawl.Media{URL: "https://x"}}}), "messages[1].content[0].image_url.url", "input[1].content[0].image_url", "https://x", "https://x"},
		{"Reasoning.Opaque of the same host", messages(pawl.Assistant(
			pawl.Reasoning{Opaque: &pawl.Opaque{Provider: "openai", Data: []byte(`{"type":"reasoning","encrypted_content":"x"}`)}},
			pawl.Reasoning{Text: "hm", Opaque: &pawl.Opaque{Provider: "openai-chat", Data: []byte(`{"field":"reasoning_content"}`)}}, pawl.Text{Text: "t"})),
			"messages[1].reasoning_content", "input[1].encrypted_content", "hm", "x"},
		{"ToolCall.ID", asked, "messages[1].tool_calls[0].id", "input[1].call_id", "a", "a"},
		{"ToolCall.Name", asked, "messages[1].tool_calls[0].function.name", "input[1].name", "f", "f"},
		{"ToolCall.Args", asked, "messages[1].tool_calls[0].function.arguments", "input[1].arguments", `{"x": 1}`, `{"x": 1}`},
		{"ToolResult.CallID", asked, "messages[2].tool_call_id", "input[2].call_id", "a", "a"},
		{"ToolResult.Parts", asked, "messages[2].content", "input[2].output", "42", "42"},
		{"Tool.Name", with(func(*pawl.Request) {}), "tools[0].function.name", "tools[0].name", "f", "f"},
		{"Tool.Description", with(func(*pawl.Request) {}), "tools[0].function.description", "tools[0].description", "Does f.", "Does f."},
		{"Tool.Input", with(func(*pawl.Request) {}), "tools[0].function.parameters", "tools[0].parameters", object, object},
		{"Choice: auto", with(func(*pawl.Request) {}), "tool_choice", "tool_choice", "auto", "auto"},
		{"Choice: none", with(func(r *pawl.Request) { r.Choice.Mode = pawl.ToolNone }), "tool_choice", "tool_choice", "none", "none"},
		{"Choice: required", with(func(r *pawl.Request) { r.Choice.Mode = pawl.ToolRequired }), "tool_choice", "tool_choice", "required", "required"},
		{"Choice: named", with(func(r *pawl.Request) { r.Choice = pawl.Named("f") }), "tool_choice.function.name", "tool_choice.name", "f", "f"},
		{"Output", func(r *pawl.Request) { r.Output = []byte(`{"type":"object","properties":{}}`) }, "response_format.json_schema.schema", "text.format.schema", object, object},
		{"Settings.MaxTokens", func(r *pawl.Request) { r.Settings.MaxTokens = 9 }, "max_completion_tokens", "max_output_tokens", 9.0, 9.0},
		{"Settings.Temperature", func(r *pawl.Request) { r.Settings.Temperature = &half }, "temperature", "temperature", 0.5, 0.5},
		{"Settings.TopP", func(r *pawl.Request) { r.Settings.TopP = &half }, "top_p", "top_p", 0.5, 0.5},
		{"Settings.Stop", func(r *pawl.Request) { r.Settings.Stop = []string{"x"} }, "stop[0]", "", "x", nil},
		{"Settings.Effort", func(r *pawl.Request) { r.Settings.Effort = "low" }, "reasoning_effort", "reasoning.effort", "low", "low"},
		{"Settings.Parallel", with(func(r *pawl.Request) { r.Settings.Parallel = &no }), "parallel_tool_calls", "parallel_tool_calls", false, false},
		{"Whole false", func(r *pawl.Request) { r.Whole = false }, "stream", "stream", true, true},
		{"Whole false", func(r *pawl.Request) { r.Whole = false }, "stream_options.include_usage", "", true, nil},
		{"(always)", func(*pawl.Request) {}, "", "store", nil, false},
	}
}()

// The tables of docs/openai-wire.md, row by row.
func TestWire(t *testing.T) {
	check := func(name string, row replyRow, body string, sse bool, decode func(int, bool, []byte) (*pawl.Response, error)) {
		t.Helper()
		resp, err := decode(200, sse, []byte(body))
		if err != nil {
			t.Errorf("%s %s: %v\n%s", name, row.path, err, body)
			return
		}
		want := row.want
		if want == nil {
			want = row.value
		}
		if got := row.get(resp); printed(got) != printed(want) {
			t.Errorf("%s %s: %s is %s, want %s\n%s", name, row.path, row.field, printed(got), printed(want), body)
		}
	}
	or := func(a, b string) string {
		if a == "" {
			return b
		}
		return a
	}
	for _, row := range chatReplyRows {
		check("chat", row, printed(put(parse(t, or(row.base, chatBase)), row.path, row.value)), false, openai.DecodeChat)
	}
	for _, row := range chatStreamRows {
		body := events(printed(put(parse(t, or(row.base, chunkBase)), row.path, row.value)),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
		check("chat, streamed", row, body, true, openai.DecodeChat)
	}
	for _, row := range responsesReplyRows {
		check("responses", row, printed(put(parse(t, or(row.base, respBase)), row.path, row.value)), false, openai.DecodeResponses)
	}
	for _, row := range responsesStreamRows {
		before, event, _ := strings.Cut(row.base, "|")
		var all []string
		if before != "" {
			all = append(all, before)
		}
		all = append(all, printed(put(parse(t, event), row.path, row.value)))
		if !strings.Contains(event, `"response":`) {
			all = append(all, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)
		}
		check("responses, streamed", row, events(all...), true, openai.DecodeResponses)
	}
	for _, row := range errorRows {
		_, err := openai.DecodeChat(row.status, false, []byte(printed(put(nil, row.path, row.value))))
		_, same := openai.DecodeResponses(row.status, false, []byte(printed(put(nil, row.path, row.value))))
		for _, err := range []error{err, same} {
			e, ok := err.(*pawl.ProviderError)
			if !ok {
				t.Errorf("%d %s: got %v", row.status, row.path, err)
				continue
			}
			want := row.want
			if want == nil {
				want = row.value
			}
			if got := row.get(e); got != want || e.Status != row.status || e.Retryable != strings.Contains(row.field, "Retryable") {
				t.Errorf("%d %s: got %+v, want %s", row.status, row.path, e, row.field)
			}
		}
	}
	for _, row := range requestRows {
		for _, api := range []struct {
			name, path string
			want       any
			encode     func(*pawl.Request) ([]byte, error)
		}{{"chat", row.chat, row.chatWant, openai.EncodeChat}, {"responses", row.responses, row.responsesWant, openai.EncodeResponses}} {
			if api.path == "" {
				continue
			}
			req := &pawl.Request{Model: "m", Messages: []pawl.Message{pawl.User("u")}, Whole: true}
			row.set(req)
			body, err := api.encode(req)
			if err != nil {
				t.Errorf("%s: %s: %v", api.name, row.field, err)
				continue
			}
			if got := take(parse(t, string(body)), api.path); !reflect.DeepEqual(got, api.want) {
				t.Errorf("%s: %s: %s is %s, want %s\n%s", api.name, row.field, api.path, printed(got), printed(api.want), body)
			}
		}
	}
	wiretest.Page(t, "openai-wire.md", wirePage())
}

func wirePage() string {
	var b strings.Builder
	b.WriteString(`# OpenAI's wire, field by field

What the adapter of package ` + "`provider/openai`" + ` makes of each field, for whoever reads a log or writes another adapter. Each row is
run by TestWire, which also writes this page (` + "`go test ./provider/openai -run TestWire -update`" + `). What servers do beyond the
documents of the API stands in [openai-quirks.md](openai-quirks.md).
`)
	table := func(title string, rows []replyRow) {
		fmt.Fprintf(&b, "\n## %s\n\n| raw | neutral |\n|---|---|\n", title)
		for _, r := range rows {
			path := "`" + r.path + "`"
			if _, event, ok := strings.Cut(r.base, "|"); ok {
				typ, _, _ := strings.Cut(strings.TrimPrefix(event, `{"type":"`), `"`)
				path = "`" + typ + "`: " + path
			}
			if v, ok := r.value.(string); ok && (strings.HasPrefix(r.field, "Finish")) {
				path += " " + v
			}
			if v, ok := r.value.(map[string]any); ok && v["type"] != nil {
				path += fmt.Sprintf(" of type %s", v["type"])
			}
			fmt.Fprintf(&b, "| %s | %s |\n", path, r.field)
		}
	}
	table("Replies of Chat Completions, whole", chatReplyRows)
	table("Replies of Chat Completions, streamed", chatStreamRows)
	table("Replies of Responses, whole", responsesReplyRows)
	table("Replies of Responses, streamed", responsesStreamRows)
	b.WriteString("\n## Errors of both\n\n| status | raw | in `pawl.ProviderError` |\n|---|---|---|\n")
	for _, r := range errorRows {
		path := "`" + r.path + "`"
		if strings.HasPrefix(r.field, "Code") {
			path += fmt.Sprint(" ", r.value)
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", r.status, path, r.field)
	}
	b.WriteString("\n## Requests\n\n| neutral | Chat Completions | Responses |\n|---|---|---|\n")
	code := func(path string) string {
		if path == "" {
			return "–"
		}
		return "`" + path + "`"
	}
	for _, r := range requestRows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.field, code(r.chat), code(r.responses))
	}
	return b.String()
}
