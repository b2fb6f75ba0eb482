package provider_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/plays"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// Of what a server sends after the finish reason, only the usage counts. A notice says so.
func TestAfterTheFinishReason(t *testing.T) {
	chat := func(delta, reason string) string {
		if reason != "null" {
			reason = `"` + reason + `"`
		}
		return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
	}
	const chatCall = `{"tool_calls":[{"index":1,"id":"t2","function":{"name":"f","arguments":"{}"}}]}`
	const chatUsage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}`
	hi := chat(`{"content":"hi"}`, "null")
	stop := chat(`{}`, "stop")

	block := func(index, kind, delta string) []string {
		return []string{
			`{"type":"content_block_start","index":` + index + `,"content_block":` + kind + `}`,
			`{"type":"content_block_delta","index":` + index + `,"delta":` + delta + `}`,
			`{"type":"content_block_stop","index":` + index + `}`,
		}
	}
	text := func(index, s string) []string {
		return block(index, `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+s+`"}`)
	}
	begin := `{"type":"message_start","message":{"id":"m","content":[]}}`
	ends := func(reason string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"input_tokens":9,"output_tokens":5}}`
	}
	claude := func(after ...string) []string {
		all := append([]string{begin}, text("0", "hi")...)
		return append(append(all, ends("end_turn")), after...)
	}
	halt := `{"type":"message_stop"}`

	gemini := func(part, reason string) string {
		if reason != "" {
			reason = `,"finishReason":"` + reason + `"`
		}
		return `{"candidates":[{"content":{"parts":[` + part + `]}` + reason + `}]}`
	}
	const geminiCall = `{"functionCall":{"name":"f","args":{}}}`
	const geminiUsage = `{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5}}`

	item := `{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`
	say := func(s string) string {
		return `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"` + s + `"}`
	}
	completed := `{"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":5}}}`
	function := `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}`

	const answer = `text "hi"; stop`
	const counted = answer + "; in 9 out 5"
	for _, test := range []struct {
		api, name string
		events    []string
		want      string
		noted     bool
	}{
		{pawltest.Chat, "text", []string{hi, stop, chat(`{"content":" and more"}`, "null"), "[DONE]"}, answer, true},
		{pawltest.Chat, "text with a reason", []string{hi, stop, chat(`{"content":" and more"}`, "stop"), "[DONE]"}, answer, true},
		{pawltest.Chat, "a list of texts", []string{hi, stop, chat(`{"content":[{"type":"text","text":"more"}]}`, "null"), "[DONE]"}, answer, true},
		{pawltest.Chat, "reasoning", []string{hi, stop, chat(`{"reasoning_content":"hm"}`, "null"), chat(`{"reasoning":"hm"}`, "null"), "[DONE]"}, answer, true},
		{pawltest.Chat, "a call", []string{hi, stop, chat(chatCall, "null"), "[DONE]"}, answer, true},
		{pawltest.Chat, "a call with its reason", []string{hi, stop, chat(chatCall, "tool_calls"), "[DONE]"}, answer, true},
		{pawltest.Chat, "usage", []string{hi, stop, chatUsage, "[DONE]"}, counted, false},
		{pawltest.Chat, "usage behind text", []string{hi, stop, chat(`{"content":" and more"}`, "null"), chatUsage, "[DONE]"}, counted, true},
		{pawltest.Chat, "the reason again", []string{hi, stop, chat(`{"content":"","role":"assistant"}`, "stop"), "[DONE]"}, answer, false},
		{pawltest.Chat, "it was cut after all", []string{hi, stop, chat(`{}`, "length"), "[DONE]"}, `text "hi"; length`, false},
		{pawltest.Chat, "it was not cut after all", []string{hi, chat(`{}`, "length"), stop, "[DONE]"}, `text "hi"; length`, false},
		{pawltest.Chat, "filtered after all", []string{hi, chat(`{}`, "tomorrow"), chat(`{}`, "content_filter"), "[DONE]"}, `text "hi"; content_filter`, false},

		{pawltest.Anthropic, "text", claude(append(text("1", "more"), halt)...), counted, true},
		{pawltest.Anthropic, "text of an old block", claude(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"more"}}`, halt), counted, true},
		{pawltest.Anthropic, "thinking", claude(append(block("1", `{"type":"thinking","thinking":""}`, `{"type":"thinking_delta","thinking":"hm"}`), halt)...), counted, true},
		{pawltest.Anthropic, "a call", claude(append(block("1", `{"type":"tool_use","id":"t","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"{}"}`), ends("tool_use"), halt)...), counted, true},
		{pawltest.Anthropic, "a second message", claude(append([]string{begin}, append(text("0", "no"), ends("end_turn"), halt)...)...), counted, true},
		{pawltest.Anthropic, "the reason again", claude(ends("end_turn"), halt), counted, false},
		{pawltest.Anthropic, "refused after all", claude(ends("refusal"), halt), `text "hi"; content_filter; in 9 out 5`, false},

		{pawltest.Gemini, "text", []string{gemini(`{"text":"h"}`, ""), gemini(`{"text":"i"}`, "STOP"), gemini(`{"text":" and more"}`, "")}, answer, true},
		{pawltest.Gemini, "text with a reason", []string{gemini(`{"text":"h"}`, ""), gemini(`{"text":"i"}`, "STOP"), gemini(`{"text":" and more"}`, "STOP")}, answer, true},
		{pawltest.Gemini, "text behind one event", []string{gemini(`{"text":"hi"}`, "STOP"), gemini(`{"text":" and more"}`, "")}, answer, true},
		{pawltest.Gemini, "a thought", []string{gemini(`{"text":"hi"}`, ""), gemini("", "STOP"), gemini(`{"text":"hm","thought":true}`, "")}, answer, true},
		{pawltest.Gemini, "a call", []string{gemini(`{"text":"hi"}`, ""), gemini("", "STOP"), gemini(geminiCall, "")}, answer, true},
		{pawltest.Gemini, "a call behind a cut", []string{gemini(`{"text":"hi"}`, "MAX_TOKENS"), gemini(geminiCall, "STOP")}, `text "hi"; length`, true},
		{pawltest.Gemini, "usage", []string{gemini(`{"text":"hi"}`, "STOP"), geminiUsage}, counted, false},
		{pawltest.Gemini, "STOP in each event", []string{gemini(`{"text":"h"}`, "STOP"), gemini(`{"text":"i"}`, "STOP"), gemini("", "STOP")}, answer, false},
		{pawltest.Gemini, "STOP in each event, and cut", []string{gemini(`{"text":"h"}`, "STOP"), gemini(`{"text":"i"}`, "MAX_TOKENS"), gemini(`{"text":"no"}`, "STOP")}, `text "hi"; length`, true},

		{pawltest.Responses, "text", []string{item, say("hi"), completed, say(" and more")}, counted, false},
		{pawltest.Responses, "a call", []string{item, say("hi"), completed, function}, counted, false},
		{pawltest.Responses, "another end", []string{item, say("hi"), completed, `{"type":"response.failed","response":{"status":"failed"}}`}, counted, false},
	} {
		t.Run(test.api+"/"+test.name, func(t *testing.T) {
			noted := false
			req := &llm.Request{Messages: []llm.Message{llm.User("Go.")}}
			var res llm.Response
			for d, err := range openAt(test.api, sends(wiretest.Events(test.events...))).Stream(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
				noted = noted || d.Notice != nil && strings.Contains(d.Notice.Text, "which was skipped")
				if err := res.Add(d); err != nil {
					t.Fatal(err)
				}
			}
			if got := wiretest.Render(&res); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if noted != test.noted {
				t.Errorf("noted %t, want %t", noted, test.noted)
			}
		})
	}
}

var endingRow = regexp.MustCompile("^\\| `([^`]+)` \\| (\\w+) \\|")

// A word of another API that says that a reply is not complete says so behind a gateway with Chat
// Completions too, in each form in which gateways pass it on. The page of finish reasons, which the
// tables write, has the words.
func TestForeignFinishReasons(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "finish-reasons.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	section := ""
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		row := endingRow.FindStringSubmatch(line)
		if row == nil || section == "" {
			continue
		}
		word, meaning := row[1], row[2]
		want := map[string]llm.FinishReason{
			"full":     llm.FinishReasonLength,
			"cut":      llm.FinishReasonLength,
			"paused":   llm.FinishReasonLength,
			"filtered": llm.FinishReasonContentFilter,
			"unusable": llm.FinishReasonError,
		}[meaning]
		if want == "" {
			continue
		}
		rows++
		for _, form := range []string{
			word,
			strings.ToUpper(word),
			strings.ToLower(word),
			strings.ReplaceAll(word, "_", "-"),
			"FinishReason." + word,
		} {
			message := `{"content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
			whole := `{"choices":[{"index":0,"message":` + message + `,"finish_reason":"` + form + `"}]}`
			for _, stream := range []bool{true, false} {
				body := whole
				if stream {
					body = wiretest.Events(strings.Replace(whole, `"message"`, `"delta"`, 1), "[DONE]")
				}
				res, err := tryReply(t, plays.Play{API: pawltest.Chat}, stream, sends(body))
				if err != nil || res.Finish != want {
					t.Errorf("%s of %s, stream %t: got %s, want %s", form, section, stream, wiretest.Outcome(res, err), want)
				}
			}
		}
	}
	if rows < 40 {
		t.Errorf("the page has only %d words for replies that are not complete", rows)
	}
}
