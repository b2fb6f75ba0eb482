package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// quirks are behaviours of servers beyond or against the documentation, each with a stream or a
// body that shows it. The numbers continue the list of provider/openai.
var quirks = []struct {
	servers, pawl string
	cases         []quirk
}{
	{"begin a call with an empty fragment, or send none at all", "arguments {} if none arrived", []quirk{
		{"an empty fragment first", stream("tool_use", opens(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":""}`), adds(0, `{"type":"input_json_delta","partial_json":"{\"x\":1}"}`), closes(0)), `call a f {"x":1}; tool_calls` + used},
		{"an empty fragment alone", stream("tool_use", opens(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":""}`), closes(0)), `call a f {}; tool_calls` + used},
		{"no fragment", stream("tool_use", opens(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), closes(0)), `call a f {}; tool_calls` + used},
	}},
	{"pad events with spaces before the last brace", "white space is skipped", []quirk{
		{"padding", strings.ReplaceAll(stream("end_turn", opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"A"}`), closes(0)), "}\n\n", "      }\n\n"), `text "A"; stop` + used},
	}},
	{"ping inside an open block", "skipped; it counts as a sign of life", []quirk{
		{"a ping in a block", stream("end_turn", opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"A"}`), `{"type": "ping"}`, adds(0, `{"type":"text_delta","text":"B"}`), closes(0)), `text "AB"; stop` + used},
	}},
	{"sign thinking in an event of its own, show none of it, or hand it out encrypted", "Reasoning with the block in Opaque, sent back unchanged in its place", []quirk{
		{"a signature without text", stream("end_turn", opens(0, `{"type":"thinking","thinking":"","signature":""}`), adds(0, `{"type":"signature_delta","signature":"s=="}`), closes(0)), `reasoning "" [anthropic {"type":"thinking","thinking":"","signature":"s=="}]; stop` + used},
		{"redacted", stream("end_turn", opens(0, `{"type":"redacted_thinking","data":"x/y+z=="}`), closes(0)), `reasoning "" [anthropic {"type":"redacted_thinking","data":"x/y+z=="}]; stop` + used},
	}},
	{"write text before a call", "text, then the call", []quirk{
		{"text and a call", whole("tool_use", `{"type":"text","text":"I look."}`, `{"type":"tool_use","id":"a","name":"f","input":{"x":1}}`), `text "I look."; call a f {"x":1}; tool_calls` + used},
	}},
	{"send an empty answer", "an empty reply, finish stop; it is left out of the next request", []quirk{
		{"no content", whole("end_turn"), `stop` + used},
		{"no block in a stream", stream("end_turn"), `stop` + used},
	}},
	{"pause a long turn, with more input than it began with", "the adapter continues it; the later figures are totals", []quirk{
		{"pause_turn", events(begin, `{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"input_tokens":404500,"output_tokens":943}}`, stop), `other; in 404505 out 943 read 3 write 2`},
	}},
	{"refuse with part of an answer, or none", "finish content_filter, and a notice with the explanation", []quirk{
		{"part of an answer", stream("refusal", opens(0, `{"type":"text","text":"A"}`), closes(0)), `text "A"; content_filter` + used},
		{"nothing", whole("refusal"), `content_filter` + used},
	}},
	{"put blocks of their own tools between text and calls", "stored in their place and sent back, never executed", []quirk{
		{"a search before a call", whole("tool_use", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`, `{"type":"tool_use","id":"a","name":"f","input":{}}`),
			`reasoning "" [anthropic {"type":"server_tool_use","id":"s","name":"web_search","input":{}}]; reasoning "" [anthropic {"type":"web_search_tool_result","tool_use_id":"s","content":[]}]; call a f {}; tool_calls` + used},
		{"no input at all", stream("end_turn", opens(0, `{"type":"server_tool_use","id":"s","name":"advisor","input":{}}`), closes(0)), `reasoning "" [anthropic {"type":"server_tool_use","id":"s","name":"advisor","input":{}}]; stop` + used},
	}},
	{"name the caller of a call, and list calls that code made and completed", "calls, unless code made them and the turn has ended: then they are stored and sent back", []quirk{
		{"the model", whole("tool_use", `{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"direct"}}`), `call a f {}; tool_calls` + used},
		{"code that waits", stream("tool_use", opens(0, `{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code","tool_id":"s"}}`), adds(0, `{"type":"input_json_delta","partial_json":"{\"x\":1}"}`), closes(0)), `call a f {"x":1} [anthropic {"caller":{"type":"code","tool_id":"s"}}]; tool_calls` + used},
		{"code that has its result", whole("end_turn", `{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code"}}`, `{"type":"text","text":"B"}`), `reasoning "" [anthropic {"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code"}}]; text "B"; stop` + used},
	}},
	{"begin a message with calls while code waits for them, and end it at once", "the calls, with the container", []quirk{
		{"calls in message_start", events(waiting, stop), `call a f {"x":1} [anthropic {"caller":{"type":"code_execution_20260120","tool_id":"s"}}]; call b g {} [anthropic {"caller":{"type":"code_execution_20260120","tool_id":"s"}}]; reasoning "" [anthropic {"container":"c_1"}]; tool_calls; in 10 out 4`},
		{"the event twice", events(waiting, waiting, stop), `call a f {"x":1} [anthropic {"caller":{"type":"code_execution_20260120","tool_id":"s"}}]; call b g {} [anthropic {"caller":{"type":"code_execution_20260120","tool_id":"s"}}]; reasoning "" [anthropic {"container":"c_1"}]; tool_calls; in 10 out 4`},
		{"the reason later", events(strings.Replace(waiting, `"stop_reason":"tool_use"`, `"stop_reason":null`, 1), ends("tool_use"), stop), `call a f {"x":1} [anthropic {"caller":{"type":"code_execution_20260120","tool_id":"s"}}]; call b g {} [anthropic {"caller":{"type":"code_execution_20260120","tool_id":"s"}}]; reasoning "" [anthropic {"container":"c_1"}]; tool_calls; in 10 out 7`},
	}},
	{"lose events on the way to the client", "an error, if the events show it; [anthropic-wire.md](anthropic-wire.md) counts the others", []quirk{
		{"no call for the reason", stream("tool_use", opens(0, `{"type":"text","text":"A"}`), closes(0)), `error malformed_reply retryable: the finish reason announces calls, and the reply has none`},
		{"no call for the reason, whole", whole("tool_use", `{"type":"text","text":"A"}`), `error malformed_reply retryable: the finish reason announces calls, and the reply has none`},
		{"no beginning of a block", stream("tool_use", opens(0, call), closes(0), closes(1)), inconsistent + `block 1 ended, and had not begun`},
		{"a block between others", stream("tool_use", opens(0, call), closes(0), opens(2, `{"type":"text","text":"A"}`), closes(2)), inconsistent + `block 2 came after block 0`},
		{"no end of a call", stream("tool_use", opens(0, `{"type":"text","text":"A"}`), closes(0), opens(1, call)), inconsistent + `block 1 has a call, and did not end`},
		{"no reason", events(begin, opens(0, call), closes(0), stop), inconsistent + `the reply has calls, and no stop reason`},
		{"two beginnings that differ", events(waiting, strings.Replace(waiting, `{"x":1}`, `{"x":2}`, 1), stop), inconsistent + `the message began twice, with other content`},
		{"two calls with one id", stream("tool_use", opens(0, call), closes(0), opens(1, `{"type":"tool_use","id":"a","name":"g","input":{}}`), closes(1)), inconsistent + `two calls have the id "a"`},
	}},
	{"name the container that executed code", "sent with the next request", []quirk{
		{"a container", events(begin, `{"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c_1","expires_at":"x"}},"usage":{"output_tokens":7},"context_management":{"applied_edits":[]}}`, stop), `reasoning "" [anthropic {"container":"c_1"}]; stop` + used},
	}},
	{"begin a message a second time in one stream", "the first message is dropped; a consumer that has received a part of it gets a retryable error", []quirk{
		{"begun again", events(begin, opens(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":"{"}`), begin, opens(0, `{"type":"text","text":"B"}`), closes(0), ends("end_turn"), stop), `text "B"; stop` + used},
	}},
	{"repeat the input's figures at the end", "the later ones are totals", []quirk{
		{"cumulative", events(begin, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7}}`, stop), `stop` + used},
	}},
	{"speak the API on Vertex AI, and, in frames of its own, on Bedrock", "Vertex AI: by its address; Bedrock's frames are not read", []quirk{
		{"an unknown event", stream("end_turn", `{"type":"vertex_event"}`, opens(0, `{"type":"text","text":"A"}`), closes(0)), `text "A"; stop` + used},
		{"an error of a cloud", `[{"error":{"code":429,"message":"later","status":"RESOURCE_EXHAUSTED"}}]`, `error rate_limit 429 retryable: later`},
	}},
	{"state the tokens of a compaction or of an advisor only in `iterations`", "Usage is the sum of the iterations, without the tokens of an advisor, which is another model with another price; Usage.Raw has all figures", []quirk{
		{"a compaction", strings.Replace(whole("end_turn", `{"type":"text","text":"A"}`), `"output_tokens":7`,
			`"iterations":[{"type":"compaction","input_tokens":900,"output_tokens":81,"cache_read_input_tokens":50,"cache_creation_input_tokens":0},{"type":"message","input_tokens":10,"output_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2}],"output_tokens":7`, 1),
			`text "A"; stop; in 965 out 88 read 53 write 2`},
		{"a compaction, streamed", events(begin, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":6,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":7,"iterations":[{"type":"compaction","input_tokens":900,"output_tokens":81,"cache_read_input_tokens":0},{"type":"message","input_tokens":6,"output_tokens":7}]}}`, stop),
			`stop; in 906 out 88`},
		{"an advisor", strings.Replace(whole("end_turn", `{"type":"text","text":"A"}`), `"output_tokens":7`,
			`"iterations":[{"type":"message","input_tokens":4,"output_tokens":3},{"type":"advisor_message","model":"opus","input_tokens":900,"output_tokens":81},{"type":"message","input_tokens":6,"output_tokens":4,"cache_read_input_tokens":3,"cache_creation_input_tokens":2}],"output_tokens":7`, 1),
			`text "A"; stop` + used},
		{"the input became less, and the cache was not read", events(begin, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":6,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":7}}`, stop),
			`stop; in 6 out 7`},
	}},
}

const (
	call         = `{"type":"tool_use","id":"a","name":"f","input":{}}`
	waiting      = `{"type":"message_start","message":{"id":"msg_1","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1},"caller":{"type":"code_execution_20260120","tool_id":"s"}},{"type":"tool_use","id":"b","name":"g","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s"}}],"model":"claude","stop_reason":"tool_use","container":{"id":"c_1"},"usage":{"input_tokens":10,"output_tokens":4}}}`
	inconsistent = `error stream_inconsistent retryable: parts of the stream were lost or repeated: `
)

type quirk struct{ name, body, want string }

// firstQuirk is the number of the first line.
const firstQuirk = 58

// Every quirk is read as described, and docs/anthropic-quirks.md lists them.
func TestQuirks(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# What servers of the Messages API do

This page lists the behaviour of servers beyond the documentation, as seen in recorded traffic. Each row has the adapter's answer to
it, and the cases of TestQuirks in package ` + "`provider/anthropic`" + ` that show it. The test writes this page (` + "`go test ./provider/anthropic -run TestQuirks -update`" + `). The
numbers continue [openai-quirks.md](openai-quirks.md).

| | servers | pawl | shown by |
|---|---|---|---|
`)
	for i, q := range quirks {
		var names []string
		for _, c := range q.cases {
			names = append(names, c.name)
			sse := !strings.HasPrefix(c.body, "{") && !strings.HasPrefix(c.body, "[")
			if got := outcome(anthropic.DecodeMessages(200, sse, []byte(c.body))); got != c.want {
				t.Errorf("quirk %d: %s:\n got %s\nwant %s", firstQuirk+i, c.name, got, c.want)
			}
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", firstQuirk+i, q.servers, q.pawl, strings.Join(names, "; "))
	}
	wiretest.Page(t, "anthropic-quirks.md", b.String())
}
