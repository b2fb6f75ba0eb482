package anthropic_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// answers is a server that answers each request with the same body.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(a))), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}}, nil
}

// What the server cleared is a notice, also of a whole reply.
func TestCleared(t *testing.T) {
	const edits = `[{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000}]`
	for list, want := range map[string]string{edits: edits, `[]`: "", `null`: ""} {
		body := strings.Replace(whole("end_turn", `{"type":"text","text":"A"}`), `{`,
			`{"context_management":{"applied_edits":`+list+`},`, 1)
		o := &anthropic.Options{Key: "none", BaseURL: "https://api.anthropic.com", HTTP: answers(body)}
		m, got := anthropic.New("claude-haiku-4-5", o), ""
		req := &llm.Request{Whole: true, Messages: []llm.Message{llm.User("hi")}}
		for d, err := range m.Stream(context.Background(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Notice != nil && d.Notice.Code == "context_cleared" {
				got = string(d.Notice.Data)
			}
		}
		if got != want {
			t.Errorf("%s: the notice has %q", list, got)
		}
	}
}

// The model's version and host decide what the provider can do; options of the program stay.
func TestCompact(t *testing.T) {
	const own = "https://api.anthropic.com"
	for _, test := range []struct {
		model, base, options string
		clears, summarizes   bool
	}{
		{"claude-opus-5-5", own, ``, false, true},
		{"claude-sonnet-4-6", own, `{ }`, false, true},
		{"claude-sonnet-4-6", own, `{"betas":["one"],"service_tier":"auto"}`, false, true},
		{"claude-haiku-4-5", own, ` {"betas":["one"]} `, true, false},
		{"claude-opus-4-1", own, ``, false, false},
		{"other", own, ``, false, false},
		{"claude-opus-5-5", "https://proxy.example.com", ``, false, false},
		{"claude-haiku-4-5", "https://proxy.example.com", ``, false, false},
		{"claude-opus-5-5", own, `{"context_management":{}}`, false, false},
		{"claude-haiku-4-5", own, `{"context_management":{}}`, false, false},
		{"claude-opus-5-5", own, `{"compaction":{"type":"summarize"}}`, false, false},
		{"claude-opus-5-5", own, `{"stop_sequences":["x"]}`, false, false},
		{"claude-opus-5-5", own, `{"tool_choice":{"type":"any"}}`, false, false},
		{"claude-opus-5-5", own, `{"tool_choice":{"type":"auto"}}`, false, true},
		{"claude-opus-5-5", own, `{"output_config":{"format":{}}}`, false, false},
		{"claude-opus-5-5", own, `{"output_config":{"effort":"low"}}`, false, true},
	} {
		m := anthropic.New(test.model, &anthropic.Options{Key: "none", BaseURL: test.base})
		req := &llm.Request{}
		if test.options != "" {
			req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(test.options)}
		}
		if r, got := m.Compact(req, 0); got != test.summarizes || got && !r.Summarize {
			t.Errorf("%+v: summarizes %v, %+v", test, got, r)
		}
		r, ok := m.Compact(req, 150_000)
		if ok != test.clears {
			t.Errorf("%+v: clears %v", test, ok)
		}
		if !ok {
			continue
		}
		body := string(r.Settings.Options["anthropic"])
		if !json.Valid([]byte(body)) || !strings.Contains(body, "clear_tool_uses_20250919") ||
			string(req.Settings.Options["anthropic"]) != test.options ||
			strings.Contains(test.options, "one") != strings.Contains(body, "one") {
			t.Errorf("%+v: %s", test, body)
		}
	}
}
