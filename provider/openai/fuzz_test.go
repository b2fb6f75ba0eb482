package openai_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// For any input from a server, decoding does not panic, and ends with a *llm.ProviderError or with
// a finish reason. The reply can be sent back.
func fuzzReplies(f *testing.F, decode func(int, bool, []byte) (*llm.Response, error),
	encode func(*llm.Request) ([]byte, error)) {
	f.Fuzz(func(t *testing.T, sse bool, body []byte) {
		res, err := decode(200, sse, body)
		if err != nil {
			var e *llm.ProviderError
			if !errors.As(err, &e) || e.Code == "" || e.Provider == "" {
				t.Fatalf("%q: %v is not a whole ProviderError", body, err)
			}
			if e.Code == llm.CodeStream && strings.Contains(e.Message, "part ") {
				t.Fatalf("%q: the adapter broke the contract of deltas: %v", body, err)
			}
			return
		}
		if res.Finish == "" {
			t.Fatalf("%q: no finish reason", body)
		}
		b, err := encode(&llm.Request{Model: "m", Messages: []llm.Message{res.Message}})
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		checkJSON(t, b)
		if _, err := res.Message.MarshalJSON(); err != nil {
			t.Fatalf("%q: the reply has no JSON form: %v", body, err)
		}
	})
}

func FuzzChat(f *testing.F) {
	f.Add(false, []byte(whole("stop", `{"content":"hi","reasoning":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`)))
	f.Add(true, []byte(deltas("tool_calls", `{"content":"h"}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}`)))
	f.Add(true, []byte(deltas("stop", `{"reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}`, `{"content":[{"type":"thinking","thinking":[{"text":"x"}]}]}`, `{"function_call":{"name":"f","arguments":"{}"}}`)))
	f.Add(false, []byte(`{"error":{"message":"no","code":400}}`))
	fuzzReplies(f, openai.DecodeChat, openai.EncodeChat)
}

func FuzzResponses(f *testing.F) {
	f.Add(false, []byte(response(`{"type":"reasoning","summary":[{"text":"s"}]}`, `{"type":"message","phase":"x","content":[{"text":"hi"},{"refusal":"no"}]}`, `{"type":"function_call","call_id":"a","name":"parallel","namespace":1,"arguments":"{\"tool_uses\":[{\"recipient_name\":\"f\",\"parameters\":1}]}"}`)))
	f.Add(true, []byte(events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{}"}`, done)))
	f.Add(true, []byte(events(`{"type":"response.output_text.delta","output_index":0,"content_index":1,"delta":"x"}`, `{"type":"response.reasoning_text.delta","output_index":1,"delta":"x"}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","input":"x"}}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning"}}`, done)))
	fuzzReplies(f, openai.DecodeResponses, openai.EncodeResponses)
}

// Events in any order, of items that change their kind, do not break the contract of deltas.
func TestStreamsOfAnyShape(t *testing.T) {
	types := []string{"message", "function_call", "custom_tool_call", "reasoning", "web_search_call", "local_shell_call"}
	item := func(t *rapid.T) string {
		return fmt.Sprintf(`{"type":%q,"call_id":"c","name":%q,"arguments":"{}","input":"x","action":{},"content":[{"text":"t"}],"phase":%q}`,
			rapid.SampledFrom(types).Draw(t, "type"), rapid.SampledFrom([]string{"f", "parallel"}).Draw(t, "name"),
			rapid.SampledFrom([]string{"", "p"}).Draw(t, "phase"))
	}
	event := rapid.Custom(func(t *rapid.T) string {
		index := rapid.SampledFrom([]string{"", `"output_index":0,`, `"output_index":1,`, `"output_index":2,`}).Draw(t, "index")
		content := rapid.SampledFrom([]string{"", `"content_index":1,`, `"summary_index":1,`}).Draw(t, "content")
		kind := rapid.SampledFrom([]string{"output_item.added", "output_item.done", "output_text.delta", "refusal.delta", "output_text.done", "reasoning_summary_text.delta",
			"reasoning_text.delta", "function_call_arguments.delta", "function_call_arguments.done", "custom_tool_call_input.delta", "custom_tool_call_input.done"}).Draw(t, "event")
		return fmt.Sprintf(`{"type":"response.%s",%s%s"delta":"d","text":"t","arguments":"{}","input":"i","item":%s}`, kind, index, content, item(t))
	})
	rapid.Check(t, func(t *rapid.T) {
		evs := rapid.SliceOfN(event, 0, 12).Draw(t, "events")
		res, err := openai.DecodeResponses(200, true, []byte(events(append(evs, done)...)))
		if err != nil && !disagrees(err) || err == nil && res.Finish == "" {
			t.Fatalf("%v", err)
		}
	})
	delta := rapid.Custom(func(t *rapid.T) string {
		index := rapid.SampledFrom([]string{"", `"index":0,`, `"index":1,`}).Draw(t, "index")
		id := rapid.SampledFrom([]string{"", `"id":"a",`, `"id":"b",`, `"id":"",`}).Draw(t, "id")
		name := rapid.SampledFrom([]string{"", `"name":"f",`, `"name":"",`}).Draw(t, "name")
		args := rapid.SampledFrom([]string{`null`, `""`, `"{}"`, `{}`}).Draw(t, "args")
		call := fmt.Sprintf(`{%s%s"function":{%s"arguments":%s}}`, index, id, name, args)
		return rapid.SampledFrom([]string{`{"content":"c"}`, `{"reasoning":"r"}`, `{"reasoning_content":"r"}`, `{"refusal":"r"}`, `{"reasoning_details":[{"index":0,"text":"d"}]}`,
			`{"content":[{"type":"thinking","thinking":[{"text":"x"}]},{"type":"text","text":"y"}]}`, `{"function_call":{"name":"g","arguments":"{"}}`, `{"tool_calls":[` + call + `]}`}).Draw(t, "delta")
	})
	rapid.Check(t, func(t *rapid.T) {
		ds := rapid.SliceOfN(delta, 0, 12).Draw(t, "deltas")
		stream := deltas("stop", ds...)
		res, err := openai.DecodeChat(200, true, []byte(stream))
		// The common members of chunks are read once. The result must not depend on it.
		n := 0
		padded := regexp.MustCompile(`data: \{`).ReplaceAllStringFunc(stream,
			func(s string) string { n++; return fmt.Sprintf(`%s"n":%d,`, s, n) })
		if got, want := outcome(res, err), outcome(openai.DecodeChat(200, true, []byte(padded))); got != want {
			t.Fatalf("got %s\nwant %s\nof %s", got, want, stream)
		}
		if err != nil && !strings.Contains(err.Error(), "went on after the next call had begun") && !disagrees(err) {
			t.Fatalf("%v", err)
		}
	})
}

// disagrees reports whether err is about statements of a stream that differ.
func disagrees(err error) bool {
	var e *llm.ProviderError
	return errors.As(err, &e) && e.Code == llm.CodeStreamInconsistent
}
