package pawltest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

func askGemini(t *testing.T, s *pawltest.Simulator, model, method string, contents ...string) (*http.Response, string) {
	t.Helper()
	res, body, err := send(t, s.Root+"/v1beta/models/"+model+":"+method, `{`+declared+`,"contents":[`+strings.Join(contents, ",")+`]}`,
		http.Header{"X-Goog-Api-Key": {"sesame"}})
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

const streamGemini = "streamGenerateContent?alt=sse"

// partsOf joins the parts of chunks and returns them with the last finish reason and usage.
func partsOf(chunks []map[string]any) (parts []any, finish, usage any) {
	for _, c := range chunks {
		list, _ := dig(c, "candidates", 0, "content", "parts").([]any)
		parts = append(parts, list...)
		if f := dig(c, "candidates", 0, "finishReason"); f != nil {
			finish = f
		}
		if u := c["usageMetadata"]; u != nil {
			usage = u
		}
	}
	return parts, finish, usage
}

func TestGeminiWholeAndStreamed(t *testing.T) {
	for _, noIDs := range []bool{false, true} {
		s := simulate(t, script.New(everything), &pawltest.SimulatorOptions{Key: "sesame", NoIDs: noIDs})
		res, body := askGemini(t, s, "gemini-3", "generateContent", asks)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
			t.Fatal(res, body)
		}
		whole := object(t, body)
		parts, finish, usage := partsOf([]map[string]any{whole})
		onCall, onText := dig(parts, 2, "thoughtSignature"), dig(parts, 1, "thoughtSignature")
		call := func(args map[string]any, id string) map[string]any {
			c := map[string]any{"name": "look", "args": args}
			if !noIDs {
				c["id"] = id
			}
			return c
		}
		want := []any{
			map[string]any{"text": "Let me see it.", "thought": true},
			map[string]any{"text": "I look.", "thoughtSignature": onText},
			map[string]any{"functionCall": call(map[string]any{"at": "é <far>"}, "call_1_0"), "thoughtSignature": onCall},
			map[string]any{"functionCall": call(map[string]any{}, "call_1_1")},
		}
		if diff := cmp.Diff(parts, want); diff != "" || onCall == nil || onText == nil || onCall == onText {
			t.Errorf("got -, want +\n%s", diff)
		}
		figures := map[string]any{"promptTokenCount": 1000., "candidatesTokenCount": 50., "thoughtsTokenCount": 150., "cachedContentTokenCount": 900., "totalTokenCount": 1200.}
		if diff := cmp.Diff(usage, any(figures)); diff != "" || finish != "STOP" || whole["modelVersion"] != "gemini-3" {
			t.Errorf("finish %v\n%s", finish, diff)
		}

		res, body = askGemini(t, s, "gemini-3", streamGemini, asks)
		if strings.Count(body, "\r\n\r\n") != strings.Count(body, "data: ") || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("lines do not end in CRLF: %q", body)
		}
		streamed, finish, usage := partsOf(events(t, body))
		var got []any
		for _, p := range streamed { // as a client joins them
			p := p.(map[string]any)
			if n := len(got); p["text"] != nil && n > 0 && dig(got, n-1, "text") != nil && dig(got, n-1, "thought") == p["thought"] {
				last := got[n-1].(map[string]any)
				last["text"] = last["text"].(string) + p["text"].(string)
				if p["thoughtSignature"] != nil {
					last["thoughtSignature"] = p["thoughtSignature"]
				}
			} else if p["text"] != "" {
				got = append(got, p)
			}
		}
		if diff := cmp.Diff(got, want); diff != "" || finish != "STOP" {
			t.Errorf("streamed -, whole +\n%s", diff)
		}
		if diff := cmp.Diff(usage, any(figures)); diff != "" {
			t.Error(diff)
		}
		// Without alt=sse a stream is one JSON array.
		_, body = askGemini(t, s, "gemini-3", "streamGenerateContent", asks)
		var array []map[string]any
		if err := json.Unmarshal([]byte(body), &array); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if again, _, _ := partsOf(array); len(again) != len(streamed) || len(array) < 4 {
			t.Errorf("%d parts in the array, %d in the events", len(again), len(streamed))
		}
	}
}

func TestGeminiArgumentsInPieces(t *testing.T) {
	s := simulate(t, script.New(script.Together(script.Call("look", `{"at":"sky","in":[1,{"b":true}],"x":null}`), script.Call("find", `{}`))), nil)
	_, body, err := send(t, s.Root+"/v1beta/models/m:"+streamGemini, `{`+declared+`,"contents":[`+asks+`],
		"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}}`, http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	parts, _, _ := partsOf(events(t, body))
	var got []string
	for _, p := range parts {
		if c := dig(p, "functionCall"); c != nil {
			b, _ := json.Marshal(c)
			got = append(got, string(b))
		}
	}
	if diff := cmp.Diff(got, []string{
		`{"id":"call_1_0","name":"look","willContinue":true}`,
		`{"partialArgs":[{"jsonPath":"$.at","stringValue":"sky","willContinue":true}],"willContinue":true}`,
		`{"partialArgs":[{"jsonPath":"$.at","stringValue":""}],"willContinue":true}`,
		`{"partialArgs":[{"jsonPath":"$.in[0]","numberValue":1}],"willContinue":true}`,
		`{"partialArgs":[{"boolValue":true,"jsonPath":"$.in[1].b"}],"willContinue":true}`,
		`{"partialArgs":[{"jsonPath":"$.x","nullValue":"NULL_VALUE"}],"willContinue":true}`,
		`{}`,
		`{"args":{},"id":"call_1_1","name":"find"}`,
	}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}

func TestGeminiEnds(t *testing.T) {
	for _, test := range []struct {
		turn   script.Turn
		finish string
		want   string
	}{
		{script.Say("x"), "STOP", `"text":"x"`},
		{script.Call("look", `{}`), "STOP", "functionCall"},
		{script.Cut(script.Say("x")), "MAX_TOKENS", ""},
		{script.Cut(script.Call("look", `{"at":"th`)), "MAX_TOKENS", ""},
		{script.Turn{Finish: llm.FinishReasonContentFilter}, "SAFETY", ""},
		{script.Turn{Finish: "RECITATION"}, "RECITATION", ""},
		{script.Call("look", `{"at": [1`), "MALFORMED_FUNCTION_CALL", "Malformed function call: look("},
	} {
		s := simulate(t, script.New(test.turn), nil)
		_, body := askGemini(t, s, "m", "generateContent", asks)
		if _, finish, _ := partsOf([]map[string]any{object(t, body)}); finish != test.finish ||
			!strings.Contains(body, test.want) {
			t.Errorf("%+v: got %s", test.turn, body)
		}
		_, body = askGemini(t, s, "m", streamGemini, asks)
		if _, finish, _ := partsOf(events(t, body)); finish != test.finish || !strings.Contains(body, test.want) {
			t.Errorf("%+v: streamed %s", test.turn, body)
		}
		if test.want == "" && strings.Contains(body, "functionCall") {
			t.Errorf("%+v: a call that was cut is there: %s", test.turn, body)
		}
	}
}

func TestGeminiRefusals(t *testing.T) {
	s := simulate(t, script.New(everything, script.Say("yes")), &pawltest.SimulatorOptions{Key: "sesame"})
	_, body := askGemini(t, s, "gemini-3-pro-preview", "generateContent", asks)
	parts, _, _ := partsOf([]map[string]any{object(t, body)})
	first, _ := json.Marshal(parts[2])
	onText, _ := json.Marshal(parts[1])
	signature := dig(parts, 2, "thoughtSignature").(string)
	answered := `{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"1"}}}]}`
	turn := func(parts ...string) []string {
		return []string{asks, `{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`, answered}
	}
	own := string(first)
	for name, test := range map[string]struct {
		model    string
		contents []string
		status   int
		want     string
	}{
		"its own":                {"gemini-3-pro", turn(string(onText), own), 200, ""},
		"a placeholder":          {"gemini-3-pro", turn(strings.Replace(own, signature, "skip_thought_signature_validator", 1)), 200, ""},
		"missing":                {"gemini-3-pro", turn(strings.Replace(own, `"thoughtSignature":"`+signature+`"`, `"thoughtSignature":""`, 1)), 400, "missing its thoughtSignature"},
		"missing, older model":   {"gemini-2.5-pro", turn(strings.Replace(own, `"thoughtSignature":"`+signature+`"`, `"thoughtSignature":""`, 1)), 200, ""},
		"changed":                {"gemini-3-pro", turn(strings.Replace(own, signature, "x"+signature, 1)), 400, "Corrupted thought signature"},
		"on another part":        {"gemini-2.5-pro", turn(`{"text":"I look.","thoughtSignature":"`+signature+`"}`, `{"functionCall":{"name":"look"}}`), 400, "Corrupted thought signature"},
		"on another call":        {"gemini-2.5-pro", turn(strings.Replace(own, `"name":"look"`, `"name":"find"`, 1)), 400, "a result for look"},
		"fewer results":          {"gemini-3-pro", []string{asks, callsBoth, answerLook}, 400, "2 calls, but 1 results"},
		"text of another, moved": {"gemini-2.5-pro", []string{asks, strings.Replace(says, `"so"`, `"so","thoughtSignature":"`+signature+`"`, 1), asks}, 400, "Corrupted"},
	} {
		res, body := askGemini(t, s, test.model, "generateContent", test.contents...)
		if res.StatusCode != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: got %d %s, want %d with %q", name, res.StatusCode, body, test.status, test.want)
		}
		if test.status == 400 && (dig(object(t, body), "error", "status") != "INVALID_ARGUMENT" || dig(object(t, body), "error", "code") != 400.) {
			t.Errorf("%s: not the shape of an error: %s", name, body)
		}
	}
	res, body, err := send(t, s.Root+"/v1beta/models/m:generateContent?key=wrong", `{}`, http.Header{})
	if err != nil || res.StatusCode != 400 || !strings.Contains(body, "API_KEY_INVALID") {
		t.Errorf("a wrong key: %v %v %s", err, res, body)
	}
	res, _, err = send(t, s.Root+"/v1beta/models/m:generateContent?key=sesame", `{"contents":[`+asks+`]}`, http.Header{})
	if err != nil || res.StatusCode != 200 {
		t.Errorf("a key in the address: %v %v", err, res)
	}
}

func TestReadGemini(t *testing.T) {
	topP := 0.5
	tools := []*llm.ToolSpec{{Name: "look", Description: "Looks.", Input: []byte(`{"type":"object"}`)}, {Name: "find"}}
	signed := json.RawMessage(`{"functionCall":{"name":"look","args":{"at": 1}},"thoughtSignature":"x"}`)
	want := &llm.Request{Messages: []llm.Message{llm.System("Be brief."), llm.User("hi"),
		llm.Assistant(llm.Reasoning{Text: "hm"},
			llm.ToolCall{ID: "call_1", Name: "look", Args: []byte(`{"at": 1}`), Opaque: &llm.Opaque{Provider: "gemini", Data: signed}},
			llm.ToolCall{ID: "f", Name: "find", Args: []byte(`{}`)}),
		llm.Results(llm.ToolResult{CallID: "f", IsError: true, Parts: []llm.Part{llm.Text{Text: "gone"}}},
			llm.ToolResult{CallID: "call_1", Parts: []llm.Part{llm.Text{Text: `{"sky":"grey"}`}, llm.Media{MIME: "image/png", Data: []byte{1, 2, 3}}}}),
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "And this?"}, llm.Media{MIME: "image/png", URL: "https://example.com/x.png"}}},
	}, Tools: tools, Choice: llm.Named("look"), Settings: llm.Settings{MaxTokens: 9, TopP: &topP, StopSequences: []string{"END"},
		Effort: "low"}, Output: []byte(`{"type":"object"}`)}
	for name, body := range map[string]string{
		"camelCase": `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]},
			{"role":"model","parts":[{"text":"hm","thought":true},` + string(signed) + `,{"functionCall":{"id":"f","name":"find"}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"f","name":"find","response":{"error":"gone"}}},
				{"functionResponse":{"name":"look","response":{"sky":"grey"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQID"}}]}},
				{"text":"And this?"},{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/x.png"}}]}],
			"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"type":"OBJECT"}},{"name":"find"}]}],
			"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}},
			"generationConfig":{"maxOutputTokens":9,"topP":0.5,"stopSequences":["END"],"responseMimeType":"application/json","responseSchema":{"type":6},"thinkingConfig":{"thinkingLevel":"LOW"}}}`,
		"snake_case": `{"system_instruction":{"parts":{"text":"Be brief."}},"contents":[{"parts":[{"text":"hi"}]},
			{"role":"model","parts":[{"text":"hm","thought":true},` + string(signed) + `,{"function_call":{"id":"f","name":"find"}}]},
			{"role":"function","parts":[{"function_response":{"id":"f","name":"find","response":{"error":"gone"}}},
				{"function_response":{"name":"look","response":{"sky":"grey"},"parts":[{"inline_data":{"mime_type":"image/png","data":"AQID"}}]}},
				{"text":"And this?"},{"file_data":{"mime_type":"image/png","file_uri":"https://example.com/x.png"}}]}],
			"tools":{"function_declarations":[{"name":"look","description":"Looks.","parameters_json_schema":{"type":"object"}},{"name":"find"}]},
			"tool_config":{"function_calling_config":{"mode":"any","allowed_function_names":["look"]}},
			"generation_config":{"max_output_tokens":9,"top_p":0.5,"stop_sequences":["END"],"response_json_schema":{"type":"object"},"thinking_config":{"thinking_level":"low"}}}`,
	} {
		got, err := pawltest.ReadRequest(pawltest.Gemini, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(asJSON(t, got), asJSON(t, want)); diff != "" {
			t.Errorf("%s: got -, want +\n%s", name, diff)
		}
	}
}
