package server_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

type openAPI struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		Security    []any
		RequestBody struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct{ Schemas map[string]json.RawMessage }
}

// The document contains each endpoint, each of them answers, and the answers match their schemas.
func TestTheDocumentOfTheAPI(t *testing.T) {
	v := serve(t, nil)
	var raw json.RawMessage
	v.do("GET", "/openapi.json", "", 200, &raw)
	var doc openAPI
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || len(doc.Paths) < 19 {
		t.Fatalf("%s with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllStringSubmatch(string(raw), -1) {
		if s := doc.Components.Schemas[ref[1]]; len(s) == 0 || string(s) == "null" {
			t.Errorf("there is no schema %s", ref[1])
		}
	}
	operations := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if operations[op.OperationID] {
				t.Errorf("two operations are named %s", op.OperationID)
			}
			operations[op.OperationID] = true
			res := v.request(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), "")
			res.Body.Close()
			if res.StatusCode == 405 || res.StatusCode >= 500 {
				t.Errorf("%s %s: %d", method, path, res.StatusCode)
			}
		}
	}
	v.do("POST", "/v1/runs", `{"id":"r","input":"pay 5","wait":true}`, 201, nil)
	v.do("POST", "/v1/runs", `{"id":"s","input":"look Oslo","wait":true}`, 201, nil)
	for _, ask := range []struct{ method, path, at, body string }{
		{"get", "/v1/health", "", ""}, {"get", "/v1/agents", "", ""}, {"get", "/v1/runs", "", ""}, {"get", "/v1/runs/{id}", "/v1/runs/r", ""}, {"get", "/v1/runs/{id}", "/v1/runs/s", ""},
		{"get", "/v1/runs/{id}/export", "/v1/runs/r/export", ""}, {"get", "/v1/runs/{id}/effects", "/v1/runs/r/effects", ""}, {"get", "/v1/runs/{id}/diff/{other}", "/v1/runs/r/diff/s", ""},
		{"get", "/v1/pending", "", ""}, {"get", "/v1/tools", "", ""}, {"get", "/v1/schedules", "", ""}, {"get", "/v1/memories", "", ""}, {"post", "/v1/runs", "", `{"input":"hello"}`},
		{"post", "/v1/tools/{name}/call", "/v1/tools/look/call", `{"args":{"at":"x"}}`}, {"post", "/v1/runs/{id}/fork", "/v1/runs/s/fork", `{"steps":1}`}, {"post", "/v1/runs/{id}/cancel", "/v1/runs/r/cancel", ""},
	} {
		if ask.at == "" {
			ask.at = ask.path
		}
		op := doc.Paths[ask.path][ask.method]
		res := v.request(strings.ToUpper(ask.method), ask.at, ask.body)
		var body json.RawMessage
		if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		status := strings.Fields(res.Status)[0]
		schema := op.Responses[status].Content["application/json"].Schema
		if schema == nil {
			t.Errorf("%s %s: no form for %s: %s", ask.method, ask.path, status, body)
			continue
		}
		if err := doc.validate(schema, body); err != nil {
			t.Errorf("%s %s: %v\n%s", ask.method, ask.path, err, body)
		}
		if op.RequestBody.Content != nil {
			if err := doc.validate(op.RequestBody.Content["application/json"].Schema, json.RawMessage(ask.body)); err != nil {
				t.Errorf("%s %s: the request: %v", ask.method, ask.path, err)
			}
			if doc.validate(op.RequestBody.Content["application/json"].Schema, json.RawMessage(`{"nonsense":1}`)) == nil {
				t.Errorf("%s %s: the form lets nonsense pass", ask.method, ask.path)
			}
		}
	}
}

// validate validates a value against a schema of the document, with the validator of tool
// arguments.
func (d *openAPI) validate(schema, value json.RawMessage) error {
	text, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"v": schema}, "required": []string{"v"}, "$defs": d.Components.Schemas})
	if err != nil {
		return err
	}
	tool := &pawl.Tool{Name: "check", Description: "c", Input: []byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/"))}
	args, err := json.Marshal(map[string]json.RawMessage{"v": value})
	if err != nil {
		return err
	}
	return tool.Validate(args)
}

// docs/server.md names every endpoint that is not OpenAI's, and every error code.
func TestThePageOfTheServer(t *testing.T) {
	b, err := os.ReadFile("../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	v := serve(t, nil)
	var doc openAPI
	v.do("GET", "/openapi.json", "", 200, &doc)
	for path := range doc.Paths {
		last := path[strings.LastIndex(strings.TrimSuffix(strings.TrimSuffix(path, "/{other}"), "/{id}"), "/")+1:]
		if word, _, _ := strings.Cut(last, "/"); !strings.Contains(string(b), word) {
			t.Errorf("the page has no word of %s", path)
		}
	}
	codes, err := os.ReadFile("testdata/forms/error_codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(codes)) {
		if status, code, _ := strings.Cut(strings.TrimSpace(line), " "); !strings.Contains(string(b), "| `"+code+"` | "+status+" |") {
			t.Errorf("the page has no code %s", line)
		}
	}
}
