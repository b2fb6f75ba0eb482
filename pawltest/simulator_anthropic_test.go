package pawltest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// askClaude sends a request as a client of Anthropic's does.
func askClaude(t *testing.T, root, rest string) (*http.Response, string, error) {
	t.Helper()
	return send(t, root+"/v1/messages", `{"model":"claude","max_tokens":100,`+claudeTools+`,`+rest+`}`,
		http.Header{"X-Api-Key": {"sesame"}, "Anthropic-Version": {"2023-06-01"}})
}

func send(t *testing.T, url, body string, header http.Header) (*http.Response, string, error) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	res, err := tr.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

func object(t *testing.T, body string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

const claudeAsks = `"messages":[` + user + `]`

// everything is a turn with a part of each kind.
var everything = script.Together(script.Think("Let me see it."), script.Say("I look."), script.Call("look", `{"at":"é <far>"}`), script.Call("look", `{}`),
	script.Turn{Usage: &llm.Usage{Input: 1000, Output: 200, Reasoning: 150, CacheRead: 900, CacheWrite: 40}})

func TestAnthropicWholeAndStreamed(t *testing.T) {
	s := simulate(t, script.New(everything), &pawltest.SimulatorOptions{Key: "sesame"})
	res, body, err := askClaude(t, s.Root, claudeAsks)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatal(res, err, body)
	}
	whole := object(t, body)
	signature := dig(whole, "content", 0, "signature")
	want := []any{
		map[string]any{"type": "thinking", "thinking": "Let me see it.", "signature": signature},
		map[string]any{"type": "text", "text": "I look."},
		map[string]any{"type": "tool_use", "id": "call_1_0", "name": "look", "input": map[string]any{"at": "é <far>"}},
		map[string]any{"type": "tool_use", "id": "call_1_1", "name": "look", "input": map[string]any{}},
	}
	if diff := cmp.Diff(whole["content"], any(want)); diff != "" || signature == "" {
		t.Errorf("signature %v; got -, want +\n%s", signature, diff)
	}
	usage := map[string]any{"input_tokens": 60., "cache_read_input_tokens": 900., "cache_creation_input_tokens": 40., "output_tokens": 200.,
		"output_tokens_details": map[string]any{"thinking_tokens": 150.}}
	if diff := cmp.Diff(whole["usage"], any(usage)); diff != "" || whole["stop_reason"] != "tool_use" {
		t.Errorf("stop_reason %v; got -, want +\n%s", whole["stop_reason"], diff)
	}

	_, body, err = askClaude(t, s.Root, `"stream":true,`+claudeAsks)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	joined := map[float64]string{}
	blocks := map[float64]map[string]any{}
	var last map[string]any
	for _, e := range events(t, body) {
		kind := e["type"].(string)
		at, _ := e["index"].(float64)
		switch kind {
		case "content_block_start":
			blocks[at] = e["content_block"].(map[string]any)
		case "content_block_delta":
			kind = dig(e, "delta", "type").(string)
			for _, field := range []string{"text", "thinking", "partial_json"} {
				if s, ok := dig(e, "delta", field).(string); ok {
					joined[at] += s
				}
			}
			if kind == "signature_delta" && dig(e, "delta", "signature") != signature {
				t.Errorf("streamed signature %v, whole %v", e, signature)
			}
		case "message_delta":
			last = e
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	if diff := cmp.Diff(kinds, []string{"message_start",
		"content_block_start", "ping", "thinking_delta", "signature_delta", "content_block_stop",
		"content_block_start", "text_delta", "content_block_stop",
		"content_block_start", "input_json_delta", "content_block_stop",
		"content_block_start", "input_json_delta", "content_block_stop", "message_delta", "message_stop"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(joined, map[float64]string{0: "Let me see it.", 1: "I look.", 2: `{"at":"é <far>"}`, 3: `{}`}); diff != "" {
		t.Error(diff)
	}
	if blocks[2]["id"] != "call_1_0" || blocks[3]["id"] != "call_1_1" || blocks[2]["name"] != "look" {
		t.Errorf("blocks %v", blocks)
	}
	if diff := cmp.Diff(last["usage"], any(usage)); diff != "" || dig(last, "delta", "stop_reason") != "tool_use" {
		t.Errorf("last %v\n%s", last, diff)
	}
}

func TestAnthropicEnds(t *testing.T) {
	for _, test := range []struct {
		turn         script.Turn
		whole        string // stop_reason; "" means an error
		event, wants string // of the stream
	}{
		{script.Say("x"), "end_turn", "message_stop", "end_turn"},
		{script.Cut(script.Say("x")), "max_tokens", "message_stop", "max_tokens"},
		{script.Turn{Finish: llm.FinishReasonContentFilter}, "refusal", "message_stop", "refusal"},
		{script.Turn{Finish: "pause_turn"}, "pause_turn", "message_stop", "pause_turn"},
		{script.Cut(script.Call("look", `{"at":"th`)), "max_tokens", "message_stop", `{\"at\":\"t`},
		{script.Together(script.Say("x"), script.Fail(errors.New("line down"))), "", "error", "line down"},
	} {
		s := simulate(t, script.New(test.turn), nil)
		res, body, err := askClaude(t, s.Root, claudeAsks)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := object(t, body)["stop_reason"].(string); got != test.whole || (res.StatusCode == 200) != (test.whole != "") {
			t.Errorf("%+v: got %d %s", test.turn, res.StatusCode, body)
		}
		_, body, err = askClaude(t, s.Root, `"stream":true,`+claudeAsks)
		if err != nil {
			t.Fatal(err)
		}
		all := events(t, body)
		if got := all[len(all)-1]["type"]; got != test.event || !strings.Contains(body, test.wants) {
			t.Errorf("%+v: got %s", test.turn, body)
		}
	}
}

// Content of this API alone is written as the script has it, whole and streamed, and may come back.
func TestAnthropicServerTools(t *testing.T) {
	block := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"rain"}}`
	s := simulate(t, script.New(script.Turn{Parts: []llm.Part{
		llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(block)}}, llm.Reasoning{},
		llm.Text{Text: "Rain."}}},
		script.Say("more")), nil)
	_, body, err := askClaude(t, s.Root, claudeAsks)
	if err != nil {
		t.Fatal(err)
	}
	whole := object(t, body)
	if diff := cmp.Diff(dig(whole, "content", 0), any(object(t, block))); diff != "" {
		t.Error(diff)
	}
	if dig(whole, "content", 1, "type") != "redacted_thinking" {
		t.Errorf("reasoning without text is %v", dig(whole, "content", 1))
	}
	_, streamed, err := askClaude(t, s.Root, `"stream":true,`+claudeAsks)
	if err != nil || !strings.Contains(streamed, `"content_block":`+block) || !strings.Contains(streamed, `"content_block":{"data":`) {
		t.Errorf("%v: %s", err, streamed)
	}
	content, _ := json.Marshal(whole["content"])
	res, body, err := askClaude(t, s.Root, `"messages":[`+user+`,{"role":"assistant","content":`+string(content)+`},`+user+`]`)
	if err != nil || res.StatusCode != 200 || !strings.Contains(body, "more") {
		t.Errorf("sent back: %v %s", err, body)
	}
}

func TestAnthropicRefusals(t *testing.T) {
	s := simulate(t, script.New(everything, script.Say("yes")), &pawltest.SimulatorOptions{Key: "sesame"})
	_, body, err := askClaude(t, s.Root, claudeAsks)
	if err != nil {
		t.Fatal(err)
	}
	signed, _ := json.Marshal(dig(object(t, body), "content", 0))
	calls := func(first string) string {
		return `"messages":[` + user + `,{"role":"assistant","content":[` + first + `{"type":"tool_use","id":"a","name":"look","input":{}}]},` + onlyGotA + `]`
	}
	version := http.Header{"X-Api-Key": {"sesame"}, "Anthropic-Version": {"2023-06-01"}}
	without := func(name string) http.Header {
		h := version.Clone()
		h.Del(name)
		return h
	}
	for name, test := range map[string]struct {
		rest   string
		header http.Header
		status int
		kind   string
		want   string
	}{
		"its own thinking": {calls(string(signed) + ","), version, 200, "", ""},
		// Thinking is not enabled in the request.
		"thinking left out":    {calls(""), version, 200, "", ""},
		"thinking changed":     {calls(strings.Replace(string(signed), "Let me see", "Let us see", 1) + ","), version, 400, "invalid_request_error", "Invalid `signature` in `thinking` block"},
		"signature changed":    {calls(strings.Replace(string(signed), `"signature":"`, `"signature":"x`, 1) + ","), version, 400, "invalid_request_error", "Invalid `signature`"},
		"another's thinking":   {calls(mused + ","), version, 400, "invalid_request_error", "Invalid `signature`"},
		"redacted by another":  {calls(`{"type":"redacted_thinking","data":"x"},`), version, 400, "invalid_request_error", "Invalid `data`"},
		"thinking lost":        {`"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},` + calls(""), version, 400, "invalid_request_error", "must begin with a thinking block"},
		"dangling call":        {`"messages":[` + user + `,` + onlyUseA + `,` + user + `]`, version, 400, "invalid_request_error", "has no result"},
		"wrong key":            {claudeAsks, without("X-Api-Key"), 401, "authentication_error", "x-api-key"},
		"no version":           {claudeAsks, without("Anthropic-Version"), 400, "invalid_request_error", "anthropic-version"},
		"a script, played out": {`"messages":[` + user + `,` + claudeSays + `,` + user + `,` + claudeSays + `,` + user + `]`, version, 400, "invalid_request_error", "turn 3"},
	} {
		res, body, err := send(t, s.Root+"/v1/messages", `{"model":"claude","max_tokens":100,`+test.rest+`,`+claudeTools+`}`, test.header)
		if err != nil {
			t.Fatal(err)
		}
		got := object(t, body)
		kind, _ := dig(got, "error", "type").(string)
		if res.StatusCode != test.status || kind != test.kind || !strings.Contains(body, test.want) {
			t.Errorf("%s: got %d %s, want %d %s with %q", name, res.StatusCode, body, test.status, test.kind, test.want)
		}
		if test.status != 200 && (got["type"] != "error" || got["request_id"] == "" || res.Header.Get("Request-Id") == "") {
			t.Errorf("%s: not the shape of an error: %s %v", name, body, res.Header)
		}
	}
}

// Errors have each API's own status, shape and header.
func TestErrorsOfEachAPI(t *testing.T) {
	for name, test := range map[string]struct {
		path, body, want string
		retryAfter       string
		fault            pawltest.Fault
	}{
		"chat 429":      {"/v1/chat/completions", chatQuestion + `}`, `"code":"rate_limit_exceeded"`, "7", pawltest.Fault{Status: 429, RetryAfter: "7"}},
		"anthropic 429": {"/v1/messages", `{}`, `"type":"rate_limit_error"`, "7", pawltest.Fault{Status: 429, RetryAfter: "7"}},
		"anthropic 529": {"/v1/messages", `{}`, `"type":"overloaded_error"`, "", pawltest.Fault{Status: 529}},
		"anthropic own": {"/v1/messages", `{}`, `"type":"billing_error"`, "", pawltest.Fault{Status: 400, Code: "billing_error"}},
		"gemini 429":    {"/v1beta/models/m:generateContent", `{}`, `"retryDelay":"7s"`, "", pawltest.Fault{Status: 429, RetryAfter: "7"}},
		"gemini 503":    {"/v1beta/models/m:streamGenerateContent", `{}`, `"status":"UNAVAILABLE"`, "", pawltest.Fault{Status: 503}},
		"gemini date":   {"/v1beta/models/m:generateContent", `{}`, `RESOURCE_EXHAUSTED`, "Wed, 21 Oct 2026 07:28:00 GMT", pawltest.Fault{Status: 429, RetryAfter: "Wed, 21 Oct 2026 07:28:00 GMT"}},
	} {
		s := simulate(t, script.New(script.Say("x")), &pawltest.SimulatorOptions{Fault: pawltest.Faults(&test.fault)})
		res, body, err := send(t, s.Root+test.path, test.body, http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != test.fault.Status || !strings.Contains(body, test.want) ||
			res.Header.Get("Retry-After") != test.retryAfter {
			t.Errorf("%s: got %d %s %v, want %s", name, res.StatusCode, body, res.Header, test.want)
		}
	}
}

func TestReadAnthropic(t *testing.T) {
	tools := []*llm.ToolSpec{{Name: "look", Description: "Looks.", Input: []byte(`{"type":"object"}`)}}
	temperature, parallel := 1.0, false
	thinking := json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"x"}`)
	want := &llm.Request{Model: "m", Messages: []llm.Message{llm.System("Be brief."), llm.User("hi"),
		llm.Assistant(llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "anthropic", Data: thinking}}, llm.Text{Text: "I look."},
			llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at": 1}`)}),
		llm.Results(llm.ToolResult{CallID: "a", IsError: true,
			Parts: []llm.Part{llm.Text{Text: "rain"}, llm.Media{MIME: "image/png", Data: []byte{1, 2, 3}}}}),
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "And this?"}, llm.Media{URL: "https://example.com/x.png"}, llm.Media{MIME: "application/pdf", URL: "https://example.com/x.pdf"}}},
	}, Tools: tools, Choice: llm.Named("look"), Output: []byte(`{"type":"object"}`),
		Settings: llm.Settings{MaxTokens: 9, Temperature: &temperature, StopSequences: []string{"END"}, Effort: "low",
			Parallel: &parallel}}
	got, err := pawltest.ReadRequest(pawltest.Anthropic, []byte(`{"model":"m","system":"Be brief.","max_tokens":9,"temperature":1,"stream":true,
		"stop_sequences":["END"],"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},
		"tool_choice":{"type":"tool","name":"look","disable_parallel_tool_use":true},
		"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"look","description":"Looks.","input_schema":{"type":"object"}}],
		"messages":[{"role":"user","content":"hi"},
			{"role":"assistant","content":[`+string(thinking)+`,{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"look","input":{"at": 1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"rain"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}]},
				{"type":"text","text":"And this?"},{"type":"image","source":{"type":"url","url":"https://example.com/x.png"}},
				{"type":"document","source":{"type":"url","url":"https://example.com/x.pdf"}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, got), asJSON(t, want)); diff != "" || got.Whole {
		t.Errorf("got -, want +\n%s", diff)
	}
}

// Each fault of a stream has its documented effect, over every API.
func TestFaultsOfEvents(t *testing.T) {
	data := func(body string) []string {
		var all []string
		for line := range strings.SplitSeq(body, "\n") {
			if d, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r"), "data: "); ok {
				all = append(all, d)
			}
		}
		return all
	}
	for api, ask := range map[string]struct{ path, body string }{
		pawltest.Chat:      {"/v1/chat/completions", chatQuestion + `,"stream":true}`},
		pawltest.Responses: {"/v1/responses", `{"model":"m","input":"hi","stream":true}`},
		pawltest.Anthropic: {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,` + claudeAsks + `}`},
		pawltest.Gemini:    {"/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[` + asks + `]}`},
	} {
		get := func(f pawltest.Fault) (*http.Response, string, error) {
			s := simulate(t, script.New(script.Say("A somewhat longer answer.")), &pawltest.SimulatorOptions{Fault: pawltest.Faults(&f)})
			return send(t, s.Root+ask.path, ask.body, http.Header{"Anthropic-Version": {"2023-06-01"}})
		}
		_, plain, err := get(pawltest.Fault{})
		if err != nil {
			t.Fatal(api, err)
		}
		right := data(plain)
		if len(right) < 4 {
			t.Fatalf("%s: only %d events: %s", api, len(right), plain)
		}
		for name, test := range map[string]struct {
			fault pawltest.Fault
			want  []string
		}{
			"repeat":       {pawltest.Fault{Repeat: 2}, slices.Insert(slices.Clone(right), 2, right[1])},
			"swap":         {pawltest.Fault{Swap: 2}, append([]string{right[0], right[2], right[1]}, right[3:]...)},
			"swap at end":  {pawltest.Fault{Swap: len(right)}, right},
			"insert":       {pawltest.Fault{Insert: "data: {garbage\n\n", After: 3}, slices.Insert(slices.Clone(right), 3, "{garbage")},
			"insert first": {pawltest.Fault{Insert: "data: <html>\n\n"}, append([]string{"<html>"}, right...)},
		} {
			_, body, err := get(test.fault)
			if err != nil {
				t.Errorf("%s, %s: %v", api, name, err)
			}
			if diff := cmp.Diff(data(body), test.want); diff != "" {
				t.Errorf("%s, %s: got -, want +\n%s", api, name, diff)
			}
		}
		for _, n := range []int{1, 17, len(plain) - 1} {
			_, body, err := get(pawltest.Fault{Break: true, Bytes: n})
			if err == nil || body != plain[:n] {
				t.Errorf("%s, broken after %d bytes: %v, got %q", api, n, err, body)
			}
		}
		if res, body, err := get(pawltest.Fault{ContentType: "text/plain"}); err != nil || body != plain || res.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s, another content type: %v %v", api, err, res)
		}
		if res, body, err := get(pawltest.Fault{Status: 502, Body: []byte("<html>"), ContentType: "text/html"}); err != nil ||
			res.StatusCode != 502 || body != "<html>" {
			t.Errorf("%s, HTML: %v %v %s", api, err, res, body)
		}
		if res, body, err := get(pawltest.Fault{Body: []byte{}}); err != nil || res.StatusCode != 200 || body != "" {
			t.Errorf("%s, empty body: %v %v %s", api, err, res, body)
		}
	}
}

// A stalled stream waits at the given event, and then continues.
func TestStall(t *testing.T) {
	gate := make(chan struct{})
	s := simulate(t, script.New(script.Say("A somewhat longer answer.")),
		&pawltest.SimulatorOptions{Fault: pawltest.Faults(&pawltest.Fault{Stall: gate, After: 2})})
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Post(s.Root+"/v1beta/models/m:streamGenerateContent?alt=sse", "application/json", strings.NewReader(`{"contents":[`+asks+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	head, seen := make([]byte, 1), ""
	for strings.Count(seen, "\r\n\r\n") < 2 {
		if _, err := res.Body.Read(head); err != nil {
			t.Fatal(err)
		}
		seen += string(head)
	}
	if strings.Contains(seen, "STOP") {
		t.Errorf("two events hold the end: %s", seen)
	}
	close(gate)
	rest, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(rest), "STOP") {
		t.Errorf("%v: %s", err, fmt.Sprint(string(rest)))
	}
}
