package openai_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

const done = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m","output":[{"type":"x"}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":8},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":13}}}`

const used = `; in 9 out 4 reasoning 3 read 8`

func TestResponsesReplies(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
	}{
		{"a whole answer", response(`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}`), `text "hi"; stop`},
		{"a streamed answer", events(`{"type":"response.created","response":{"id":"resp_1"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"h"}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"i"}`, `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"hi"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}`, done), `text "hi"; stop` + used},
		{"a whole call", response(`{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}","status":"completed"}`), `call a f {"x":1}; tool_calls`},
		{"a streamed call", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":""}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\""}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":":1}"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"x\":1}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}"}}`, done), `call a f {"x":1}; tool_calls` + used},
		{"calls beside each other", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"b","name":"g","arguments":""}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"x\":2}"}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":1}"}`, done), `call a f {"x":1}; call b g {"x":2}; tool_calls` + used},

		{"quirk 43: encrypted reasoning", response(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAA="}`, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`), `reasoning "" [openai {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAA="}]; call a f {}; tool_calls`},
		{"quirk 43: reasoning with a summary in a stream", events(`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_0","type":"reasoning","summary":[]}}`, `{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"one"}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"two"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}]}}`, done),
			`reasoning "one\n\ntwo" [openai {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}]}]; stop` + used},
		{"quirk 44: no id, output_index inside the item", events(`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"a","name":"f","arguments":"","output_index":1}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}`, `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}","output_index":1}}`, done), `call a f {}; tool_calls` + used},
		{"quirk 45: item ids change", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x","call_id":"a","name":"f","arguments":""}}`, `{"type":"response.function_call_arguments.delta","item_id":"y","output_index":0,"delta":"{}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"z","call_id":"a","name":"f","arguments":"{}"}}`, done), `call a f {}; tool_calls` + used},
		{"quirk 46: comments and [DONE]", ": OPENROUTER PROCESSING\n\n" + events(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`, done, "[DONE]"), `text "hi"; stop` + used},
		{"quirk 47: padding, no numbers", events(`{"type":"response.output_text.delta","delta":"hi","obfuscation":"xyz"}`, done), `text "hi"; stop` + used},
		{"quirk 48: a queued response", `{"id":"r","status":"queued","output":[]}`, `error unsupported: the response is queued: a Model fetches it later if it asked for it in the background`},
		{"quirk 48: a stream that begins late", events(`{"type":"response.queued","sequence_number":1,"response":{}}`, `{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`, done), `text "hi"; stop` + used},
		{"quirk 49: a call in progress, called by a program", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","status":"in_progress","call_id":"a","caller":{"type":"program","caller_id":"p"},"name":"f","arguments":""}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{}"}`, done), `call a f {} [openai {"caller":{"type":"program","caller_id":"p"}}]; tool_calls` + used},
		{"quirk 50: a namespace, a tool search", response(`{"type":"tool_search_call","call_id":"s","execution":"server"}`, `{"type":"tool_search_output","call_id":"s","tools":[]}`, `{"type":"function_call","call_id":"a","name":"f","namespace":"n","arguments":"{}"}`), `reasoning "" [openai {"type":"tool_search_call","call_id":"s","execution":"server"}]; reasoning "" [openai {"type":"tool_search_output","call_id":"s","tools":[]}]; call a f {} [openai {"namespace":"n"}]; tool_calls`},
		{"quirk 51: a custom call", response(`{"type":"custom_tool_call","call_id":"call_1","name":"sql","input":"SELECT 1"}`), `call call_1 sql SELECT 1 [openai {"type":"custom_tool_call","call_id":"call_1","name":"sql","input":"SELECT 1"}]; tool_calls`},
		{"quirk 51: a streamed custom call", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","call_id":"call_1","name":"sql","input":""}}`, `{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"SELECT "}`, `{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"1"}`, `{"type":"response.custom_tool_call_input.done","output_index":0,"input":"SELECT 1"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"custom_tool_call","call_id":"call_1","name":"sql","input":"SELECT 1"}}`, done), `call call_1 sql SELECT 1 [openai {"type":"custom_tool_call","call_id":"call_1","name":"sql","input":"SELECT 1"}]; tool_calls` + used},
		{"quirk 51: calls of hosted tools that the caller runs", response(`{"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["ls"]}}`, `{"type":"apply_patch_call","call_id":"b","operation":{"type":"delete_file"}}`), `call a local_shell_call {"type":"exec","command":["ls"]} [openai {"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["ls"]}}]; call b apply_patch_call {"type":"delete_file"} [openai {"type":"apply_patch_call","call_id":"b","operation":{"type":"delete_file"}}]; tool_calls`},
		{"quirk 51: a shell call that ran in the server's container", response(`{"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"environment":{"type":"container_reference"}}`), `reasoning "" [openai {"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"environment":{"type":"container_reference"}}]; stop`},
		{"quirk 52: xAI's own searches are not run", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","call_id":"xs_call_1","name":"x_search","input":""}}`, `{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"{}"}`, `{"type":"response.custom_tool_call_input.done","output_index":0,"input":"{}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"custom_tool_call","call_id":"xs_call_1","name":"x_search","input":"{}"}}`, done), `reasoning "" [openai {"type":"custom_tool_call","call_id":"xs_call_1","name":"x_search","input":"{}"}]; stop` + used},
		{"quirk 53: the wrapper of parallel calls; JSON that ends too early", events(`{"type":"response.created","response":{"id":"r"}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"p","name":"parallel","arguments":""}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}},"}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"recipient_name\":\"functions.g\",\"parameters\":{}}]}"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}},{\"recipient_name\":\"functions.g\",\"parameters\":{}}]}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"p","name":"parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}},{\"recipient_name\":\"functions.g\",\"parameters\":{}}]}"}}`, strings.TrimSuffix(done, "}")), `call p_0 f {"x":1}; call p_1 g {}; tool_calls` + used},
		{"quirk 53: the wrapper in a whole reply", response(`{"type":"function_call","call_id":"p","name":"multi_tool_use.parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}}]}"}`), `call p_0 f {"x":1}; tool_calls`},
		{"quirk 54: several messages with phases", response(`{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"wait"}]}`, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, `{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"hi"}]}`), `text "wait" [openai {"phase":"commentary"}]; call a f {}; text "hi" [openai {"phase":"final_answer"}]; tool_calls`},
		{"quirk 55: a compaction", `{"object":"response.compaction","output":[{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]},{"type":"compaction","encrypted_content":"x"}]}`, `text "u"; reasoning "" [openai {"type":"compaction","encrypted_content":"x"}]; stop`},
		{"quirk 55: a count of tokens is no reply", `{"object":"response.input_tokens","input_tokens":16}`, `error stream retryable: the reply has no output; it is "response.input_tokens"`},
		{"quirk 56: the reasoning itself", response(`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`), `reasoning "hm" [openai {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}]; stop`},
		{"quirk 56: the reasoning itself, streamed", events(`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"h"}`, `{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"m"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]}}`, done), `reasoning "hm" [openai {"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]}]; stop` + used},
		{"quirk 57: items of the server's own tools", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"ws"}}`, `{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws"}`, `{"type":"response.mcp_call_arguments.delta","output_index":0,"delta":"{}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws","status":"completed"}}`, `{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, done), `reasoning "" [openai {"type":"web_search_call","id":"ws","status":"completed"}]; text "hi"; stop` + used},

		{"cut by length", `{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\""}]}`, `call a f {"x"; length`},
		{"cut by a filter", events(`{"type":"response.output_text.delta","output_index":0,"delta":"h"}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}}`), `text "h"; content_filter`},
		{"a text that is not complete in a response that is", response(`{"type":"message","status":"incomplete","content":[{"type":"output_text","text":"h"}]}`), `text "h"; length`},
		{"details of a response that is complete", `{"id":"r","status":"completed","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`, `call a f {}; length`},
		{"details without a meaning", `{"id":"r","status":"completed","incomplete_details":{"reason":"none"},"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`, `call a f {}; tool_calls`},
		{"an event that says incomplete", events(`{"type":"response.output_text.delta","output_index":0,"delta":"h"}`, `{"type":"response.incomplete","response":{"status":"completed","output":[]}}`), `text "h"; length`},
		{"a text that is not complete in a stream", events(`{"type":"response.output_text.delta","output_index":0,"delta":"h"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","status":"incomplete","content":[{"type":"output_text","text":"h"}]}}`, done), `text "h"; length` + used},
		{"a refusal", response(`{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`), `text "no"; content_filter`},
		{"a refusal in a stream", events(`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, `{"type":"response.refusal.done","output_index":0,"refusal":"no"}`, done), `text "no"; content_filter` + used},
		{"several texts in a message", response(`{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`), `text "a"; text "b"; stop`},
		{"several texts in a streamed message", events(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}`, `{"type":"response.output_text.delta","output_index":0,"content_index":1,"delta":"b"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message"}}`, done), `text "a"; text "b"; stop` + used},
		{"items without fragments", events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}}`, done), `text "hi"; call a f {"x":1}; tool_calls` + used},
		{"only the whole response in a stream", events(`{"type":"response.completed","response":` + response(`{"type":"message","content":[{"type":"output_text","text":"hi"}]}`) + `}`), `text "hi"; stop`},
		{"members in another order", events(`{"response":{"status":"in_progress"},"type":"response.created"}`, `{"delta":"hi","output_index":0,"type":"response.output_text.delta"}`, `{"response":{"output":[],"status":"completed"},"type":"response.completed"}`), `text "hi"; stop`},

		{"a lost fragment of arguments", numbered(without(4)...), lost + `the arguments of the call "a" differ from their fragments`},
		{"a fragment of arguments, twice, without numbers", events(unnumbered(doubled(4))...), lost + `the arguments of the call "a" differ from their fragments`},
		{"every event twice", numbered(doubled(0, 1, 2, 3, 4, 5, 6, 7, 8)...), `text "hi"; call a f {"x":1}; tool_calls; in 3 out 4`},
		{"a call begins twice, without numbers", events(unnumbered(doubled(3))...), `text "hi"; call a f {"x":1}; tool_calls; in 3 out 4`},
		{"a call ends twice, without numbers", events(unnumbered(doubled(7))...), `text "hi"; call a f {"x":1}; tool_calls; in 3 out 4`},
		{"no beginning of a call", numbered(without(3)...), `text "hi"; call a f {"x":1}; tool_calls; in 3 out 4`},
		{"no arguments in one piece", numbered(without(6)...), `text "hi"; call a f {"x":1}; tool_calls; in 3 out 4`},
		{"a lost fragment of text", numbered(without(1)...), `text "hi"; call a f {"x":1}; tool_calls; in 3 out 4`},
		{"no end of the text, and another text in the output", strings.ReplaceAll(numbered(without(2)...), `"output_text","text":"hi"`, `"output_text","text":"hi there"`), lost + `item 0 of the response differs from its events`},
		{"a gap, and no output", strings.ReplaceAll(numbered(without(2)...), `"output":[`, `"put":[`), lost + `the numbers of the events have a gap`},
		{"a cut call is not compared", strings.ReplaceAll(strings.ReplaceAll(events(unnumbered(without(6))...), `"status":"completed"`, `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), `"arguments":"{\"x\":1}"}],`, `"arguments":""}],`), `text "hi"; call a f {"x":1}; length; in 3 out 4`},
		{"events out of order", numbered(conversation[0], conversation[1]) + numbered(conversation[0]), lost + `event 0 came after event 1`},

		{"a stream that was cut", events(`{"type":"response.output_text.delta","output_index":0,"delta":"h"}`), `error stream retryable: the stream ended before the response was completed`},
		{"[DONE] is no end", events(`{"type":"response.output_text.delta","output_index":0,"delta":"h"}`, "[DONE]"), `error stream retryable: the stream ended before the response was completed`},
		{"an error event", events(`{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}`), `error rate_limit retryable: slow down`},
		{"an error event with an object", events(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}`), `error context_length: too long`},
		{"a failed response", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"sorry"},"output":[]}}`), `error server retryable: sorry`},
		{"a failed response, whole", `{"status":"failed","error":{"code":"server_error","message":"sorry"},"output":[]}`, `error server retryable: sorry`},
		{"a cancelled response", `{"status":"cancelled","error":null,"output":[]}`, `error server: the response has the status "cancelled"`},
		{"no JSON in an event", events(`oops`), `error stream retryable: an event is not a JSON object: oops`},
		{"nothing", ``, `error stream retryable: the stream ended before the response was completed`},
	} {
		for _, sse := range []bool{false, true} {
			if got := outcome(openai.DecodeResponses(200, sse, []byte(c.body))); got != c.want {
				t.Errorf("%s (sse %v):\n got %s\nwant %s\nbody %s", c.name, sse, got, c.want, c.body)
			}
		}
	}
}

// lost begins the error of a stream whose statements differ.
const lost = `error stream_inconsistent retryable: parts of the stream were lost or repeated: `

// conversation is the events of a stream that states everything twice.
var conversation = []string{
	`{"type":"response.output_item.added",#"output_index":0,"item":{"type":"message"}}`,
	`{"type":"response.output_text.delta",#"output_index":0,"content_index":0,"delta":"hi"}`,
	`{"type":"response.output_text.done",#"output_index":0,"content_index":0,"text":"hi"}`,
	`{"type":"response.output_item.added",#"output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`,
	`{"type":"response.function_call_arguments.delta",#"output_index":1,"delta":"{\"x\":"}`,
	`{"type":"response.function_call_arguments.delta",#"output_index":1,"delta":"1}"}`,
	`{"type":"response.function_call_arguments.done",#"output_index":1,"arguments":"{\"x\":1}"}`,
	`{"type":"response.output_item.done",#"output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}}`,
	`{"type":"response.completed",#"response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}],"usage":{"input_tokens":3,"output_tokens":4}}}`,
}

// numbered makes a stream of events of conversation, each with its number.
func numbered(evs ...string) string {
	var out []string
	for _, ev := range evs {
		n := strconv.Itoa(slices.Index(conversation, ev))
		out = append(out, strings.Replace(ev, "#", `"sequence_number":`+n+`,`, 1))
	}
	return events(out...)
}

// without returns conversation without an event.
func without(i int) []string { return slices.Delete(slices.Clone(conversation), i, i+1) }

// unnumbered returns events without numbers.
func unnumbered(evs []string) (out []string) {
	for _, ev := range evs {
		out = append(out, strings.Replace(ev, "#", "", 1))
	}
	return out
}

// doubled returns conversation with some events twice.
func doubled(which ...int) (out []string) {
	for i, ev := range conversation {
		out = append(out, ev)
		if slices.Contains(which, i) {
			out = append(out, ev)
		}
	}
	return out
}

func TestResponsesRequests(t *testing.T) {
	half, no := 0.5, false
	call := llm.ToolCall{ID: "a", Name: "f", Args: []byte(`{"x":1}`)}
	own := func(data string) *llm.Opaque { return &llm.Opaque{Provider: "openai", Data: []byte(data)} }
	const start = `{"model":"m","input":[{"type":"message","role":"user","content":"go"}]`
	const tools = `,"tools":[{"type":"function","name":"f","description":"Does f.","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},"strict":false}]`
	f := tool("f")
	with := func(change func(*llm.Request)) *llm.Request {
		r := user("go")
		r.Whole = true
		change(r)
		return r
	}
	messages := func(ms ...llm.Message) *llm.Request { return &llm.Request{Model: "m", Messages: ms, Whole: true} }
	for _, c := range []struct {
		name string
		req  *llm.Request
		want string
	}{
		{"plain", with(func(r *llm.Request) {}), start + `,"store":false}`},
		{"streamed", with(func(r *llm.Request) { r.Whole = false }), start + `,"store":false,"stream":true}`},
		{"a model that reasons", with(func(r *llm.Request) { r.Model = "gpt-5-mini" }), `,"store":false,"include":["reasoning.encrypted_content"]}`},
		{"a model that does not", with(func(r *llm.Request) { r.Model = "gpt-4o" }), `,"store":false}`},
		{"tools, auto", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f} }), start + tools + `,"tool_choice":"auto","store":false}`},
		{"none keeps the tools", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice.Mode = llm.ToolNone }), start + tools + `,"tool_choice":"none","store":false}`},
		{"required", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice.Mode = llm.ToolRequired }), `"tool_choice":"required"`},
		{"named", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice = llm.Named("f") }), `"tool_choice":{"type":"function","name":"f"},`},
		{"a named subset", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f, tool("g")}; r.Choice = llm.Named("f", "g") }), `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]}`},
		{"named, not offered", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice = llm.Named("h") }), `error invalid_request: tool choice: no tool "h" is offered; offered: f`},
		{"no choice without tools", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolRequired; r.Settings.Parallel = &no }), start + `,"store":false}`},
		{"settings", with(func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{f}
			r.Settings = llm.Settings{MaxTokens: 99, Temperature: &half, TopP: &half, Effort: "low", Parallel: &no}
		}), start + tools + `,"tool_choice":"auto","max_output_tokens":99,"temperature":0.5,"top_p":0.5,"parallel_tool_calls":false,"reasoning":{"effort":"low"},"store":false,"include":["reasoning.encrypted_content"]}`},
		{"stop is refused", with(func(r *llm.Request) { r.Settings.StopSequences = []string{"x"} }), `error unsupported: settings.stop: the Responses API has no stop sequences; openai-chat has them`},
		{"options", with(func(r *llm.Request) {
			r.Settings.Options = map[string]json.RawMessage{"openai": json.RawMessage(`{"store":true,"metadata":{}}`), "other": json.RawMessage(`{"x":1}`)}
		}), start + `,"store":true,"metadata":{}}`},
		{"options that are no object", with(func(r *llm.Request) {
			r.Settings.Options = map[string]json.RawMessage{"openai": json.RawMessage(`[1]`)}
		}), `error invalid_request: settings.options.openai: not a JSON object`},
		{"output", with(func(r *llm.Request) { r.Output = []byte(`{"type":"object"}`) }), start + `,"text":{"format":{"type":"json_schema","name":"output","strict":false,"schema":{"type":"object","properties":{}}}},"store":false}`},
		{"instructions and roles", messages(llm.System("s"), llm.System("t"), llm.User("u"), llm.System("later"),
			llm.Message{Role: llm.RoleDeveloper, Parts: []llm.Part{llm.Text{Text: "d"}}}, llm.Assistant(llm.Text{Text: "a"})),
			`{"model":"m","instructions":"s\n\nt","input":[{"type":"message","role":"user","content":"u"},{"type":"message","role":"system","content":"later"},{"type":"message","role":"developer","content":"d"},{"type":"message","role":"assistant","content":"a"}],"store":false}`},
		{"reasoning, text, calls and results in order", messages(llm.User("u"), llm.Assistant(
			llm.Reasoning{Text: "hm", Opaque: own(`{"type":"reasoning","id":"rs_1","summary":[ ],"encrypted_content":"x"}`)},
			llm.Text{Text: "wait", Opaque: own(`{"phase":"commentary"}`)}, call,
			llm.ToolCall{ID: "b", Name: "g", Args: []byte("{}"), Opaque: own(`{"namespace":"n"}`)}),
			llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "42"}}},
				llm.ToolResult{CallID: "b", Parts: []llm.Part{llm.Text{Text: "no"}}, IsError: true})),
			`,{"type":"reasoning","id":"rs_1","summary":[ ],"encrypted_content":"x"},{"type":"message","role":"assistant","content":"wait","phase":"commentary"},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"},{"type":"function_call","call_id":"b","name":"g","arguments":"{}","namespace":"n"},{"type":"function_call_output","call_id":"a","output":"42"},{"type":"function_call_output","call_id":"b","output":"Error: no"}],`},
		{"a call by a program", messages(llm.Assistant(llm.Reasoning{Opaque: own(`{"type":"program","call_id":"p","code":"x"}`)},
			llm.ToolCall{ID: "a", Name: "f", Args: []byte("{}"), Opaque: own(`{"caller":{"type":"program","caller_id":"p"}}`)}),
			llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "42"}}})),
			`[{"type":"program","call_id":"p","code":"x"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}","caller":{"type":"program","caller_id":"p"}},{"type":"function_call_output","call_id":"a","caller":{"type":"program","caller_id":"p"},"output":"42"}],`},
		{"others' reasoning stays away", messages(
			llm.Assistant(llm.Reasoning{Text: "hm",
				Opaque: &llm.Opaque{Provider: "anthropic", Data: []byte(`{"signature":"x"}`)}}, llm.Reasoning{Text: "hm"}, llm.Text{Text: "a"})),
			`{"model":"m","input":[{"type":"message","role":"assistant","content":"a"}],"store":false}`},
		{"reasoning without what it led to stays away", messages(llm.Assistant(llm.Text{Text: "a"}, llm.Reasoning{Opaque: own(`{"type":"reasoning","encrypted_content":"x"}`)})),
			`{"model":"m","input":[{"type":"message","role":"assistant","content":"a"}],"store":false}`},
		{"reasoning that nobody kept stays away", messages(llm.Assistant(llm.Reasoning{Opaque: own(`{"type":"reasoning","id":"rs_1","summary":[]}`)}, llm.Text{Text: "a"})),
			`{"model":"m","input":[{"type":"message","role":"assistant","content":"a"}],"store":false}`},
		{"the server's own items go back", messages(llm.Assistant(llm.Reasoning{Opaque: own(`{"type":"web_search_call","id":"ws"}`)}, llm.Reasoning{Opaque: own(`{"type":"mcp_call","id":"m"}`)})),
			`{"model":"m","input":[{"type":"web_search_call","id":"ws"},{"type":"mcp_call","id":"m"}],"store":false}`},
		{"results of calls that are no functions", messages(
			llm.Assistant(llm.ToolCall{ID: "a", Name: "sql", Args: []byte("x"),
				Opaque: own(`{"type":"custom_tool_call","call_id":"a"}`)}, llm.ToolCall{ID: "b", Name: "apply_patch_call", Opaque: own(`{"type":"apply_patch_call","call_id":"b"}`)}, llm.ToolCall{ID: "c", Name: "shell_call", Opaque: own(`{"type":"shell_call","call_id":"c"}`)}),
			llm.Results(llm.ToolResult{CallID: "a"}, llm.ToolResult{CallID: "b", IsError: true},
				llm.ToolResult{CallID: "c", Parts: []llm.Part{llm.Text{Text: "out"}}})),
			`[{"type":"custom_tool_call","call_id":"a"},{"type":"apply_patch_call","call_id":"b"},{"type":"shell_call","call_id":"c"},{"type":"custom_tool_call_output","call_id":"a","output":""},{"type":"apply_patch_call_output","call_id":"b","status":"failed","output":"Error"},{"type":"shell_call_output","call_id":"c","output":[{"stdout":"out","stderr":"","outcome":{"type":"exit","exit_code":0}}]}]`},
		{"media", messages(llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Text{Text: "see"}, llm.Media{MIME: "image/png", Data: []byte("abc")},
				llm.Media{MIME: "application/pdf", Data: []byte("abc")}, llm.Media{MIME: "application/pdf", URL: "https://x"}}}),
			`"content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,YWJj"},{"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,YWJj"},{"type":"input_file","file_url":"https://x"}]`},
		{"an image in a result", messages(llm.Results(
			llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "here"}, llm.Media{MIME: "image/png", URL: "https://x"}}})),
			`{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"here"},{"type":"input_image","image_url":"https://x"}]}`},
		{"sound is refused", messages(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Media{MIME: "audio/wav", Data: []byte("abc")}}}), `error unsupported: messages[0].parts[0]: the Responses API cannot take media of type "audio/wav"`},
	} {
		checkEncode(t, c.name, openai.EncodeResponses, c.req, c.want)
	}
}
