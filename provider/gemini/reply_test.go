package gemini_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

const (
	hi   = `{"text":"hi"}`
	look = `{"functionCall":{"name":"look","args":{"at":"x"}}}`
)

// Each case is one behaviour of the API. The numbers are from docs/gemini-quirks.md.
var replies = []struct {
	name, body, want string
}{
	{"a whole answer", chunk("STOP", hi), `text "hi"; stop`},
	{"a streamed answer", events(chunk("", `{"text":"h"}`), chunk("STOP", `{"text":"i"}`)), `text "hi"; stop`},
	{"a whole call", chunk("STOP", `{"functionCall":{"id":"a","name":"look","args":{"at": "x"}}}`), `call a look {"at": "x"}; tool_calls`},
	{"text in front of a call", events(chunk("", `{"text":"I "}`), chunk("", `{"text":"look."}`), chunk("STOP", look)), `text "I look."; call call_1 look {"at":"x"}; tool_calls`},
	{"text after a call", events(chunk("", `{"text":"a"}`), chunk("", look), chunk("STOP", `{"text":"b"}`)), `text "a"; call call_1 look {"at":"x"}; text "b"; tool_calls`},

	{"quirk 72: no id", chunk("STOP", look, look), `call call_0 look {"at":"x"}; call call_1 look {"at":"x"}; tool_calls`},
	{"quirk 72: an id", chunk("STOP", `{"functionCall":{"id":"x8i00o1q","name":"look","args":{}}}`), `call x8i00o1q look {}; tool_calls`},
	{"quirk 73: STOP with calls", events(chunk("", look), chunk("STOP", `{"text":""}`)), `call call_0 look {"at":"x"}; tool_calls`},
	{"quirk 74: a signature on the first of two calls", chunk("STOP", `{"functionCall":{"name":"look","args":{}},"thoughtSignature":"c2ln+/="}`, look), `call call_0 look {} [gemini {"thoughtSignature":"c2ln+/="}]; call call_1 look {"at":"x"}; tool_calls`},
	{"quirk 74: a signature in front of its call", chunk("STOP", `{"thoughtSignature":"c2ln","functionCall":{"name":"look","args":{}}}`), `call call_0 look {} [gemini {"thoughtSignature":"c2ln"}]; tool_calls`},
	{"quirk 74: a signature on a text", chunk("STOP", `{"text":"hi","thoughtSignature":"c2ln"}`), `text "hi" [gemini {"thoughtSignature":"c2ln"}]; stop`},
	{"quirk 74: a signature on an empty text at the end", events(chunk("", `{"text":"h"}`), chunk("", `{"text":"i"}`), chunk("STOP", `{"text":"","thoughtSignature":"c2ln"}`)), `text "hi"; text "" [gemini {"thoughtSignature":"c2ln"}]; stop`},
	{"quirk 74: signed texts are not joined with others", events(chunk("", `{"text":"a"}`), chunk("", `{"text":"b","thoughtSignature":"c2ln"}`), chunk("", `{"text":"c"}`), chunk("STOP", `{"text":"d"}`)), `text "a"; text "b" [gemini {"thoughtSignature":"c2ln"}]; text "cd"; stop`},
	{"quirk 74: a signature with escapes", chunk("STOP", `{"text":"hi","thoughtSignature":"c\u002b\/="}`), `text "hi" [gemini {"thoughtSignature":"c\u002b\/="}]; stop`},
	{"quirk 74: nothing but a signature", chunk("STOP", hi, `{"thoughtSignature":"c2ln"}`), `text "hi"; reasoning "" [gemini {"thoughtSignature":"c2ln"}]; stop`},
	{"quirk 75: parallel calls in several events", events(chunk("", look), chunk("", look), chunk("STOP", look)), `call call_0 look {"at":"x"}; call call_1 look {"at":"x"}; call call_2 look {"at":"x"}; tool_calls`},
	{"quirk 76: arguments in parts", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true},"thoughtSignature":"c2ln"}`),
		chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"Bos","willContinue":true}],"willContinue":true}}`),
		chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"ton \"x\""}],"willContinue":true}}`),
		chunk("STOP", `{"functionCall":{}}`)), `call call_0 look {"at":"Boston \"x\""} [gemini {"thoughtSignature":"c2ln"}]; tool_calls`},
	{"quirk 76: arguments of every kind", events(
		chunk("", `{"functionCall":{"id":"a","name":"look","willContinue":true}}`),
		chunk("", `{"functionCall":{"id":"a","willContinue":true,"partialArgs":[{"jsonPath":"$.to[0].name","stringValue":"A"},{"jsonPath":"$.to[0].age","numberValue":7.50}]}}`),
		chunk("", `{"functionCall":{"willContinue":true,"partialArgs":[{"jsonPath":"$.to[1]['a b']","boolValue":false},{"jsonPath":"$.to[1][\"c\"]","nullValue":"NULL_VALUE"},{"jsonPath":"$.to[2][0][0]","numberValue":-1}]}}`),
		chunk("STOP", `{"functionCall":{"partialArgs":[{"jsonPath":"$.last","boolValue":true}]}}`)),
		`call a look {"to":[{"name":"A","age":7.50},{"a b":false,"c":null},[[-1]]],"last":true}; tool_calls`},
	{"quirk 76: two calls in parts", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"A"}],"willContinue":true}}`), chunk("", `{"functionCall":{}}`),
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"B"}],"willContinue":true}}`), chunk("STOP", `{"functionCall":{}}`)),
		`call call_0 look {"at":"A"}; call call_1 look {"at":"B"}; tool_calls`},
	{"quirk 76: no end mark before the next call", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"A"}],"willContinue":true}}`), chunk("STOP", look)),
		`call call_0 look {"at":"A"}; call call_1 look {"at":"x"}; tool_calls`},
	{"quirk 76: no end mark before the end", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","numberValue":1}],"willContinue":true}}`), chunk("STOP", `{"text":""}`)),
		`call call_0 look {"at":1}; tool_calls`},
	{"quirk 76: no end mark inside a value", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"A","willContinue":true}],"willContinue":true}}`), chunk("STOP", `{"text":""}`)),
		`error stream retryable: the arguments of a call broke off inside $.at`},
	{"quirk 76: cut by length inside a value", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("MAX_TOKENS", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"A","willContinue":true}],"willContinue":true}}`)),
		`call call_0 look {"at":"A; length`},
	{"quirk 76: a value for a place that is behind", events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.a.x","numberValue":1},{"jsonPath":"$.b","numberValue":2},{"jsonPath":"$.a.y","numberValue":3}],"willContinue":true}}`)),
		`error stream retryable: arguments cannot be read: $.a.y came when the model had gone on from there`},
	{"quirk 76: no arguments", events(chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("STOP", `{"functionCall":{}}`)), `call call_0 look {}; tool_calls`},
	{"quirk 76: a call without arguments is whole", events(chunk("", `{"functionCall":{"name":"theme"}}`), chunk("STOP", look)), `call call_0 theme {}; call call_1 look {"at":"x"}; tool_calls`},
	{"quirk 76: a piece for no call", events(chunk("", look), chunk("STOP", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"A"}]}}`)), `error stream retryable: a piece of arguments came where no call was open`},
	{"quirk 77: CRLF", events(chunk("STOP", hi)), `text "hi"; stop`},
	{"quirk 77: LF", strings.ReplaceAll(events(chunk("STOP", hi)), "\r\n", "\n"), `text "hi"; stop`},
	{"quirk 78: one JSON array", "[" + chunk("", `{"text":"h"}`) + "\n,\r\n" + chunk("STOP", `{"text":"i"}`) + "\n]\n", `text "hi"; stop`},
	{"quirk 78: an array that breaks off", "[" + chunk("STOP", `{"text":"h"}`) + "\n,\r\n", `error stream retryable: the reply cannot be read: not valid JSON: unexpected end at offset 142`},
	{"quirk 78: an array without an end", "[" + chunk("", `{"text":"h"}`) + "]", `error stream retryable: the stream ended without a finish reason`},
	{"quirk 79: enums as numbers", `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":1}]}`, `text "hi"; stop`},
	{"quirk 79: cut, as a number", `{"candidates":[{"content":{"parts":[` + look + `]},"finishReason":2}]}`, `call call_0 look {"at":"x"}; length`},
	{"quirk 79: filtered, as a number", `{"candidates":[{"content":{},"finishReason":8}]}`, `content_filter`},
	{"quirk 79: an unknown number", `{"candidates":[{"content":{},"finishReason":77}]}`, `length`},
	{"quirk 80: UNEXPECTED_TOOL_CALL", `{"candidates":[{"content":{"parts":[` + look + `]},"finishReason":"UNEXPECTED_TOOL_CALL","finishMessage":"undeclared"}]}`, `call call_0 look {"at":"x"}; error`},
	{"quirk 80: MALFORMED_FUNCTION_CALL", `{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: look("}]}`, `text "Malformed function call: look("; error`},
	{"quirk 81: invented arguments", chunk("STOP", `{"functionCall":{"name":"get_file","args":{"parameters":{}}}}`), `call call_0 get_file {"parameters":{}}; tool_calls`},
	{"quirk 82: content without parts", `{"candidates":[{"content":{},"finishReason":"SAFETY"}],"usageMetadata":{"promptTokenCount":14,"totalTokenCount":14}}`, `content_filter; in 14 out 0`},
	{"quirk 83: the prompt is blocked", `{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"no"},"usageMetadata":{"trafficType":"ON_DEMAND"}}`, `content_filter`},
	{"quirk 83: the prompt is blocked, streamed", events(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`), `content_filter`},
	{"quirk 83: neither candidates nor a reason", `{"usageMetadata":{"promptTokenCount":1}}`, `error stream retryable: the reply has no candidates`},
	{"quirk 84: finishMessage on STOP, no index, no responseId", `{"candidates":[{"content":{"parts":[` + look + `]},"finishReason":"STOP","finishMessage":"Model generated function call(s)."}]}`, `call call_0 look {"at":"x"}; tool_calls`},
	{"quirk 85: code that the API ran", chunk("STOP", `{"executableCode":{"language":"PYTHON","code":"1","id":"c"},"thoughtSignature":"c2ln"}`, `{"text":""}`, `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`, hi),
		`reasoning "" [gemini {"executableCode":{"language":"PYTHON","code":"1","id":"c"},"thoughtSignature":"c2ln"}]; reasoning "" [gemini {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}]; text "hi"; stop`},
	{"quirk 85: tools that the API ran", chunk("STOP", `{"toolCall":{"id":"c","toolType":"GOOGLE_SEARCH_WEB","args":{}},"thoughtSignature":"a"}`, `{"toolResponse":{"id":"c","response":{}},"thoughtSignature":"b"}`),
		`reasoning "" [gemini {"toolCall":{"id":"c","toolType":"GOOGLE_SEARCH_WEB","args":{}},"thoughtSignature":"a"}]; reasoning "" [gemini {"toolResponse":{"id":"c","response":{}},"thoughtSignature":"b"}]; stop`},
	{"quirk 85: a picture with a signature", chunk("STOP", `{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thoughtSignature":"c2ln"}`), `media image/png "PNG" ; reasoning "" [gemini {"ofMedia":{"thoughtSignature":"c2ln"}}]; stop`},
	{"quirk 85: a picture that was only thought", chunk("STOP", `{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thought":true}`, hi), `reasoning "" [gemini {"inlineData":{"mimeType":"image/png","data":"UE5H"},"thought":true}]; text "hi"; stop`},
	{"quirk 85: an unknown part", chunk("STOP", `{"hologram":{"x":1}}`, hi), `reasoning "" [gemini {"hologram":{"x":1}}]; text "hi"; stop`},
	{"quirk 86: thoughts", events(chunk("", `{"text":"h","thought":true}`), chunk("", `{"text":"m","thought":true}`), chunk("STOP", hi)), `reasoning "hm" [gemini {"thought":true}]; text "hi"; stop`},
	{"quirk 86: a signed thought", chunk("STOP", `{"text":"hm","thought":true,"thoughtSignature":"c2ln"}`, hi), `reasoning "hm" [gemini {"thought":true,"thoughtSignature":"c2ln"}]; text "hi"; stop`},
	{"quirk 88: STOP in each event", events(chunk("STOP", `{"text":"h"}`), chunk("STOP", `{"text":"i"}`), chunk("STOP", look)), `text "hi"; call call_1 look {"at":"x"}; tool_calls`},
	{"quirk 88: STOP in the last event but one", events(chunk("", `{"text":"h"}`), chunk("STOP", `{"text":"i"}`), chunk("STOP", look)), `text "hi"; stop`},
	{"quirk 87: empty arguments", chunk("STOP", `{"functionCall":{"name":"theme","args":{}}}`, `{"functionCall":{"name":"theme","args":null}}`), `call call_0 theme {}; call call_1 theme {}; tool_calls`},

	{"a chunk with a call, twice", events(figured(look, 3), figured(look, 3), chunk("STOP")), `call call_0 look {"at":"x"}; tool_calls; in 9 out 3`},
	{"two chunks with calls, twice", events(figured(look, 3), figured(look, 6), figured(look, 3), figured(look, 6), chunk("STOP")), `error stream_inconsistent retryable: parts of the stream were lost or repeated: an event with a call came again`},
	{"two calls that are equal", events(figured(look, 3), figured(look, 6), chunk("STOP")), `call call_0 look {"at":"x"}; call call_1 look {"at":"x"}; tool_calls; in 9 out 6`},
	{"a call with an id, twice", events(chunk("", `{"functionCall":{"id":"a","name":"look","args":{}}}`), chunk("STOP", `{"functionCall":{"id":"a","name":"look","args":{}}}`)), `call a look {}; tool_calls`},
	{"two calls with one id", events(chunk("", `{"functionCall":{"id":"a","name":"look","args":{}}}`), chunk("STOP", `{"functionCall":{"id":"a","name":"look","args":{"at":1}}}`)), `error stream_inconsistent retryable: parts of the stream were lost or repeated: two calls have the id "a"`},

	{"cut by length", chunk("MAX_TOKENS", look), `call call_0 look {"at":"x"}; length`},
	{"recitation", chunk("RECITATION", hi), `text "hi"; content_filter`},
	{"a blocklist", chunk("BLOCKLIST"), `content_filter`},
	{"prohibited content", chunk("PROHIBITED_CONTENT", look), `call call_0 look {"at":"x"}; content_filter`},
	{"personal data", chunk("SPII"), `content_filter`},
	{"a language that the model does not have", chunk("LANGUAGE", hi), `text "hi"; content_filter`},
	{"a reason in each event, as older models have it", events(chunk("STOP", `{"text":"h"}`), chunk("STOP", `{"text":"i"}`)), `text "hi"; stop`},
	{"a reason that is not the last", events(chunk("MAX_TOKENS", look), chunk("STOP", `{"text":""}`)), `call call_0 look {"at":"x"}; length`},
	{"a stream without a reason", events(chunk("", hi)), `error stream retryable: the stream ended without a finish reason`},
	{"a whole reply without a reason", chunk("", hi), `text "hi"; length`},
	{"usage in every event", events(`{"candidates":[{"content":{"parts":[{"text":"h"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`,
		`{"candidates":[{"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":5,"cachedContentTokenCount":4,"toolUsePromptTokenCount":3,"totalTokenCount":19}}`, `{"usageMetadata":{"trafficType":"ON_DEMAND"}}`),
		`text "hi"; stop; in 12 out 7 reasoning 5 read 4`},
	{"the first of several candidates", `{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"MAX_TOKENS"},{"index":0,"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`, `text "hi"; stop`},
	{"an error inside a stream", events(chunk("", hi), `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), `error overloaded 503 retryable: The model is overloaded.`},
	{"an error with status 200", `{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}`, `error invalid_request 400: bad`},
	{"an error in an array", `[{"error":{"code":429,"message":"Resource exhausted.","status":"RESOURCE_EXHAUSTED"}}]`, `error rate_limit 429 retryable: Resource exhausted.`},
	{"a page", `<!DOCTYPE html><html><title>Sign in</title>`, `error stream retryable: an HTML page: Sign in; is the base URL right for the API?`},
	{"nothing", ``, `error stream retryable: the reply has no candidates`},
	{"half an object", `{"candidates":[{"content":{"parts":[{"text":"hi"`, `error stream retryable: the reply cannot be read: not valid JSON: unexpected end at offset 48`},
	{"a call continued under another id", events(chunk("", `{"functionCall":{"id":"a","name":"look","willContinue":true}}`), chunk("STOP", `{"functionCall":{"id":"b","willContinue":true}}`)), `error stream retryable: the call "a" was continued as "b"`},
	{"media that are not base64", chunk("STOP", `{"inlineData":{"mimeType":"image/png","data":"*"}}`), `error stream retryable: media in the reply are not base64: illegal base64 data at input byte 0`},
}

// figured is a chunk with a part and the tokens so far.
func figured(part string, tokens int) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":%d}}`, part, tokens)
}

func TestReplies(t *testing.T) {
	for _, c := range replies {
		t.Run(c.name, func(t *testing.T) {
			for _, sse := range []bool{strings.HasPrefix(c.body, "data:"), true} {
				if got := outcome(gemini.DecodeGenerate(200, sse, []byte(c.body))); got != c.want {
					t.Errorf("sse %t:\n got %s\nwant %s", sse, got, c.want)
				}
			}
		})
	}
}

// A reply with an irregular finish reason emits a notice with the reason.
func TestReasonsAreTold(t *testing.T) {
	for body, want := range map[string]string{
		`{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: look("}]}`: "Malformed function call: look(",
		`{"candidates":[{"content":{},"finishReason":"SAFETY"}]}`:                                                                   "the reply ended with SAFETY",
		`{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"injection"}}`:                                         "the prompt was not answered: MODEL_ARMOR: injection",
		chunk("STOP", hi): "",
	} {
		m := local(func(r *http.Request) (*http.Response, error) { return reply(200, body), nil })
		_, notices, err := ask(t.Context(), m, user("go"), false)
		got := ""
		for _, n := range notices {
			got += n.Text
		}
		if err != nil || got != want {
			t.Errorf("%s: got notices %q and %v, want %q", body, got, err, want)
		}
	}
}

// Arguments that arrive in pieces are emitted as they arrive, and the call ends with its end mark.
func TestArgumentsInParts(t *testing.T) {
	body := events(
		chunk("", `{"functionCall":{"name":"look","willContinue":true}}`),
		chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"Bos","willContinue":true}],"willContinue":true}}`),
		chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"ton"}],"willContinue":true}}`),
		chunk("", `{"functionCall":{}}`), chunk("STOP", hi))
	m := local(func(r *http.Request) (*http.Response, error) {
		res := reply(200, body)
		// bytes that arrive together are emitted together
		res.Body = io.NopCloser(iotest.OneByteReader(res.Body))
		return res, nil
	})
	var got []string
	for d, err := range m.Stream(t.Context(), user("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := d.Part.(llm.ToolCall); ok || d.Done {
			got = append(got, c.Name+string(c.Args))
		}
		if d.Done {
			got = append(got, "sealed")
		}
	}
	if s := strings.Join(got, "|"); s != `look|{"at":"Bos|ton"|}|sealed` {
		t.Errorf("got %s", s)
	}
}

// A stream cut at any byte gives the whole reply or an error, and no call that the whole stream
// does not have.
func TestCutAnywhere(t *testing.T) {
	for _, c := range replies {
		if !strings.HasPrefix(c.body, "data:") {
			continue
		}
		whole, err := gemini.DecodeGenerate(200, true, []byte(c.body))
		if err != nil {
			continue
		}
		for _, body := range []string{c.body, strings.ReplaceAll(c.body, "\r\n", "\n")} {
			for n := range len(body) {
				cut, err := gemini.DecodeGenerate(200, true, []byte(body[:n]))
				if err != nil {
					continue
				}
				calls := whole.Message.Calls()
				for i, call := range cut.Message.Calls() {
					if i >= len(calls) || call.Name != calls[i].Name || string(call.Args) != string(calls[i].Args) {
						t.Errorf("%s: cut at %d of %d it calls %s %s", c.name, n, len(body), call.Name, call.Args)
					}
				}
			}
		}
	}
}
