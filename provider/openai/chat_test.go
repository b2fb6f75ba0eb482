package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// Each case is a behaviour of servers of this API, with its number in docs/openai-quirks.md.
func TestChatReplies(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
	}{
		{"a whole answer", whole("stop", `{"role":"assistant","content":"hi"}`), `text "hi"; stop`},
		{"a streamed answer", deltas("stop", `{"role":"assistant","content":""}`, `{"content":"h"}`, `{"content":"i"}`), `text "hi"; stop`},
		{"a whole call", whole("tool_calls", `{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`), `call a f {"x":1}; tool_calls`},
		{"a streamed call", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`), `call a f {"x":1}; tool_calls`},

		{"quirk 53: a wrapper, Chat Completions", whole("tool_calls", `{"tool_calls":[{"id":"p","function":{"name":"multi_tool_use.parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}},{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":2}}]}"}}]}`), `call p_0 f {"x":1}; call p_1 f {"x":2}; tool_calls`},
		{"quirk 53: a streamed wrapper, and a call after it", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"p","function":{"name":"multi_tool_use.parallel","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"tool_uses\":[{\"recipient_name\":\"fu"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"nctions.f\",\"parameters\":{\"x\":1}},{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":2}}]}"}}]}`, `{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `call p_0 f {"x":1}; call p_1 f {"x":2}; call a f {}; tool_calls`},
		{"quirk 53: a wrapper without an id", whole("tool_calls", `{"tool_calls":[{"function":{"name":"multi_tool_use.parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}},{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":2}}]}"}}]}`), `call call_0 f {"x":1}; call call_1 f {"x":2}; tool_calls`},
		{"quirk 53: a wrapper of nothing is a call", whole("tool_calls", `{"tool_calls":[{"id":"p","function":{"name":"multi_tool_use.parallel","arguments":"{}"}}]}`), `call p multi_tool_use.parallel {}; tool_calls`},
		{"quirk 53: a wrapper that was cut is no call inside it", deltas("length", `{"tool_calls":[{"index":0,"id":"p","function":{"name":"multi_tool_use.parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{\"x\":1}},{\"recipient"}}]}`), `call p multi_tool_use.parallel {"tool_uses":[{"recipient_name":"functions.f","parameters":{"x":1}},{"recipient; length`},

		{"quirk 1: no index and no type, all in one chunk", events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, "[DONE]"), `call a f {}; tool_calls; in 5 out 2`},
		{"quirk 1: no index, several calls, arguments in pieces", deltas("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}`, `{"tool_calls":[{"function":{"arguments":"{\"x\":1}"}}]}`, `{"tool_calls":[{"id":"b","function":{"name":"f","arguments":"{}"}}]}`), `call a f {"x":1}; call b f {}; tool_calls`},
		{"quirk 1: all calls have index 0", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]}`), `call a f {"x":1}; call b f {"x":2}; tool_calls`},
		{"quirk 1: no index and no id", deltas("tool_calls", `{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`), `call call_0 f {}; call call_1 f {}; tool_calls`},
		{"quirk 2: the first index is 1", deltas("tool_calls", `{"content":"go"}`, `{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":""}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`), `text "go"; call a f {}; tool_calls`},
		{"quirk 3: an empty id goes on", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\""}}]}`, `{"tool_calls":[{"index":0,"id":"","type":"function","function":{"arguments":":1}"}}]}`), `call a f {"x":1}; tool_calls`},
		{"quirk 4: an empty name goes on", deltas("tool_calls", `{"index":0,"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`, `{"index":0,"tool_calls":[{"index":0,"id":"a","function":{"name":"","arguments":":1}"}}]}`), `call a f {"x":1}; tool_calls`},
		{"quirk 5: role and content are repeated", deltas("tool_calls", `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, `{"role":"assistant","content":null,"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`), `call a f {}; tool_calls`},
		{"quirk 6: arguments null in a stream", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]}`), `call a f ; tool_calls`},
		{"quirk 6: arguments null or absent", whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":null}},{"id":"b","function":{"name":"f"}}]}`), `call a f ; call b f ; tool_calls`},
		{"quirk 7: a whole call in one delta", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`), `call a f {"x":1}; tool_calls`},
		{"quirk 8: parallel calls", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`, `{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}`), `call a f {}; call b g {}; tool_calls`},
		{"quirk 8: calls listed first, arguments later", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"{\"x\":2}"}}]}`), `call a f {"x":1}; call b g {"x":2}; tool_calls`},
		{"quirk 9: index in a whole reply, no type", whole("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}`), `call a f {}; call b f {}; tool_calls`},
		{"quirk 10: ids are opaque", whole("tool_calls", `{"tool_calls":[{"id":"functions.f:0","function":{"name":"f","arguments":"{}"}},{"id":"0","function":{"name":"f","arguments":"{}"}}]}`), `call functions.f:0 f {}; call 0 f {}; tool_calls`},
		{"quirk 11: an id that comes twice in a reply", whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"g","arguments":"{}"}}]}`), `error stream_inconsistent retryable: parts of the stream were lost or repeated: two calls have the id "a"`},
		{"quirk 11: a call that comes twice in a reply", whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `call a f {}; tool_calls`},
		{"quirk 11: a chunk with a whole call, twice", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`), `call a f {"x":1}; tool_calls`},
		{"calls are announced, and none comes", whole("tool_calls", `{"content":"I look."}`), `error malformed_reply retryable: the finish reason announces calls, and the reply has none`},
		{"calls are announced in a stream, and none comes", deltas("tool_calls", `{"content":"I look."}`), `error malformed_reply retryable: the finish reason announces calls, and the reply has none`},
		{"a call is missing", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":2,"id":"c","function":{"name":"f","arguments":"{}"}}]}`), `error stream_inconsistent retryable: parts of the stream were lost or repeated: call 2 came, and call 1 did not`},
		{"the beginning of a call is missing", deltas("tool_calls", `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`), `error stream_inconsistent retryable: parts of the stream were lost or repeated: arguments came for a call that had not begun`},
		{"[DONE] and a call without a finish reason", events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`, "[DONE]"), `error stream_inconsistent retryable: parts of the stream were lost or repeated: the reply has calls, and no finish reason`},
		{"quirk 12: tool_calls empty or null", deltas("stop", `{"content":"hi","tool_calls":[]}`, `{"tool_calls":null}`), `text "hi"; stop`},
		{"quirk 13: text with calls", whole("tool_calls", `{"content":"wait","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `text "wait"; call a f {}; tool_calls`},
		{"quirk 13: empty content with calls", whole("tool_calls", `{"content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `call a f {}; tool_calls`},
		{"quirk 14: calls that end in stop", whole("stop", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `call a f {}; tool_calls`},
		{"quirk 15: an empty finish reason, empty objects", whole("", `{"content":"hi","function_call":{"name":"","arguments":""},"audio":{},"refusal":""}`), `text "hi"; other`},
		{"quirk 16: function_call", whole("function_call", `{"content":null,"function_call":{"name":"f","arguments":"{\n  \"x\": 1\n}"}}`), "call call_0 f {\n  \"x\": 1\n}; tool_calls"},
		{"quirk 16: function_call in a stream", deltas("function_call", `{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{\"x\""}}`, `{"function_call":{"arguments":":1}"}}`), `call call_0 f {"x":1}; tool_calls`},
		{"quirk 17: no arguments", whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `call a f {}; tool_calls`},
		{"quirk 18: fragments split an escape of the arguments", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\\ud83"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"d\\ude00 é\"}"}}]}`), `call a f {"x":"\ud83d\ude00 é"}; tool_calls`},
		{"quirk 19: usage in a chunk without choices", events(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":null}`, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}}`, "[DONE]"), `text "hi"; stop; in 9 out 4 reasoning 3 read 8`},
		{"quirk 19: usage in every chunk, and twice: the last one counts", events(`{"choices":[{"index":0,"delta":{"content":"h"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"choices":[{"index":0,"delta":{"content":"i"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2},"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":2}}}`, "[DONE]"), `text "hi"; stop; in 9 out 2`},
		{"quirk 20: the finish reason comes twice", deltas("stop", `{"content":"hi"}`) + events(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}`), `text "hi"; stop`},
		{"quirk 21: comments keep the connection alive", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + deltas("stop", `{"content":"hi"}`), `text "hi"; stop`},
		{"quirk 22: white space before a body", "\n         \n\n  " + whole("stop", `{"content":"hi"}`), `text "hi"; stop`},
		{"quirk 23: a first chunk without choices", events(`{"choices":[],"created":0,"id":"","model":"","prompt_filter_results":[{}]}`) + deltas("stop", `{"content":"hi"}`), `text "hi"; stop`},
		{"quirk 24: chunk ids differ", events(`{"id":"x","choices":[{"index":0,"delta":{"content":"h"}}]}`, `{"id":"y","choices":[{"index":0,"delta":{"content":"i"},"finish_reason":"stop"}]}`, "[DONE]"), `text "hi"; stop`},
		{"quirk 25: no role at all", deltas("stop", `{"content":"hi"}`), `text "hi"; stop`},
		{"quirk 26: no [DONE]", strings.TrimSuffix(deltas("stop", `{"content":"hi"}`), "data: [DONE]\n\n"), `text "hi"; stop`},
		{"quirk 27: CRLF, message and delta", strings.ReplaceAll(events(`{"choices":[{"index":0,"message":{"content":"h"},"delta":{"content":"h"}}]}`, `{"choices":[{"index":0,"message":{"content":"hi"},"delta":{"content":"i"},"finish_reason":"stop"}]}`), "\n", "\r\n"), `text "hi"; stop`},
		{"quirk 27: delta and message in a whole reply", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"message":{"content":"hi"},"finish_reason":"stop"}]}`, `text "hi"; stop`},
		{"quirk 28: an error inside a chunk", events(`{"choices":[{"index":0,"delta":{"content":"h"},"finish_reason":"length"}]}`, `{"error":{"code":400,"message":"Token limit reached"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`, "[DONE]"), `error invalid_request 400: Token limit reached`},
		{"quirk 29: an error as a field of the stream", events(`{"choices":[{"index":0,"delta":{"content":"h"}}]}`) + "error: {\"message\":\"no\"}\n\n", `error stream retryable: the stream ended without a finish reason`},
		{"quirk 30: no finish reason", events(`{"choices":[{"index":0,"delta":{"content":"h"}}]}`), `error stream retryable: the stream ended without a finish reason`},
		{"quirk 30: [DONE] without a finish reason", events(`{"choices":[{"index":0,"delta":{"content":"h"}}]}`, "[DONE]"), `text "h"; other`},
		{"quirk 31: padding", events(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"obfuscation":"aZ3"}`, "[DONE]"), `text "hi"; stop`},
		{"quirk 32: content is a list", whole("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`), `reasoning "hm" [openai-chat {"field":"thinking"}]; text "hi"; stop`},
		{"quirk 32: content is a list in deltas", deltas("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]}`, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}],"closed":true},{"type":"text","text":"h"}]}`, `{"content":"i"}`), `reasoning "hm" [openai-chat {"field":"thinking"}]; text "hi"; stop`},
		{"quirk 33: reasoning_content", deltas("stop", `{"reasoning_content":"h","content":null}`, `{"reasoning_content":"m"}`, `{"reasoning_content":null,"content":"hi"}`), `reasoning "hm" [openai-chat {"field":"reasoning_content"}]; text "hi"; stop`},
		{"quirk 33: reasoning", whole("stop", `{"content":"hi","reasoning":"hm"}`), `reasoning "hm" [openai-chat {"field":"reasoning"}]; text "hi"; stop`},
		{"quirk 33: reasoning_details", whole("stop", `{"content":"hi","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s","index":0}]}`), `reasoning "hm" [openai-chat {"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s","index":0}]}]; text "hi"; stop`},
		{"reasoning only in its details", whole("stop", `{"content":"hi","reasoning":"","reasoning_details":[{"type":"reasoning.summary","summary":"so "},{"type":"reasoning.encrypted","data":"d"},{"text":"hm","type":"reasoning.text"}]}`),
			`reasoning "so hm" [openai-chat {"reasoning_details":[{"type":"reasoning.summary","summary":"so "},{"type":"reasoning.encrypted","data":"d"},{"text":"hm","type":"reasoning.text"}]}]; text "hi"; stop`},
		{"reasoning only in its details, in pieces", deltas("stop", `{"reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}`, `{"reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}`, `{"reasoning_details":[{"type":"reasoning.text","text":null,"signature":"s","index":0}]}`, `{"content":"hi"}`),
			`reasoning "hm" [openai-chat {"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0,"signature":"s"}]}]; text "hi"; stop`},
		{"reasoning_details that repeat the reasoning at the end", deltas("stop", `{"reasoning":"hm"}`, `{"reasoning":"","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s","index":0}]}`, `{"content":"hi"}`),
			`reasoning "hm" [openai-chat {"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s","index":0}]}]; text "hi"; stop`},
		{"quirk 33: reasoning_details in pieces", deltas("tool_calls", `{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}`, `{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}`, `{"reasoning_details":[{"type":"reasoning.text","signature":"s","text":null,"index":0}]}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"d","index":1}]}`),
			`reasoning "hm" [openai-chat {"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0,"signature":"s"},{"type":"reasoning.encrypted","data":"d","index":1}]}]; call a f {}; tool_calls`},
		{"quirk 34: think tags stay", whole("stop", `{"content":"<think>{no}</think>hi"}`), `text "<think>{no}</think>hi"; stop`},
		{"quirk 35: a refusal", whole("stop", `{"content":null,"refusal":"no"}`), `text "no"; content_filter`},
		{"quirk 35: a refusal in pieces", deltas("stop", `{"refusal":"n"}`, `{"refusal":"o"}`), `text "no"; content_filter`},
		{"quirk 36: the first of several choices", events(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, `{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, `{"choices":[{"delta":{"content":"no"},"finish_reason":"length","index":1}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"), `text "hi"; stop`},
		{"quirk 42: unknown members, missing members", `{"kv_transfer_params":null,"choices":[{"message":{"content":"hi","executed_tools":[]},"finish_reason":"eos","native_finish_reason":"x"}],"timings":{"a":[1,{"b":2}]}}`, `text "hi"; stop`},

		{"arguments before the name", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"x\":"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"1}"}}]}`), `call a f {"x":1}; tool_calls`},
		{"arguments that are an object", whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`), `call a f {"x":1}; tool_calls`},
		{"arguments that are no JSON", whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\": oops"}}]}`), `call a f {"x": oops; tool_calls`},
		{"a custom call", whole("tool_calls", `{"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sql","input":"SELECT 1"}}]}`), `call a sql SELECT 1 [openai-chat {"type":"custom_tool_call"}]; tool_calls`},
		{"arguments of a sealed call go on", deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"x"}}]}`), `error stream retryable: the arguments of call "a" went on after the next call had begun`},
		{"length wins over calls", whole("length", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`), `call a f {"x"; length`},
		{"content_filter wins over calls", whole("content_filter", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `call a f {}; content_filter`},
		{"reasoning that is not in the total", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}}`, `text "hi"; stop; in 10 out 105 reasoning 100`},
		{"DeepSeek's cache", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":7,"prompt_cache_miss_tokens":3}}`, `text "hi"; stop; in 10 out 5 read 7`},
		{"chunks that are equal but for their delta, and then are not", deltas("stop", `{"content":"a"}`, `{"content":"b"}`, `{"content":"c"}`) + "", `text "abc"; stop`},
		{"news after a delta that had none before", events(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":0,"delta":{"content":"b"}}]}`, `{"choices":[{"index":0,"delta":{"content":"c"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, `{"choices":[{"index":0,"delta":{"content":"d"}}]}`, `{"choices":[{"index":0,"delta":{"content":"e"},"finish_reason":"stop"},{"index":1,"delta":{"content":"no"}}]}`, "[DONE]"), `text "abcde"; stop; in 1 out 2`},
		{"an empty answer", whole("stop", `{"content":""}`), `stop`},
		{"an error with status 200", `{"error":{"message":"overloaded","code":503}}`, `error overloaded 503 retryable: overloaded`},
		{"an error that says nothing of itself", `{"error":{"message":"oops"}}`, `error server retryable: oops`},
		{"no choices", `{"id":"x"}`, `error stream retryable: the reply has no choices: {"id":"x"}`},
		{"a page", `<html><title>Sign in</title>`, `error stream retryable: an HTML page: Sign in; is the base URL right for the API?`},
		{"no JSON", `hello`, `error stream retryable: the stream ended without a finish reason`},
		{"cut JSON", `{"choices":[{"message":{"content":"h`, `error stream retryable: a chunk of the reply cannot be read: not valid JSON: string without an end at offset 34`},
		{"[DONE] and nothing else", events("[DONE]"), `error malformed_reply retryable: the reply has nothing but its end`},
		{"nothing", ``, `error stream retryable: the stream ended without a finish reason`},
		{"a chunk that is cut", events(`{"choices":[{"index":0,"delta":{"content":"h`), `error stream retryable: a chunk of the reply cannot be read: not valid JSON: string without an end at offset 42`},
		{"no blank line at the end", strings.TrimSuffix(deltas("stop", `{"content":"hi"}`), "\n"), `text "hi"; stop`},
	} {
		for _, sse := range []bool{false, true} { // the answer's form decides, not the request's
			if got := outcome(openai.DecodeChat(200, sse, []byte(c.body))); got != c.want {
				t.Errorf("%s (sse %v):\n got %s\nwant %s\nbody %s", c.name, sse, got, c.want, c.body)
			}
		}
	}
}

func TestChatRequests(t *testing.T) {
	half, yes, no := 0.5, true, false
	const start = `{"model":"m","messages":[{"role":"user","content":"go"}]`
	call := llm.ToolCall{ID: "a", Name: "f", Args: []byte(`{"x":1}`)}
	tools := `,"tools":[{"type":"function","function":{"name":"f","description":"Does f.","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}}]`
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
		want string // or the error
	}{
		{"plain", with(func(r *llm.Request) {}), start + `}`},
		{"streamed", with(func(r *llm.Request) { r.Whole = false }), start + `,"stream":true,"stream_options":{"include_usage":true}}`},
		{"tools, auto", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f} }), start + tools + `,"tool_choice":"auto"}`},
		{"none keeps the tools", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice.Mode = llm.ToolNone }), start + tools + `,"tool_choice":"none"}`},
		{"required", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice.Mode = llm.ToolRequired }),
			start + tools + `,"tool_choice":"required"}`},
		{"named", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice = llm.Named("f") }), start + tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}}`},
		{"a named subset", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f, tool("g")}; r.Choice = llm.Named("f", "g") }), `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}}}`},
		{"named, not offered", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{f}; r.Choice = llm.Named("h") }), `error invalid_request: tool choice: no tool "h" is offered; offered: f`},
		{"no choice without tools", with(func(r *llm.Request) { r.Choice.Mode = llm.ToolRequired; r.Settings.Parallel = &no }), start + `}`},
		{"a tool without a schema", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{{Name: "f"}} }), `"function":{"name":"f","parameters":{"type":"object","properties":{}}}`},
		{"a tool without properties", with(func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{{Name: "f", Input: []byte(" {\n\"type\": \"object\" } ")}}
		}), `"parameters":{"type":"object","properties":{}}`},
		{"settings", with(func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{f}
			r.Settings = llm.Settings{MaxTokens: 99, Temperature: &half, TopP: &half,
				StopSequences: []string{"a\"", "b"}, Effort: "low", Parallel: &yes}
		}), start + tools + `,"tool_choice":"auto","max_completion_tokens":99,"temperature":0.5,"top_p":0.5,"parallel_tool_calls":true,"stop":["a\"","b"],"reasoning_effort":"low"}`},
		{"options go in untouched and win", with(func(r *llm.Request) {
			r.Whole = false
			r.Settings.MaxTokens = 9
			r.Settings.Options = map[string]json.RawMessage{"openai-chat": json.RawMessage(` {"max_completion_tokens" : 7, "seed":1, "stream_options":null} `)}
		}), start + `,"stream":true,"max_completion_tokens" : 7, "seed":1, "stream_options":null}`},
		{"output", with(func(r *llm.Request) {
			r.Output = []byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
		}), start + `,"response_format":{"type":"json_schema","json_schema":{"name":"output","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}}`},
		{"output that cannot be strict", with(func(r *llm.Request) {
			r.Output = []byte(`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`)
		}), `"strict":false`},
		{"roles", messages(llm.System("s"), llm.Message{Role: llm.RoleDeveloper,
			Parts: []llm.Part{llm.Text{Text: "d"}}}, llm.User("u"), llm.Assistant(llm.Text{Text: "a"})),
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}`},
		{"calls and results", messages(llm.User("u"), llm.Assistant(llm.Text{Text: "wait"}, call),
			llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "42"}}})),
			`{"role":"assistant","content":"wait","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"a","content":"42"}]}`},
		{"a call without arguments, a failed result",
			messages(llm.Assistant(llm.ToolCall{ID: "a", Name: "f"}),
				llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "no file"}}, IsError: true})),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"Error: no file"}]}`},
		{"an error that says so already", messages(llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "Error: no"}}, IsError: true})), `"content":"Error: no"`},
		{"images", messages(llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Text{Text: "see"}, llm.Media{URL: "https://x/y.png"}, llm.Media{MIME: "image/png", Data: []byte("abc")}}}),
			`[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x/y.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}]`},
		{"sound and documents", messages(llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Media{MIME: "audio/mpeg", Data: []byte("abc")}, llm.Media{MIME: "application/pdf", Data: []byte("abc")}}}),
			`[{"type":"input_audio","input_audio":{"data":"YWJj","format":"mp3"}},{"type":"file","file":{"filename":"file.pdf","file_data":"data:application/pdf;base64,YWJj"}}]`},
		{"data: URIs are values", messages(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Media{URL: "data:image/png;base64,YWJj"}, llm.Media{URL: "data:application/pdf;base64,YWJj"}}}),
			`[{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}},{"type":"file","file":{"filename":"file.pdf","file_data":"data:application/pdf;base64,YWJj"}}]`},
		{"video is refused", messages(llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Text{Text: "see"}, llm.Media{MIME: "video/mp4", Data: []byte("abc")}}}),
			`error unsupported: messages[0].parts[1]: Chat Completions cannot take media of type "video/mp4"`},
		{"a document by URL is refused", messages(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Media{MIME: "application/pdf", URL: "https://x"}}}), `error unsupported: messages[0].parts[0]: Chat Completions takes application/pdf by value only, not by URL`},
		{"an image in a result follows in a user message", messages(llm.Results(
			llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "here"}, llm.Media{MIME: "image/png", Data: []byte("abc")}}},
			llm.ToolResult{CallID: "b", Parts: []llm.Part{llm.Text{Text: "none"}}})),
			`{"role":"tool","tool_call_id":"a","content":"here"},{"role":"tool","tool_call_id":"b","content":"none"},{"role":"user","content":[{"type":"text","text":"From the result of call a:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}]}]}`},
		{"long ids are mapped", messages(llm.Assistant(llm.ToolCall{ID: strings.Repeat("i", 41), Name: "f"}),
			llm.Results(llm.ToolResult{CallID: strings.Repeat("i", 41)})),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_eio3d4zuo718","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_eio3d4zuo718","content":""}]}`},
		{"no model", &llm.Request{Messages: []llm.Message{llm.User("u")}}, `error invalid_request: model: no model is named`},
		{"a schema that is none", with(func(r *llm.Request) { r.Output = []byte(`[]`) }), `error invalid_request: output: the schema is not a JSON object`},
	} {
		checkEncode(t, c.name, openai.EncodeChat, c.req, c.want)
	}
}

// Mistral's server accepts only ids of nine letters and digits. The text about a result's images
// has the sent id.
func TestMistralIDs(t *testing.T) {
	req := &llm.Request{Messages: []llm.Message{llm.User("u"),
		llm.Assistant(llm.ToolCall{ID: "call_0", Name: "f"}, llm.ToolCall{ID: "Abc123xyZ", Name: "f"}), llm.Results(
			llm.ToolResult{CallID: "call_0", Parts: []llm.Part{llm.Media{MIME: "image/png", Data: []byte("abc")}}}, llm.ToolResult{CallID: "Abc123xyZ"})}}
	sent := ""
	look := transport(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		sent = string(b)
		return reply(200, whole("stop", `{"content":"hi"}`)), err
	})
	for _, o := range []*openai.Options{{BaseURL: "https://api.mistral.ai/v1", Key: "k", HTTP: look},
		{BaseURL: "https://gateway.example/v1", Key: "k", HTTP: look, Server: &openai.Server{Name: "mistral"}}} {
		if _, err := llm.Complete(t.Context(), openai.NewChat("m", o), req); err != nil {
			t.Fatal(err)
		}
		ids := regexp.MustCompile(`"(?:id|tool_call_id)":"([^"]*)"|result of call ([^"]*):`).FindAllStringSubmatch(sent, -1)
		if len(ids) != 5 {
			t.Fatalf("%s: got the ids %q in %s", o.BaseURL, ids, sent)
		}
		first := ids[0][1]
		if !regexp.MustCompile(`^[0-9A-Za-z]{9}$`).MatchString(first) || ids[1][1] != "Abc123xyZ" ||
			ids[2][1] != first || ids[3][1] != "Abc123xyZ" || ids[4][2] != first {
			t.Errorf("%s: got the ids %q", o.BaseURL, ids)
		}
	}
}

// DeepSeek and Kimi reject a conversation with a reply without reasoning_content, such as another
// model's.
func TestRepliesWithoutReasoning(t *testing.T) {
	for _, c := range []struct {
		base string
		want int
	}{{"https://api.deepseek.com/v1", 2}, {"https://api.moonshot.ai/v1", 2}, {"https://api.groq.com/openai/v1", 0}} {
		sent := ""
		look := transport(func(r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			sent = string(b)
			return reply(200, whole("stop", `{"content":"hi","reasoning_content":"hm"}`)), err
		})
		m := openai.NewChat("m", &openai.Options{BaseURL: c.base, Key: "k", HTTP: look})
		messages := []llm.Message{llm.User("u"), llm.Assistant(llm.Reasoning{Text: "elsewhere"},
			llm.ToolCall{ID: "a", Name: "f"}), llm.Results(llm.ToolResult{CallID: "a"}),
			llm.Assistant(llm.Text{Text: "done"}), llm.User("and?")}
		res, err := llm.Complete(t.Context(), m, &llm.Request{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(sent, `"reasoning_content":" "`); got != c.want || strings.Contains(sent, "elsewhere") {
			t.Errorf("%s: %d replies with a space for their reasoning, want %d: %s", c.base, got, c.want, sent)
		}
		if _, err := llm.Complete(t.Context(), m, &llm.Request{
			Messages: append(messages, res.Message, llm.User("more"))}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(sent, `"reasoning_content":"hm"`) || strings.Count(sent, `"reasoning_content":" "`) != c.want {
			t.Errorf("%s: its own reasoning does not go back as it came: %s", c.base, sent)
		}
	}
}
