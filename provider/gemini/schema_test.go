package gemini_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

// Only a tool whose schema has no form is left out. Others are sent as JSON Schema, or in the
// subset of OpenAPI for servers that know no more.
func TestSchemas(t *testing.T) {
	const schema = `{"type":"object","properties":{"at":{"$ref":"#/$defs/place"},"n":{"type":["integer","null"],"exclusiveMinimum":1},"m":{"type":"dict"}},"required":["at"],
		"additionalProperties":false,"$defs":{"place":{"const":"here"}}}`
	tools := []*llm.ToolSpec{{Name: "f", Input: json.RawMessage(schema)}, {Name: "bad", Input: json.RawMessage(`{"type":"string"}`)}}
	for _, tt := range []struct {
		name   string
		subset bool
		want   string
	}{
		{"JSON Schema", false, `"functionDeclarations":[{"name":"f","description":"","parametersJsonSchema":{"type":"object","properties":{"at":{"const":"here"},"n":{"type":["integer","null"],"exclusiveMinimum":1},"m":{"type":"object"}},"required":["at"],"additionalProperties":false}}]`},
		{"subset", true, `"functionDeclarations":[{"name":"f","description":"","parameters":{"type":"OBJECT","properties":{"at":{"type":"STRING","enum":["here"]},"n":{"type":"INTEGER"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, notices := sent(t, &gemini.Options{Subset: tt.subset},
				&llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: tools})
			if !strings.Contains(body, tt.want) {
				t.Errorf("got %s\nwant %s", body, tt.want)
			}
			if strings.Contains(body, `"bad"`) || tt.subset && (strings.Contains(body, "$ref") || strings.Contains(body, "additionalProperties")) {
				t.Errorf("got %s", body)
			}
			if len(notices) != 1 || notices[0].Code != "tool_left_out" || !strings.Contains(notices[0].Text, "the tool bad is not offered") {
				t.Errorf("notices %v", notices)
			}
		})
	}
	if string(tools[0].Input) != schema {
		t.Errorf("the tool's own schema has changed: %s", tools[0].Input)
	}
}

// Without an offered tool there is no list of tools, and no choice can be forced.
func TestNoToolIsLeft(t *testing.T) {
	req := user("hi")
	req.Tools = []*llm.ToolSpec{{Name: "bad", Input: json.RawMessage(`{"type":"string"}`)}}
	if body := mustEncode(t, req); strings.Contains(body, "tool") {
		t.Errorf("got %s", body)
	}
	for _, c := range []llm.ToolChoice{llm.Named("bad"), {Mode: llm.ToolRequired}} {
		req.Choice = c
		if _, err := gemini.EncodeGenerate(req); !strings.HasPrefix(outcome(nil, err), "error unsupported: tool_choice: ") {
			t.Errorf("%v: got %v", c, err)
		}
	}
}

// The schema of a reply may describe any value. The subset has a field of its own.
func TestOutputs(t *testing.T) {
	for _, tt := range []struct {
		subset       bool
		schema, want string
	}{
		{false, `{"type":"array","items":{"type":"string"}}`, `"responseJsonSchema":{"type":"array","items":{"type":"string"}}`},
		{false, `{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}],"$defs":{"n":{"type":"integer"}}}`, `"responseJsonSchema":{`},
		{true, `{"type":"array","items":{"type":"string","minLength":1}}`, `"responseSchema":{"type":"ARRAY","items":{"type":"STRING","minLength":1}}`},
		{true, `{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}`, `"responseSchema":{"type":"OBJECT","properties":{"a":{"type":"BOOLEAN"}}}`},
	} {
		req := user("hi")
		req.Output = json.RawMessage(tt.schema)
		if body, _ := sent(t, &gemini.Options{Subset: tt.subset}, req); !strings.Contains(body, tt.want) ||
			strings.Contains(body, "$ref") {
			t.Errorf("%s: got %s\nwant %s", tt.schema, body, tt.want)
		}
	}
}

// sent returns the body of a request and its notices.
func sent(t *testing.T, o *gemini.Options, req *llm.Request) (string, []llm.Notice) {
	t.Helper()
	var body string
	o.BaseURL = "http://local.test"
	o.HTTP = transport(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		return reply(200, chunk("STOP", `{"text":"ok"}`)), nil
	})
	res, notices, err := ask(context.Background(), gemini.New("m", o), req, false)
	if err != nil || res.Message.Text() != "ok" {
		t.Fatalf("%v: %s", err, outcome(res, err))
	}
	return body, notices
}
