package provider_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/plays"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// openAt returns a model of an API behind a gateway, whose requests are not repeated.
func openAt(api string, h http.RoundTripper) llm.Model {
	const base = "http://gateway.test/v1"
	switch api {
	case pawltest.Responses:
		return openai.New("m", &openai.Options{BaseURL: base, Key: "k", HTTP: h, Retries: -1})
	case pawltest.Anthropic:
		return anthropic.New("m", &anthropic.Options{BaseURL: base, Key: "k", HTTP: h, Retries: -1})
	case pawltest.Gemini:
		return gemini.New("m", &gemini.Options{BaseURL: base, Key: "k", HTTP: h, Retries: -1})
	}
	return openai.NewChat("m", &openai.Options{BaseURL: base, Key: "k", HTTP: h, Retries: -1})
}

// proxy changes the body of a reply, and may set its content coding.
type proxy struct {
	coding string
	change func(body string) []byte
	broken bool // the connection breaks behind the body
}

func (g proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := new(plays.Stage).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if g.change != nil {
		body = g.change(string(body))
	}
	var content io.Reader = bytes.NewReader(body)
	if g.broken {
		content = io.MultiReader(content, broken{})
	}
	res.Body = io.NopCloser(content)
	res.ContentLength = -1
	if g.coding != "" {
		res.Header.Set("Content-Encoding", g.coding)
	}
	return res, nil
}

// sends is a proxy with another body.
func sends(body string) proxy {
	return proxy{change: func(string) []byte { return []byte(body) }}
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// between writes text before each event, and at the end.
func between(text string) func(string) []byte {
	return func(body string) []byte {
		events := strings.SplitAfter(body, "\n\n")
		return []byte(text + strings.Join(events, text))
	}
}

// compress returns a function that compresses a body.
func compress(writer func(io.Writer) io.WriteCloser) func(string) []byte {
	return func(body string) []byte {
		var b bytes.Buffer
		w := writer(&b)
		io.WriteString(w, body)
		w.Close()
		return b.Bytes()
	}
}

func gzipped(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func zlibbed(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
func deflated(w io.Writer) io.WriteCloser {
	f, _ := flate.NewWriter(w, flate.BestSpeed) // the level is valid
	return f
}

var completePlays = []plays.Play{
	{API: pawltest.Chat, Word: "stop"},
	{API: pawltest.Responses, Word: "completed"},
	{API: pawltest.Anthropic, Word: "end_turn"},
	{API: pawltest.Gemini, Word: "STOP"},
}

// What gateways add to a reply, or do to its bytes, changes nothing of it, on every wire.
func TestGateways(t *testing.T) {
	behind := func(text string) func(string) []byte {
		return func(body string) []byte { return []byte(body + text) }
	}
	for _, test := range []struct {
		name   string
		how    proxy
		stream bool // whole replies are not tried
	}{
		{"as it is", proxy{}, false},
		{"events without data", proxy{change: between("data:\n\n")}, true},
		{"blank data", proxy{change: between("event: ping\ndata: \n\n")}, true},
		{"heartbeats with a time", proxy{change: between("event: heartbeat\ndata: 12:00\n\n")}, true},
		{"null as data", proxy{change: between("data: null\n\n")}, true},
		{"true as data", proxy{change: between("data: true\n\n")}, true},
		{"an empty text as data", proxy{change: between("data: \"\"\n\n")}, true},
		{"an empty list as data", proxy{change: between("data: []\n\n")}, true},
		{"a word for a heartbeat", proxy{change: between("data: keepalive\n\n")}, true},
		{"a word in brackets", proxy{change: between("data: [PING]\n\n")}, true},
		{"a word in quotes", proxy{change: between("data: \"heartbeat\"\n\n")}, true},
		{"a byte order mark", proxy{change: func(body string) []byte { return []byte("\ufeff" + body) }}, false},
		{"a mark of the end in quotes", proxy{change: behind("data: \"[DONE]\"\n\n")}, true},
		{"comments", proxy{change: between(": PROCESSING\n\n")}, true},
		{"a mark of the end with a space", proxy{change: behind("data: [DONE] \n\n")}, true},
		{"another mark of the end", proxy{change: behind("data: DONE\n\n")}, true},
		{"text behind the end", proxy{change: behind("data: bye\n\n")}, true},
		{"half an event behind the end", proxy{change: behind(`data: {"type":"x","choi`)}, true},
		{"an error page behind the end", proxy{change: behind("\n<html>502</html>\n\n")}, true},
		{"the connection breaks behind the end", proxy{broken: true}, true},
		{"gzip", proxy{coding: "gzip", change: compress(gzipped)}, false},
		{"gzip, by its old name", proxy{coding: "X-GZIP", change: compress(gzipped)}, false},
		{"deflate", proxy{coding: "deflate", change: compress(zlibbed)}, false},
		{"deflate without the header of zlib", proxy{coding: "deflate", change: compress(deflated)}, false},
		{"gzip twice", proxy{coding: "gzip, gzip", change: func(body string) []byte {
			return compress(gzipped)(string(compress(gzipped)(body)))
		}}, false},
		{"no coding", proxy{coding: "identity"}, false},
		{"gzip without a header that says so", proxy{change: compress(gzipped)}, false},
		{"a header of gzip that is left over", proxy{coding: "gzip"}, false},
	} {
		for _, p := range completePlays {
			for _, stream := range []bool{true, false} {
				if test.stream && !stream {
					continue
				}
				want := wiretest.Render(mustReply(t, p, stream, proxy{}))
				got, err := tryReply(t, p, stream, test.how)
				if wiretest.Outcome(got, err) != want {
					t.Errorf("%s, %s, stream %t: got %s, want %s", test.name, p.API, stream, wiretest.Outcome(got, err), want)
				}
			}
		}
	}
}

func tryReply(t *testing.T, p plays.Play, stream bool, how proxy) (*llm.Response, error) {
	t.Helper()
	req := &llm.Request{Whole: !stream, Messages: []llm.Message{llm.User(p.Line(true, stream, "gateway"))}}
	res := new(llm.Response)
	for d, err := range openAt(p.API, how).Stream(t.Context(), req) {
		if err == nil {
			err = res.Add(d)
		}
		if err != nil {
			return nil, err
		}
	}
	return res, nil
}

func mustReply(t *testing.T, p plays.Play, stream bool, how proxy) *llm.Response {
	t.Helper()
	res, err := tryReply(t, p, stream, how)
	if err != nil {
		t.Fatalf("%s: %v", p.API, err)
	}
	if calls := res.Message.Calls(); len(calls) != 1 {
		t.Fatalf("%s: %d calls", p.API, len(calls))
	}
	return res
}

// A coding that cannot be decoded is named, and the request is not repeated in vain. A compressed
// body that breaks off is an error like any other.
func TestCodingsThatCannotBeDecoded(t *testing.T) {
	for _, p := range completePlays {
		_, err := tryReply(t, p, true, proxy{coding: "br"})
		var pe *llm.ProviderError
		if !errors.As(err, &pe) || pe.Retryable || !strings.Contains(pe.Message, `"br"`) {
			t.Errorf("%s: got %v", p.API, err)
		}
		_, err = tryReply(t, p, true, proxy{coding: "gzip", change: func(body string) []byte {
			whole := compress(gzipped)(body)
			return whole[:len(whole)/2]
		}})
		if !errors.As(err, &pe) || !pe.Retryable {
			t.Errorf("%s, cut: got %v", p.API, err)
		}
	}
}

// A stream that holds nothing but its end is a malformed reply on every wire, and can be asked for
// again.
func TestNothingButTheEnd(t *testing.T) {
	const done = "data: [DONE]\n\n"
	for _, test := range []struct{ api, body string }{
		{pawltest.Chat, done},
		{pawltest.Chat, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" + done},
		{pawltest.Chat, `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0}}` + "\n\n" + done},
		{pawltest.Chat, "data:\n\n" + done},
		{pawltest.Responses, done},
		{pawltest.Responses, `data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}` + "\n\n"},
		{pawltest.Responses, `data: {"type":"response.completed"}` + "\n\n"},
		{pawltest.Anthropic, done},
		{pawltest.Anthropic, `data: {"type":"message_stop"}` + "\n\n"},
		{pawltest.Anthropic, `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"},
		{pawltest.Gemini, done},
		{pawltest.Gemini, "data: {}\n\n"},
		{pawltest.Gemini, `data: {"usageMetadata":{"promptTokenCount":1}}` + "\n\n"},
	} {
		_, err := tryReply(t, plays.Play{API: test.api}, true, sends(test.body))
		var pe *llm.ProviderError
		if !errors.As(err, &pe) || pe.Code != llm.CodeMalformedReply || !pe.Retryable {
			t.Errorf("%s: %q: got %v", test.api, test.body, err)
		}
	}
}

// split returns the content of a JSON string in two, between the halves of a pair.
const (
	leftHalf  = `a\ud83d`
	rightHalf = `\ude00b`
	joined    = "a\U0001f600b"
)

// A character that two fragments split is whole, in texts, reasoning and arguments, on every wire.
// A half without the other is U+FFFD.
func TestSplitCharacters(t *testing.T) {
	events := wiretest.Events
	chat := func(deltas ...string) string {
		var all []string
		for _, d := range deltas {
			all = append(all, `{"choices":[{"index":0,"delta":`+d+`,"finish_reason":null}]}`)
		}
		return events(append(all, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")...)
	}
	block := func(start, kind, member string, pieces ...string) string {
		all := []string{`{"type":"message_start","message":{"id":"m","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":` + start + `}`}
		for _, p := range pieces {
			all = append(all, `{"type":"content_block_delta","index":0,"delta":{"type":"`+kind+`","`+member+`":"`+p+`"}}`)
		}
		return events(append(all, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)...)
	}
	response := func(kind, item string, pieces ...string) string {
		all := []string{`{"type":"response.output_item.added","output_index":0,"item":` + item + `}`}
		for _, p := range pieces {
			all = append(all, `{"type":"response.`+kind+`.delta","output_index":0,"content_index":0,"summary_index":0,"delta":"`+p+`"}`)
		}
		return events(append(all, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)...)
	}
	candidate := func(parts ...string) string {
		var all []string
		for i, p := range parts {
			finish := ""
			if i == len(parts)-1 {
				finish = `,"finishReason":"STOP"`
			}
			all = append(all, `{"candidates":[{"content":{"parts":[`+p+`]}`+finish+`}]}`)
		}
		return events(all...)
	}
	call := `{"index":0,"id":"c","function":{"name":"f","arguments":"`
	const quoted = `{\"s\":\"` // the beginning of the arguments, as the content of a string

	for _, test := range []struct{ api, name, body, want string }{
		{pawltest.Chat, "text", chat(`{"content":"`+leftHalf+`"}`, `{"content":"`+rightHalf+`"}`), joined},
		{pawltest.Chat, "reasoning", chat(`{"reasoning_content":"`+leftHalf+`"}`, `{"reasoning_content":"`+rightHalf+`"}`, `{"content":"x"}`), joined},
		{pawltest.Chat, "arguments", chat(`{"tool_calls":[`+call+quoted+leftHalf+`"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"`+rightHalf+`\"}"}}]}`), joined},
		{pawltest.Chat, "a lost half", chat(`{"content":"`+leftHalf+`"}`, `{"content":"b"}`), "a\ufffdb"},
		{pawltest.Chat, "half at the end", chat(`{"content":"x"}`, `{"content":"`+leftHalf+`"}`), "xa\ufffd"},
		{pawltest.Anthropic, "text", block(`{"type":"text","text":""}`, "text_delta", "text", leftHalf, rightHalf), joined},
		{pawltest.Anthropic, "reasoning", block(`{"type":"thinking","thinking":""}`, "thinking_delta", "thinking", leftHalf, rightHalf), joined},
		{pawltest.Anthropic, "arguments", block(`{"type":"tool_use","id":"t","name":"f","input":{}}`, "input_json_delta", "partial_json", quoted+leftHalf, rightHalf+`\"}`), joined},
		{pawltest.Responses, "text", response("output_text", `{"type":"message"}`, leftHalf, rightHalf), joined},
		{pawltest.Responses, "reasoning", response("reasoning_summary_text", `{"type":"reasoning"}`, leftHalf, rightHalf), joined},
		{pawltest.Responses, "arguments", response("function_call_arguments", `{"type":"function_call","call_id":"c","name":"f","arguments":""}`, quoted+leftHalf, rightHalf+`\"}`), joined},
		{pawltest.Gemini, "text", candidate(`{"text":"`+leftHalf+`"}`, `{"text":"`+rightHalf+`"}`), joined},
		{pawltest.Gemini, "reasoning", candidate(`{"text":"`+leftHalf+`","thought":true}`, `{"text":"`+rightHalf+`","thought":true}`), joined},
		{pawltest.Gemini, "arguments", candidate(`{"functionCall":{"name":"f","willContinue":true}}`,
			`{"functionCall":{"partialArgs":[{"jsonPath":"$.s","stringValue":"`+leftHalf+`","willContinue":true}],"willContinue":true}}`,
			`{"functionCall":{"partialArgs":[{"jsonPath":"$.s","stringValue":"`+rightHalf+`"}],"willContinue":true}}`, `{"functionCall":{}}`), joined},
	} {
		res, err := tryReply(t, plays.Play{API: test.api}, true, sends(test.body))
		if err != nil {
			t.Errorf("%s, %s: %v", test.api, test.name, err)
			continue
		}
		got := wiretest.Render(res)
		if !strings.Contains(got, test.want) || strings.Contains(got, "\ufffd") != strings.Contains(test.want, "\ufffd") {
			t.Errorf("%s, %s: got %s, want %q in it", test.api, test.name, got, test.want)
		}
	}
}

// At a server that writes no finish reason, [DONE] or usage that came once ends a reply. Its calls
// count if their arguments are whole. At OpenAI's own host the finish reason was lost.
func TestNoFinishReason(t *testing.T) {
	chunk := func(delta string) string {
		return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
	}
	call := func(args string) string {
		return chunk(`{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"` + args + `"}}]}`)
	}
	const usage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}`
	counted := func(s string) string {
		return strings.TrimSuffix(s, "}") + `,"usage":{"prompt_tokens":9,"completion_tokens":5}}`
	}
	const lost = "error stream_inconsistent retryable: "
	for _, test := range []struct {
		name   string
		events []string
		want   string // begins the outcome
	}{
		{"a call, usage and [DONE]", []string{call("{}"), usage, "[DONE]"}, "call t1 f {}; tool_calls"},
		{"a call and [DONE]", []string{call("{}"), "[DONE]"}, "call t1 f {}; tool_calls"},
		{"a call and usage", []string{call("{}"), usage}, "call t1 f {}; tool_calls"},
		{"a call with usage", []string{counted(call("{}"))}, "call t1 f {}; tool_calls"},
		{"a call without arguments", []string{call(""), "[DONE]"}, "call t1 f ; tool_calls"},
		{"arguments in pieces", []string{call(`{\"a\":\"}\\\"`), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`), "[DONE]"}, `call t1 f {"a":"}\""}; tool_calls`},
		{"arguments that are not whole", []string{call(`{\"a\":\"}`), usage, "[DONE]"}, lost},
		{"a list that is not whole", []string{call(`{\"a\":[1`), "[DONE]"}, lost},
		{"a stream that just stops", []string{call("{}")}, "error stream retryable: "},
		{"usage in each chunk, and a stream that just stops", []string{counted(chunk(`{"content":"a"}`)), counted(call("{}"))}, "error stream retryable: "},
		{"text and [DONE]", []string{chunk(`{"content":"hi"}`), "[DONE]"}, `text "hi"; other`},
		{"text and usage", []string{chunk(`{"content":"hi"}`), usage}, `text "hi"; other; in 9 out 5`},
		{"text alone", []string{chunk(`{"content":"hi"}`)}, "error stream retryable: "},
	} {
		body := proxy{change: func(string) []byte { return []byte(wiretest.Events(test.events...)) }}
		got, err := tryReply(t, plays.Play{API: pawltest.Chat}, true, body)
		if s := wiretest.Outcome(got, err); !strings.HasPrefix(s, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, s, test.want)
		}
	}
	_, err := openai.DecodeChat(http.StatusOK, true, []byte(wiretest.Events(call("{}"), usage, "[DONE]")))
	if got := wiretest.Outcome(nil, err); !strings.HasPrefix(got, lost) {
		t.Errorf("OpenAI's own host: got %s", got)
	}
}
