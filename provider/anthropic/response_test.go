package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// Each reply is read whole and as a stream, with the same outcome.
func TestReplies(t *testing.T) {
	sig := `"signature":"sIg=="`
	search := `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"u"}]}`
	for _, c := range []struct {
		name   string
		reason string
		blocks []string // whole
		events []string // the same as events; nil means that each block is whole in its start
		want   string
	}{
		{"text", "end_turn", []string{`{"type":"text","text":"Hello\n"}`},
			[]string{opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"Hel"}`), adds(0, `{"type":"text_delta","text":"lo\n"}`), closes(0)},
			`text "Hello\n"; stop`},
		{"a call", "tool_use", []string{`{"type":"text","text":"I look."}`, `{"type":"tool_use","id":"toolu_1","name":"f","input":{"x": 1}}`},
			[]string{opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"I look."}`), closes(0),
				opens(1, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`), adds(1, `{"type":"input_json_delta","partial_json":""}`),
				adds(1, `{"type":"input_json_delta","partial_json":"{\"x\":"}`), adds(1, `{"type":"input_json_delta","partial_json":" 1}"}`), closes(1)},
			`text "I look."; call toolu_1 f {"x": 1}; tool_calls`},
		{"a call of which everything came at once", "tool_use", []string{`{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}`}, nil, `call toolu_1 f {"x":1}; tool_calls`},
		{"two calls", "tool_use", []string{`{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","id":"b","name":"g","input":{}}`}, nil,
			`call a f {}; call b g {}; tool_calls`},
		{"calls decide", "end_turn", []string{`{"type":"tool_use","id":"a","name":"f","input":{}}`}, nil, `call a f {}; tool_calls`},
		{"thinking", "end_turn", []string{`{"type":"thinking","thinking":"Hm. \"So\"",` + sig + `}`, `{"type":"redacted_thinking","data":"x/y+"}`, `{"type":"text","text":"Yes."}`},
			[]string{opens(0, `{"type":"thinking","thinking":"","signature":""}`), adds(0, `{"type":"thinking_delta","thinking":"Hm. "}`), adds(0, `{"type":"thinking_delta","thinking":"\"So\""}`),
				adds(0, `{"type":"signature_delta",`+sig+`}`), closes(0), opens(1, `{"type":"redacted_thinking","data":"x/y+"}`), closes(1),
				opens(2, `{"type":"text","text":""}`), adds(2, `{"type":"text_delta","text":"Yes."}`), closes(2)},
			`reasoning "Hm. \"So\"" [anthropic {"type":"thinking","thinking":"Hm. \"So\"","signature":"sIg=="}]; reasoning "" [anthropic {"type":"redacted_thinking","data":"x/y+"}]; text "Yes."; stop`},
		{"thinking that was cut is not signed", "max_tokens", []string{`{"type":"thinking","thinking":"Hm."}`},
			[]string{opens(0, `{"type":"thinking","thinking":""}`), adds(0, `{"type":"thinking_delta","thinking":"Hm."}`), closes(0)}, `reasoning "Hm."; length`},
		{"tools of the server's", "end_turn", []string{`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}`, search, `{"type":"text","text":"So.","citations":[{"url":"u"},{"url":"v"}]}`},
			[]string{opens(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":"{\"query\":"}`), adds(0, `{"type":"input_json_delta","partial_json":"\"q\"}"}`), closes(0),
				opens(1, search), closes(1), opens(2, `{"type":"text","text":"","citations":[]}`), adds(2, `{"type":"citations_delta","citation":{"url":"u"}}`), adds(2, `{"type":"text_delta","text":"So."}`),
				adds(2, `{"type":"citations_delta","citation":{"url":"v"}}`), closes(2)},
			`reasoning "" [anthropic {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}]; reasoning "" [anthropic ` + search + `]; ` +
				`text "So." [anthropic {"citations":[{"url":"u"},{"url":"v"}]}]; stop`},
		{"MCP", "end_turn", []string{`{"type":"mcp_tool_use","id":"m","name":"n","server_name":"s","input":{}}`, `{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[]}`}, nil,
			`reasoning "" [anthropic {"type":"mcp_tool_use","id":"m","name":"n","server_name":"s","input":{}}]; reasoning "" [anthropic {"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[]}]; stop`},
		{"a call that code waits for", "tool_use", []string{`{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"s"}}`}, nil,
			`call a f {} [anthropic {"caller":{"type":"code_execution_20250825","tool_id":"s"}}]; tool_calls`},
		{"a call whose result code has", "end_turn", []string{`{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code_execution_20250825"}}`, `{"type":"text","text":"Done."}`}, nil,
			`reasoning "" [anthropic {"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code_execution_20250825"}}]; text "Done."; stop`},
		{"nothing", "end_turn", nil, nil, `stop`},
		{"cut", "max_tokens", []string{`{"type":"text","text":"A"}`}, nil, `text "A"; length`},
		{"a full window", "model_context_window_exceeded", []string{`{"type":"text","text":"A"}`}, nil, `text "A"; length`},
		{"refused", "refusal", []string{`{"type":"text","text":"A"}`}, nil, `text "A"; content_filter`},
		{"a stop sequence", "stop_sequence", []string{`{"type":"text","text":"A"}`}, nil, `text "A"; stop`},
		{"paused, and nobody to go on", "pause_turn", []string{`{"type":"text","text":"A"}`}, nil, `text "A"; other`},
		{"a reason of tomorrow", "bored", []string{`{"type":"text","text":"A"}`}, nil, `text "A"; length`},
	} {
		want := c.want + used
		if got := outcome(anthropic.DecodeMessages(200, false, []byte(whole(c.reason, c.blocks...)))); got != want {
			t.Errorf("%s, whole:\n got %s\nwant %s", c.name, got, want)
		}
		if c.events == nil {
			for i, b := range c.blocks {
				c.events = append(c.events, opens(i, b), closes(i))
			}
		}
		body := stream(c.reason, c.events...)
		if got := outcome(anthropic.DecodeMessages(200, true, []byte(body))); got != want {
			t.Errorf("%s, streamed:\n got %s\nwant %s", c.name, got, want)
		}
		// A whole body is read as such also if a stream was requested, and a stream also if a whole
		// body was requested.
		if got := outcome(anthropic.DecodeMessages(200, false, []byte(body))); got != want {
			t.Errorf("%s, streamed unasked:\n got %s\nwant %s", c.name, got, want)
		}
		crlf := strings.ReplaceAll(body, "\n", "\r\n")
		if got := outcome(anthropic.DecodeMessages(200, true, []byte(crlf))); got != want {
			t.Errorf("%s, with CRLF:\n got %s\nwant %s", c.name, got, want)
		}
	}
}

// A reply is sent back unchanged within the next request.
func TestRoundTrip(t *testing.T) {
	blocks := []string{
		`{"type":"thinking","thinking":"Hm.","signature":"sIg=="}`, `{"type":"redacted_thinking","data":"x"}`,
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query": "q"}}`, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
		`{"type":"text","text":"So.","citations":[{"url":"u"}]}`,
		`{"type":"tool_use","id":"toolu_1","name":"f","input":{"x": 1},"caller":{"type":"code_execution_20250825","tool_id":"s"}}`,
	}
	body := strings.Replace(whole("tool_use", blocks...), `"stop_sequence"`, `"container":{"id":"container_1","expires_at":"x"},"stop_sequence"`, 1)
	res, err := anthropic.DecodeMessages(200, false, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	got := unmarked(encode(t, &llm.Request{Model: "claude", Whole: true,
		Messages: []llm.Message{llm.User("a"), res.Message, llm.Results(llm.ToolResult{CallID: "toolu_1"})}}))
	want := `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":""}]}]`
	if !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if !strings.Contains(got, `"container":"container_1"`) {
		t.Errorf("the container is not sent again: %s", got)
	}
}

// A stream cut at any byte gives a retryable error or the whole reply, and no call that the whole
// reply does not have.
func TestCutStreams(t *testing.T) {
	body := stream("tool_use", opens(0, `{"type":"thinking","thinking":""}`), adds(0, `{"type":"thinking_delta","thinking":"Hm."}`), adds(0, `{"type":"signature_delta","signature":"s"}`), closes(0),
		`{"type":"ping"}`, opens(1, `{"type":"server_tool_use","id":"s","name":"n","input":{}}`), adds(1, `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`), closes(1),
		opens(2, `{"type":"tool_use","id":"t","name":"f","input":{}}`), adds(2, `{"type":"input_json_delta","partial_json":"{\"x\":"}`), adds(2, `{"type":"input_json_delta","partial_json":"1}"}`), closes(2))
	want := outcome(anthropic.DecodeMessages(200, true, []byte(body)))
	if !strings.HasPrefix(want, "reasoning") {
		t.Fatal(want)
	}
	whole := 0
	for i := range body {
		got := outcome(anthropic.DecodeMessages(200, true, []byte(body[:i])))
		if got == want {
			whole++
		} else if !strings.HasPrefix(got, "error stream retryable: ") {
			t.Errorf("cut at %d: %s", i, got)
		}
	}
	if whole == 0 || whole > 60 {
		t.Errorf("%d cuts gave the whole reply", whole)
	}
}

func TestFailures(t *testing.T) {
	anth := func(typ, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"r"}`, typ, message)
	}
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{529, anth("overloaded_error", "Overloaded"), "error overloaded 529 retryable: Overloaded"},
		{500, anth("api_error", "Internal server error"), "error server 500 retryable: Internal server error"},
		{429, anth("rate_limit_error", "slow down"), "error rate_limit 429 retryable: slow down"},
		{504, anth("timeout_error", "late"), "error timeout 504 retryable: late"},
		{400, anth("invalid_request_error", "messages: field required"), "error invalid_request 400: messages: field required"},
		{400, `{"message":"The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length."}`,
			"error context_length 400: The model returned the following errors: Input Tokens Exceeded"},
		{400, anth("invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"), "error context_length 400: prompt is too long"},
		{400, anth("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2"), "error context_length 400: input length"},
		{400, anth("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), "error quota 400: Your credit"},
		{400, anth("invalid_request_error", "Output blocked by content filtering policy"), "error content_filter 400: "},
		{401, anth("authentication_error", "invalid x-api-key"), "error authentication 401: invalid"},
		{402, anth("billing_error", "pay"), "error quota 402: pay"},
		{403, anth("permission_error", "no"), "error permission 403: no"},
		{404, anth("not_found_error", "model: x"), "error not_found 404: model: x"},
		{413, anth("request_too_large", "big"), "error context_length 413: big"},
		{403, `{"message":"You don't have access to the model with the specified model ID."}`, "error permission 403: You don't have access"},
		{429, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]`, "error rate_limit 429 retryable: Quota exceeded"},
		{400, `{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}`, "error invalid_request 400: bad"},
		{502, "<html><body>Bad gateway</body></html>", "error server 502 retryable: <html>"},
		{503, "", "error overloaded 503 retryable: Service Unavailable"},
		{408, "", "error timeout 408 retryable: "},
		{301, "", "error not_found 301: the server answered with a redirect"},
		{200, anth("overloaded_error", "Overloaded"), "error overloaded retryable: Overloaded"},
		{200, `[{"error":{"code":503,"message":"later","status":"UNAVAILABLE"}}]`, "error overloaded 503 retryable: later"},
		{200, `{"input_tokens":5}`, "error stream retryable: the reply has no content"},
		{200, `{"type":"message","content":[`, "error stream retryable: "},
		{200, `<html>`, "error stream retryable: <html>; is the base URL right for the API?"},
		{200, ``, "error stream retryable: "},
	} {
		got := outcome(anthropic.DecodeMessages(c.status, false, []byte(c.body)))
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%d %s:\n got %s\nwant %s", c.status, c.body, got, c.want)
		}
	}
	for _, e := range []struct{ event, want string }{
		{anth("overloaded_error", "Overloaded"), "error overloaded retryable: Overloaded"},
		{anth("invalid_request_error", "bad"), "error invalid_request: bad"},
		{anth("api_error", "oops"), "error server retryable: oops"},
		{`{"type":"error","message":"plain"}`, "error server retryable: plain"},
		{`{"type":"content_block_delta","index":0,`, "error stream retryable: an event of the reply cannot be read"},
		{`no JSON`, "error stream retryable: an event is not a JSON object: no JSON"},
	} {
		body := events(begin, opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"a"}`), e.event)
		if got := outcome(anthropic.DecodeMessages(200, true, []byte(body))); !strings.HasPrefix(got, e.want) {
			t.Errorf("%s in a stream:\n got %s\nwant %s", e.event, got, e.want)
		}
	}
}
