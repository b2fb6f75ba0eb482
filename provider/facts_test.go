package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// sent records the body of a request and refuses the request.
type sent struct{ body string }

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	s.body = string(b)
	return &http.Response{StatusCode: 400, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"seen"}}`)), Request: r}, err
}

// The catalogue decides what a model receives; if it has no entry, the name does. The names of the
// first half contradict the catalogue.
func TestFacts(t *testing.T) {
	known, err := catalog.Parse([]byte(`[
		{"provider":"anthropic","id":"claude-old-3-7","thinking":"adaptive","instructs":true},
		{"provider":"anthropic","id":"claude-new-9","thinking":"budget","instructs":false,"max_output":64000},
		{"provider":"anthropic","id":"claude-short-9","max_output":4096},
		{"provider":"anthropic","id":"claude-dull-9","reasoning":false},
		{"provider":"gemini","id":"gemini-2-other","thinking":"level"},
		{"provider":"gemini","id":"gemini-9-other","thinking":"budget"},
		{"provider":"anthropic","id":"claude-held-3-7","schema":true},
		{"provider":"anthropic","id":"claude-free-9","schema":false},
		{"provider":"openai","id":"my-own","reasoning":true},
		{"provider":"openai","id":"gpt-5-free","schema":false},
		{"provider":"openai","id":"gpt-5-dull","reasoning":false}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	high := func(r *llm.Request) { r.Settings.Effort = "high" }
	between := func(r *llm.Request) {
		r.Messages = append(r.Messages, llm.Message{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: "Be brief."}}})
	}
	held := func(r *llm.Request) {
		r.Output = []byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	}
	for _, test := range []struct {
		name    string
		with    func(*llm.Request)
		want    string // in the body, or in the error if no request is sent
		without string
	}{
		{"anthropic:claude-old-3-7", high, `"thinking":{"type":"adaptive"}`, "budget"},
		{"anthropic:claude-new-9", high, `"budget_tokens":16384`, "adaptive"},
		{"anthropic:claude-old-3-7", between, `"role":"system"`, ""},
		{"anthropic:claude-new-9", between, `Be brief.`, `"role":"system"`},
		{"anthropic:claude-short-9", nil, `"max_tokens":4096`, ""},
		{"anthropic:claude-new-9", nil, `"max_tokens":16384`, ""}, // no more than without an entry
		{"anthropic:claude-dull-9", high, `claude-dull-9 does not think`, ""},
		{"anthropic:claude-held-3-7", held, `"output_config"`, ""},
		{"anthropic:claude-free-9", held, `additionalProperties`, `"output_config"`},
		{"openai:gpt-5-free", held, `additionalProperties`, `"json_schema"`},
		{"openai-chat:gpt-5-free", held, `additionalProperties`, `"json_schema"`},
		{"gemini:gemini-2-other", high, `"thinkingLevel":"high"`, "Budget"},
		{"gemini:gemini-9-other", high, `"thinkingBudget":24576`, "Level"},
		{"openai:my-own", nil, `reasoning.encrypted_content`, ""},
		{"openai:gpt-5-dull", nil, `"model":"gpt-5-dull"`, "encrypted"},

		{"anthropic:claude-other-3-7", high, `"budget_tokens":16384`, "adaptive"},
		{"anthropic:claude-other-9", high, `"thinking":{"type":"adaptive"}`, "budget"},
		{"anthropic:claude-other-9", between, `"role":"system"`, ""},
		{"gemini:gemini-2-unheard", high, `"thinkingBudget":24576`, "Level"},
		{"gemini:gemini-9-unheard", high, `"thinkingLevel":"high"`, "Budget"},
		{"anthropic:claude-other-3-7", held, `additionalProperties`, `"output_config"`},
		{"anthropic:claude-other-9", held, `"output_config"`, ""},
		{"openai:gpt-5-unheard", held, `"json_schema"`, ""},
		{"openai-chat:gpt-5-unheard", held, `"json_schema"`, ""},
		{"openai:gpt-5-unheard", nil, `reasoning.encrypted_content`, ""},
		{"openai:your-own", nil, `"model":"your-own"`, "encrypted"},
	} {
		for _, way := range []string{"opened by", "asked for by"} {
			_, id, _ := strings.Cut(test.name, ":")
			req := &llm.Request{Messages: []llm.Message{llm.User("hi")}}
			name := test.name
			if way == "asked for by" { // a model of another name, and this name in the request
				req.Model, name = id, strings.TrimSuffix(test.name, id)+"some-model"
			}
			if test.with != nil {
				test.with(req)
			}
			held := test.with != nil && len(req.Output) > 0 && !strings.Contains(test.without, "json_schema") &&
				!strings.Contains(test.without, "output_config")
			seen := new(sent)
			m, err := provider.Open(name, &provider.Options{Catalog: known, Key: "k", HTTP: seen, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			if h, _ := llm.As[llm.OutputHolder](m); len(req.Output) > 0 && h.HoldsOutput(req) != held {
				t.Errorf("%s %s: says that it can be held to a schema: %t", test.name, way, !held)
			}
			_, err = llm.Complete(t.Context(), m, req)
			got := seen.body
			if got == "" {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) || test.without != "" && strings.Contains(got, test.without) {
				t.Errorf("%s %s: want %q and not %q in\n%s", test.name, way, test.want, test.without, got)
			}
		}
	}
}

// The catalogue of the module agrees with the names of all models, except where it is more exact.
func TestNamesAndCatalogue(t *testing.T) {
	none, err := catalog.Parse([]byte(`[]`))
	if err != nil {
		t.Fatal(err)
	}
	// does not accept instructions between turns, which its version does not show
	better := map[string]bool{"anthropic:claude-sonnet-5": true}
	n := 0
	for _, m := range catalog.Default().Models("") {
		if m.Thinking == "" && m.Provider != "openai" {
			continue
		}
		n++
		body := map[bool]string{}
		for _, empty := range []bool{false, true} {
			o := &provider.Options{Key: "k", Retries: -1}
			if empty {
				o.Catalog = none
			}
			seen := new(sent)
			o.HTTP = seen
			model, err := provider.Open(m.Name(), o)
			if err != nil {
				t.Fatal(err)
			}
			req := &llm.Request{Messages: []llm.Message{llm.User("hi"),
				{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: "Be brief."}}}}}
			if m.Thinking != "" {
				req.Settings.Effort = "high"
			}
			if _, err = llm.Complete(t.Context(), model, req); seen.body == "" {
				t.Fatalf("%s: nothing was sent: %v", m.Name(), err)
			}
			body[empty] = seen.body
		}
		if (body[true] != body[false]) != better[m.Name()] {
			t.Errorf("%s: by its name\n%s\nby the catalogue\n%s", m.Name(), body[true], body[false])
		}
	}
	if n < 50 {
		t.Errorf("only %d models were compared", n)
	}
}
