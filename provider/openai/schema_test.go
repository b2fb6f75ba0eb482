package openai_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

const nested = `{"type":"object","properties":{"at":{"$ref":"#/$defs/place"},"n":{"type":"integer","minimum":1}},"required":["at"],
	"$defs":{"place":{"type":"object","properties":{"name":{"type":"dict","x":1}},"required":["name"]}}}`

// Only a tool whose schema has no form is left out. Others are sent in OpenAI's form, strict if
// that was requested.
func TestSchemas(t *testing.T) {
	tools := []*llm.ToolSpec{{Name: "f", Input: json.RawMessage(nested)},
		{Name: "bad", Input: json.RawMessage(`{"type":"string"}`)}, {Name: "free", Input: json.RawMessage(`{"type":"object"}`)}}
	loose := `{"type":"object","properties":{"at":{"type":"object","properties":{"name":{"type":"object","properties":{}}},"required":["name"]},"n":{"type":"integer","minimum":1}},"required":["at"]}`
	free := `{"type":"object","properties":{}}`
	for _, tt := range []struct {
		name   string
		chat   bool
		strict bool
		want   string
	}{
		{"Responses", false, false, `"tools":[{"type":"function","name":"f","parameters":` + loose + `,"strict":false},{"type":"function","name":"free","parameters":` + free + `,"strict":false}]`},
		{"Chat", true, false, `"tools":[{"type":"function","function":{"name":"f","parameters":` + loose + `}},{"type":"function","function":{"name":"free","parameters":` + free + `}}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, notices := sent(t, tt.chat, &openai.Options{Strict: tt.strict},
				&llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: tools})
			if !strings.Contains(body, tt.want) {
				t.Errorf("got %s\nwant %s", body, tt.want)
			}
			if len(notices) != 1 || notices[0].Code != "tool_left_out" || !strings.Contains(notices[0].Text, "the tool bad is not offered") {
				t.Errorf("notices %v", notices)
			}
		})
	}
	if string(tools[0].Input) != nested {
		t.Errorf("the tool's own schema has changed: %s", tools[0].Input)
	}
	strict := &llm.ToolSpec{Name: "f", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)}
	for _, chat := range []bool{true, false} {
		body, _ := sent(t, chat, &openai.Options{Strict: true},
			&llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []*llm.ToolSpec{strict, tools[2]}})
		want := `"parameters":{"type":"object","properties":{"a":{"type":"string"},"n":{"type":["integer","null"]}},"required":["a","n"],"additionalProperties":false},"strict":true}`
		if !strings.Contains(body, want) || strings.Contains(body, `"free","parameters":{"type":"object","properties":{}},"strict":true`) {
			t.Errorf("chat %v: got %s\nwant %s", chat, body, want)
		}
	}
}

// Without an offered tool there is no list of tools, and no choice can be forced.
func TestNoToolIsLeft(t *testing.T) {
	bad := &llm.ToolSpec{Name: "bad", Input: json.RawMessage(`{"type":"string"}`)}
	for _, encode := range []func(*llm.Request) ([]byte, error){openai.EncodeChat, openai.EncodeResponses} {
		req := &llm.Request{Model: "m", Messages: []llm.Message{llm.User("hi")}, Tools: []*llm.ToolSpec{bad}}
		if body, err := encode(req); err != nil || strings.Contains(string(body), "tool") {
			t.Errorf("got %s, %v", body, err)
		}
		for _, c := range []llm.ToolChoice{llm.Named("bad"), {Mode: llm.ToolRequired}} {
			req.Choice = c
			if _, err := encode(req); !strings.HasPrefix(outcome(nil, err), "error unsupported: tool_choice: ") || !strings.Contains(err.Error(), "bad") {
				t.Errorf("%v: got %v", c, err)
			}
		}
	}
}

// Arguments that were written for a strict schema are restored to the tool's own form: null
// becomes a missing member.
func TestStrictArgumentsComeBack(t *testing.T) {
	f := &llm.ToolSpec{Name: "a.f", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a"]}`)}
	for _, tt := range []struct {
		name string
		chat bool
		body func(name string) string
	}{
		{"Chat, streamed", true, func(name string) string {
			return deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"c","function":{"name":"`+name+`","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":\"x\",\"n"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"\":null}"}}]}`)
		}},
		{"Chat, whole", true, func(name string) string {
			return whole("tool_calls", `{"tool_calls":[{"id":"c","type":"function","function":{"name":"`+name+`","arguments":"{\"a\":\"x\",\"n\":null}"}}]}`)
		}},
		{"Responses, streamed", false, func(name string) string {
			item := `{"type":"function_call","id":"fc","call_id":"c","name":"` + name + `","arguments":"`
			return events(`{"type":"response.output_item.added","output_index":0,"item":`+item+`"}}`,
				`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":\"x\","}`,
				`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"\"n\":null}"}`,
				`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":\"x\",\"n\":null}"}`,
				`{"type":"response.output_item.done","output_index":0,"item":`+item+`{\"a\":\"x\",\"n\":null}"}}`,
				`{"type":"response.completed","response":`+response()+`}`)
		}},
		{"Responses, whole", false, func(name string) string {
			return response(`{"type":"function_call","id":"fc","call_id":"c","name":"` + name + `","arguments":"{\"a\":\"x\",\"n\":null}"}`)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &openai.Options{Strict: true, BaseURL: "http://local.test",
				HTTP: transport(func(r *http.Request) (*http.Response, error) {
					b, _ := io.ReadAll(r.Body)
					_, name, _ := strings.Cut(string(b), `"name":"a_f`)
					name, _, _ = strings.Cut(name, `"`)
					return reply(200, tt.body("a_f"+name)), nil
				})}
			m := openai.New("m", o)
			if tt.chat {
				m = openai.NewChat("m", o)
			}
			res, _, err := ask(context.Background(), m,
				&llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []*llm.ToolSpec{f}},
				strings.Contains(tt.name, "streamed"))
			if err != nil {
				t.Fatal(err)
			}
			calls := res.Message.Calls()
			if len(calls) != 1 || calls[0].Name != "a.f" || string(calls[0].Args) != `{"a":"x"}` {
				t.Errorf("got %v", outcome(res, err))
			}
		})
	}
}

// A call that is cut off keeps the received bytes, and nothing is invented to close it.
func TestStrictArgumentsThatBreakOff(t *testing.T) {
	f := &llm.ToolSpec{Name: "f", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
	o := &openai.Options{Strict: true, BaseURL: "http://local.test", HTTP: transport(func(*http.Request) (*http.Response, error) {
		return reply(200, deltas("length", `{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"n\":nu"}}]}`)), nil
	})}
	res, _, err := ask(context.Background(), openai.NewChat("m", o),
		&llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []*llm.ToolSpec{f}}, true)
	if got, want := outcome(res, err), `call c f {"n":nu; length`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// OpenAI enforces the schema of a reply if it can. Other servers read it, or a prompt asks for it.
func TestOutputs(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"string","minLength":2}},"required":["a"],"additionalProperties":false}`
	const optional = `{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`
	const list = `{"type":"array","items":{"type":"string"}}`
	for _, tt := range []struct{ name, schema, chat, responses string }{
		{"strict", closed, `"response_format":{"type":"json_schema","json_schema":{"name":"output","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string","description":"`,
			`"text":{"format":{"type":"json_schema","name":"output","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string","description":"`},
		{"with an optional field", optional, `"strict":false,"schema":{"type":"object","properties":{"a":{"type":"string"}}}`, `"strict":false,"schema":{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"no object", list, `{"role":"system","content":"When you give your final answer`, `"instructions":"s\n\nWhen you give your final answer`},
	} {
		req := &llm.Request{Model: "m", Messages: []llm.Message{llm.System("s"), llm.User("hi")},
			Output: json.RawMessage(tt.schema)}
		for _, encode := range []struct {
			f    func(*llm.Request) ([]byte, error)
			want string
		}{{openai.EncodeChat, tt.chat}, {openai.EncodeResponses, tt.responses}} {
			if body, err := encode.f(req); err != nil || !strings.Contains(string(body), encode.want) {
				t.Errorf("%s: got %s, %v\nwant %s", tt.name, body, err, encode.want)
			}
		}
	}
}

// A server with JSON mode and no schemas reads the schema in the prompt. With tools, JSON mode is
// off.
func TestJSONObject(t *testing.T) {
	server := &openai.Server{Name: "some", BaseURL: "http://some.test", Keyless: true, JSONObject: true}
	req := &llm.Request{Messages: []llm.Message{llm.System("s"), llm.User("hi")}, Output: json.RawMessage(`{"type":"object"}`)}
	body, _ := sent(t, true, &openai.Options{Server: server}, req)
	const wish = `{"role":"system","content":"s"},{"role":"system","content":"When you give your final answer, give one JSON value and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n{\"type\":\"object\"}"},{"role":"user","content":"hi"}`
	if !strings.Contains(body, wish) || !strings.Contains(body, `"response_format":{"type":"json_object"}`) || strings.Contains(body, "json_schema") {
		t.Errorf("got %s", body)
	}
	req.Tools = []*llm.ToolSpec{tool("f")}
	if body, _ = sent(t, true, &openai.Options{Server: server}, req); !strings.Contains(body, wish) ||
		strings.Contains(body, "response_format") {
		t.Errorf("beside tools: got %s", body)
	}
}

// sent returns the body of a request and its notices.
func sent(t *testing.T, chat bool, o *openai.Options, req *llm.Request) (string, []llm.Notice) {
	t.Helper()
	var body string
	o.Key = "k"
	o.HTTP = transport(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		if chat {
			return reply(200, whole("stop", `{"content":"ok"}`)), nil
		}
		return reply(200, response(`{"type":"message","content":[{"type":"output_text","text":"ok"}]}`)), nil
	})
	m := openai.New("m", o)
	if chat {
		m = openai.NewChat("m", o)
	}
	res, notices, err := ask(context.Background(), m, req, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("ok", res.Message.Text()); d != "" {
		t.Error(d)
	}
	return body, notices
}
