package pawltest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

func simulate(t *testing.T, m llm.Model, opts *pawltest.SimulatorOptions) *pawltest.Simulator {
	t.Helper()
	s, err := pawltest.NewSimulator(m, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post sends body and returns status and body of the answer. err is the error while it was read.
func post(t *testing.T, url, body string) (*http.Response, string, error) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// events returns the data of each event. It reports a name that differs from the type in the data.
func events(t *testing.T, body string) []map[string]any {
	t.Helper()
	var all []map[string]any
	name := ""
	for sc := bufio.NewScanner(strings.NewReader(body)); sc.Scan(); {
		switch line := sc.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = line[7:]
		case line == "data: [DONE]":
			all = append(all, map[string]any{"type": "[DONE]"})
		case strings.HasPrefix(line, "data: "):
			var o map[string]any
			if err := json.Unmarshal([]byte(line[6:]), &o); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if name != "" && o["type"] != name {
				t.Errorf("event %s holds type %v", name, o["type"])
			}
			name = ""
			all = append(all, o)
		}
	}
	return all
}

// dig returns v at a path of keys and indices.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

const chatQuestion = `{"model":"m","messages":[` + user + `],` + chatTools

func TestChatWhole(t *testing.T) {
	s := simulate(t, script.New(script.Together(script.Think("hm"), script.Say("I look."), script.Call("look", `{"at":"é"}`), script.Call("look", `{}`))), nil)
	res, body, err := post(t, s.URL+"/chat/completions", chatQuestion+`}`)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatal(res, err)
	}
	var got any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"role": "assistant", "content": "I look.", "refusal": nil, "reasoning_content": "hm", "tool_calls": []any{
		map[string]any{"id": "call_1_0", "type": "function", "function": map[string]any{"name": "look", "arguments": `{"at":"é"}`}},
		map[string]any{"id": "call_1_1", "type": "function", "function": map[string]any{"name": "look", "arguments": `{}`}}}}
	if diff := cmp.Diff(dig(got, "choices", 0, "message"), any(want)); diff != "" {
		t.Error(diff)
	}
	if f := dig(got, "choices", 0, "finish_reason"); f != "tool_calls" {
		t.Errorf("finish_reason %v", f)
	}
	if m := dig(got, "model"); m != "m" {
		t.Errorf("model %v, want the one that was asked", m)
	}
}

func TestChatStream(t *testing.T) {
	args := `{"at":"a place far away"}`
	s := simulate(t,
		script.New(script.Loop(script.Together(script.Say("I look at it now."), script.Call("look", args), script.Call("find", args)))), nil)
	for _, usage := range []bool{true, false} {
		_, body, err := post(t, s.URL+"/chat/completions", chatQuestion+fmt.Sprintf(`,"stream":true,"stream_options":{"include_usage":%t}}`, usage))
		if err != nil {
			t.Fatal(err)
		}
		all := events(t, body)
		text, joined, names, fragments, finishes := "", map[float64]string{}, map[float64]string{}, 0, 0
		for _, e := range all[:len(all)-1] {
			delta := dig(e, "choices", 0, "delta")
			if s, ok := dig(delta, "content").(string); ok {
				text += s
			}
			if call := dig(delta, "tool_calls", 0); call != nil {
				i := dig(call, "index").(float64)
				joined[i] += dig(call, "function", "arguments").(string)
				fragments++
				if id := dig(call, "id"); id != nil {
					names[i] += fmt.Sprint(id, " ", dig(call, "function", "name"))
				}
			}
			if dig(e, "choices", 0, "finish_reason") == "tool_calls" {
				finishes++
			}
		}
		if text != "I look at it now." || joined[0] != args || joined[1] != args || fragments < 6 || finishes != 1 {
			t.Errorf("joined: %q, %v in %d fragments, %d finishes", text, joined, fragments, finishes)
		}
		if diff := cmp.Diff(names, map[float64]string{0: "call_1_0 look", 1: "call_1_1 find"}); diff != "" {
			t.Error(diff)
		}
		if all[len(all)-1]["type"] != "[DONE]" {
			t.Error("no [DONE] at the end")
		}
		last := all[len(all)-2]
		if got := dig(last, "usage", "completion_tokens") != nil && len(dig(last, "choices").([]any)) == 0; got != usage {
			t.Errorf("include_usage %t, but the last chunk is %v", usage, last)
		}
	}
}

func TestResponsesStream(t *testing.T) {
	s := simulate(t, script.New(script.Together(script.Think("Let me see it."), script.Say("I look."), script.Call("look", `{"at":"far"}`))), nil)
	_, body, err := post(t, s.URL+"/responses", `{"model":"m","input":"hi","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	all := events(t, body)
	for i, e := range all {
		if e["sequence_number"] != float64(i) {
			t.Errorf("event %d has sequence_number %v", i, e["sequence_number"])
		}
		kind := strings.TrimPrefix(e["type"].(string), "response.")
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	want := []string{"created", "in_progress",
		"output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
		"output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
		"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
		"completed"}
	if diff := cmp.Diff(kinds, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	// The last event contains the same reply, whole.
	_, whole, err := post(t, s.URL+"/responses", `{"model":"m","input":"hi"}`)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal([]byte(whole), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, dig(all[len(all)-1], "response")); diff != "" {
		t.Errorf("whole -, streamed +\n%s", diff)
	}
	if got := dig(got, "output", 2, "arguments"); got != `{"at":"far"}` {
		t.Errorf("arguments %v", got)
	}
}

func TestResponsesEnds(t *testing.T) {
	for _, test := range []struct {
		turn         script.Turn
		event        string
		status, why  string
		wantPresence string
	}{
		{script.Say("x"), "response.completed", "completed", "", ""},
		{script.Cut(script.Say("x")), "response.incomplete", "incomplete", "max_output_tokens", ""},
		{script.Turn{Finish: llm.FinishReasonContentFilter}, "response.incomplete", "incomplete", "content_filter", ""},
		{script.Together(script.Say("x"), script.Fail(errors.New("line down"))), "response.failed", "failed", "", "line down"},
	} {
		s := simulate(t, script.New(test.turn), nil)
		_, body, err := post(t, s.URL+"/responses", `{"model":"m","input":"hi","stream":true}`)
		if err != nil {
			t.Fatal(err)
		}
		all := events(t, body)
		last := all[len(all)-1]
		why, _ := dig(last, "response", "incomplete_details", "reason").(string)
		if last["type"] != test.event || dig(last, "response", "status") != test.status || why != test.why {
			t.Errorf("got %v, want %s with status %s %s", last, test.event, test.status, test.why)
		}
		if !strings.Contains(body, test.wantPresence) {
			t.Errorf("%q is not in %s", test.wantPresence, body)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"dangling call":       {"/chat/completions", `{"model":"m","messages":[` + user + `,` + onlyA + `,` + user + `]}`, 400, "has no result"},
		"unknown result":      {"/chat/completions", `{"model":"m","messages":[` + user + `,` + onlyA + `,` + resultB + `]}`, 400, `no call of the reply before it has that id`},
		"dangling item":       {"/responses", `{"model":"m","input":[` + user + `,` + itemA + `]}`, 400, "has no result"},
		"reasoning alone":     {"/responses", `{"model":"m","input":[` + user + `,{"type":"reasoning","id":"rs_1","summary":[]}]}`, 400, "without the item that must follow"},
		"foreign reasoning":   {"/responses", `{"model":"m","input":[` + user + `,` + thought + `,` + answer + `,` + user + `]}`, 400, "rs_1 could not be verified"},
		"no JSON":             {"/chat/completions", `{"model"`, 400, "no JSON object"},
		"no model":            {"/responses", `{"input":"hi"}`, 400, "model parameter"},
		"unknown earlier":     {"/responses", `{"model":"m","previous_response_id":"resp_1","input":"hi"}`, 400, "Previous response"},
		"another path":        {"/embeddings", `{}`, 404, "Invalid URL"},
		"a wrongly typed one": {"/chat/completions", `{"model":7,"messages":[` + user + `]}`, 400, "could not parse"},
		"a script played out": {"/responses", `{"model":"m","input":[` + user + `,` + answer + `,` + user + `]}`, 400, "turn 2"},
	} {
		behind := script.New(script.Say("x"))
		s := simulate(t, behind, nil)
		res, body, err := post(t, s.URL+test.path, test.body)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatalf("%s: %v: %s", name, err, body)
		}
		if res.StatusCode != test.status || !strings.Contains(e.Error.Message, test.want) || e.Error.Type == "" {
			t.Errorf("%s: got %d %s, want %d with %q", name, res.StatusCode, body, test.status, test.want)
		}
		if n := len(behind.Requests()); n > 0 && test.want != "turn 2" {
			t.Errorf("%s: the model was asked all the same", name)
		}
	}
}

func TestFaults(t *testing.T) {
	s := simulate(t, script.New(script.Say("A somewhat longer answer.")), &pawltest.SimulatorOptions{Key: "sesame", Fault: pawltest.Faults(
		&pawltest.Fault{Status: 429, RetryAfter: "3"},
		&pawltest.Fault{Break: true},
		&pawltest.Fault{Body: []byte("{not json")},
		nil,
	)})
	ask := func(key string, stream bool) (*http.Response, string, error) {
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/chat/completions",
			strings.NewReader(chatQuestion+fmt.Sprintf(`,"stream":%t}`, stream)))
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("X-Trace", "1")
		res, err := tr.RoundTrip(req)
		if err != nil {
			return nil, "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return res, string(b), err
	}
	if res, body, _ := ask("sesame", false); res.StatusCode != 429 || res.Header.Get("Retry-After") != "3" || !strings.Contains(body, "rate_limit_exceeded") {
		t.Errorf("got %v %s", res, body)
	}
	if _, body, err := ask("sesame", false); err == nil || body == "" {
		t.Errorf("got %q, %v; want half a body and an error", body, err)
	}
	if _, body, err := ask("sesame", false); err != nil || body != "{not json" {
		t.Errorf("got %q, %v", body, err)
	}
	if res, _, err := ask("sesame", false); err != nil || res.StatusCode != 200 {
		t.Errorf("after the faults: %v, %v", res, err)
	}
	if res, _, _ := ask("wrong", false); res.StatusCode != 401 {
		t.Errorf("a wrong key got %v", res)
	}
	for i, r := range s.Received() {
		if all := fmt.Sprint(r.Header); strings.Contains(all, "sesame") || !strings.Contains(all, "X-Trace") {
			t.Errorf("request %d: the log keeps headers %v", i, r.Header)
		}
	}
}

func TestFaultsInStreams(t *testing.T) {
	for name, test := range map[string]struct {
		fault  pawltest.Fault
		events int
		broken bool
		want   string
	}{
		"broken after two":  {pawltest.Fault{Break: true, After: 2}, 2, true, ""},
		"ended after two":   {pawltest.Fault{Raw: ": bye\n\n", After: 2}, 2, false, ": bye"},
		"an error inside":   {pawltest.Fault{Raw: "data: {\"error\":{\"message\":\"overloaded\"}}\n\n", After: 1}, 2, false, "overloaded"},
		"never, as it ends": {pawltest.Fault{Break: true, After: 1000}, 0, false, "[DONE]"},
	} {
		s := simulate(t, script.New(script.Say("A somewhat longer answer.")),
			&pawltest.SimulatorOptions{Fault: pawltest.Faults(&test.fault)})
		res, body, err := post(t, s.URL+"/chat/completions", chatQuestion+`,"stream":true}`)
		if (err != nil) != test.broken {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if n := len(events(t, body)); test.events > 0 && n != test.events {
			t.Errorf("%s: %d events, want %d", name, n, test.events)
		}
		if !strings.Contains(body, test.want) || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: got %s (%s)", name, body, res.Header.Get("Content-Type"))
		}
	}
}

func TestHeldAnswerWaits(t *testing.T) {
	gate := make(chan struct{})
	arrived := make(chan struct{})
	s := simulate(t, script.New(script.Say("x")),
		&pawltest.SimulatorOptions{Fault: func(int, *pawltest.Received) *pawltest.Fault {
			close(arrived)
			return &pawltest.Fault{Hold: gate}
		}})
	done := make(chan string)
	go func() {
		_, body, _ := post(t, s.URL+"/responses", `{"model":"m","input":"hi"}`)
		done <- body
	}()
	<-arrived
	select {
	case body := <-done:
		t.Fatalf("answered before the gate was opened: %s", body)
	default:
	}
	close(gate)
	if body := <-done; !strings.Contains(body, `"completed"`) {
		t.Errorf("got %s", body)
	}
}

func TestReadRequest(t *testing.T) {
	tools := []*llm.ToolSpec{{Name: "look", Description: "Looks.", Input: []byte(`{"type":"object"}`)}}
	want := &llm.Request{Model: "m", Messages: []llm.Message{llm.System("Be brief."), llm.User("hi"),
		llm.Assistant(llm.Text{Text: "I look."}, llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at": 1}`)}),
		llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "rain"}}}),
		{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Text{Text: "And this?"}, llm.Media{MIME: "image/png", Data: []byte{1, 2, 3}}, llm.Media{URL: "https://example.com/x.png"}}},
	}, Tools: tools, Choice: llm.Named("look"), Settings: llm.Settings{MaxTokens: 9, Effort: "low"}, Output: []byte(`{"type":"object"}`)}
	for api, body := range map[string]string{
		pawltest.Chat: `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"},
			{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}}]},
			{"role":"tool","tool_call_id":"a","content":"rain"},
			{"role":"user","content":[{"type":"text","text":"And this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}},{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}]}],
			"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"}}}],
			"tool_choice":{"type":"function","function":{"name":"look"}},"max_completion_tokens":9,"reasoning_effort":"low",
			"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},"stream":true}`,
		pawltest.Responses: `{"model":"m","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
			{"type":"function_call","id":"fc_1","call_id":"a","name":"look","arguments":"{\"at\": 1}"},
			{"type":"function_call_output","call_id":"a","output":"rain"},
			{"role":"user","content":[{"type":"input_text","text":"And this?"},{"type":"input_image","image_url":"data:image/png;base64,AQID"},{"type":"input_image","image_url":"https://example.com/x.png"}]}],
			"tools":[{"type":"web_search"},{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"}}],
			"tool_choice":{"type":"function","name":"look"},"max_output_tokens":9,"reasoning":{"effort":"low"},
			"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}},"stream":true}`,
	} {
		got, err := pawltest.ReadRequest(api, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		if diff := cmp.Diff(asJSON(t, got), asJSON(t, want)); diff != "" || got.Whole {
			t.Errorf("%s: got -, want +\n%s", api, diff)
		}
	}
}

func asJSON(t *testing.T, v any) (out any) {
	t.Helper()
	if r, ok := v.(*llm.Request); ok {
		bare := *r
		bare.Messages = llm.WithoutLabels(r.Messages) // no provider sees them
		v = &bare
	}
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
