package provider_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// On every wire, only a tool whose schema has no form is left out. The run gets a notice, and
// continues with the other tools.
func TestToolsThatAreLeftOut(t *testing.T) {
	for name, model := range map[string]func(*pawltest.Simulator) llm.Model{
		"chat":      func(s *pawltest.Simulator) llm.Model { return openai.NewChat("m", &openai.Options{BaseURL: s.URL}) },
		"responses": func(s *pawltest.Simulator) llm.Model { return openai.New("m", &openai.Options{BaseURL: s.URL}) },
		"anthropic": func(s *pawltest.Simulator) llm.Model {
			return anthropic.New("m", &anthropic.Options{BaseURL: s.Root})
		},
		"gemini": func(s *pawltest.Simulator) llm.Model { return gemini.New("m", &gemini.Options{BaseURL: s.Root}) },
		"gemini, subset": func(s *pawltest.Simulator) llm.Model {
			return gemini.New("m", &gemini.Options{BaseURL: s.Root, Subset: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := pawltest.NewSimulator(script.New(script.Call("look", `{"at":"x"}`), script.Say("done")), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			looked := ""
			look := &pawl.Tool{Name: "look", Description: "Looks.", Input: json.RawMessage(`{"type":"object","properties":{"at":{"$ref":"#/$defs/at"}},"required":["at"],"$defs":{"at":{"type":"string"}}}`),
				Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
					looked = string(c.Args)
					return llm.TextResult("seen"), nil
				}}
			never := &pawl.Tool{Name: "never", Input: json.RawMessage(`{"type":"object","allOf":[false]}`), Run: look.Run}
			agent := &pawl.Agent{Model: model(server), Tools: []pawl.Toolset{never, look}}
			var notices []string
			var stop pawl.StopReason
			for e, err := range agent.Stream(t.Context(), llm.User("look")) {
				if err != nil {
					t.Fatal(err)
				}
				switch e.Kind {
				case pawl.EventNotice:
					notices = append(notices, e.Code+": "+e.Text)
				case pawl.EventRunEnded:
					stop = e.Result.Stop
				}
			}
			if looked != `{"at":"x"}` || stop != pawl.StopAnswer {
				t.Errorf("looked %q, stopped with %s", looked, stop)
			}
			if len(notices) == 0 || !strings.HasPrefix(notices[0], "tool_left_out: ") || !strings.Contains(notices[0], "the tool never is not offered") {
				t.Errorf("notices %q", notices)
			}
			for _, r := range server.Received() {
				if len(r.Violations) > 0 || strings.Contains(string(r.Body), `"never"`) || !strings.Contains(string(r.Body), `"look"`) {
					t.Errorf("%v: %s", r.Violations, r.Body)
				}
			}
		})
	}
}

// Each tool of real servers is sent or left out on every wire, and the wire's checker accepts the
// requests.
func TestCorpusToolsOnEveryWire(t *testing.T) {
	soak.Sequential(t)
	tools := corpusTools(t)
	for api, encode := range map[string]func(*llm.Request) ([]byte, error){
		pawltest.Chat: openai.EncodeChat, pawltest.Responses: openai.EncodeResponses,
		pawltest.Anthropic: anthropic.EncodeMessages, pawltest.Gemini: gemini.EncodeGenerate,
	} {
		t.Run(api, func(t *testing.T) {
			sent := 0
			for from := 0; from < len(tools); from += 100 {
				some := tools[from:min(from+100, len(tools))]
				body, err := encode(&llm.Request{Model: "m", Messages: []llm.Message{llm.User("hi")}, Tools: some})
				if err != nil {
					t.Fatal(err)
				}
				if v := pawltest.Check(api, body); len(v) > 0 || !json.Valid(body) {
					t.Errorf("tools from %d: %v", from, v)
				}
				for _, tool := range some {
					if strings.Contains(string(body), `"`+tool.Name+`"`) {
						sent++
					}
				}
			}
			t.Logf("%d tools, %d sent, %d left out", len(tools), sent, len(tools)-sent)
			if sent < len(tools)*99/100 {
				t.Error("too many are left out")
			}
		})
	}
}

// corpusTools returns tools with the schemas of real tools.
func corpusTools(t *testing.T) (tools []*llm.ToolSpec) {
	t.Helper()
	for i, r := range corpora.Lines[struct{ Schema json.RawMessage }](t, "tool-schemas/dev.jsonl.gz") {
		tools = append(tools, &llm.ToolSpec{
			Name:        "tool_number_" + strconv.Itoa(i),
			Description: "Does something.",
			Input:       r.Schema,
		})
	}
	return tools
}
