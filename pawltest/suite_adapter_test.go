package pawltest_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// The negative control of TestAdapter: an adapter that loses a part of its requests or replies does
// not pass, and the suite names the loss.
func TestFaultyAdaptersFailTheSuite(t *testing.T) {
	soak.Sequential(t)
	type loss struct{ what, lost, want string }
	for _, api := range []struct {
		name   string
		open   func(url string, h http.RoundTripper) llm.Model
		losses []loss
	}{
		{pawltest.Chat, func(url string, h http.RoundTripper) llm.Model {
			return openai.NewChat("m", &openai.Options{BaseURL: url, Key: "test-key", Retries: -1, HTTP: h})
		}, []loss{
			{"the system message", `\{"role":"system","content":"[^"]*"\},`, "Be brief."},
			{"a forced choice", `,"tool_choice":"required"`, `"choice":"required"`},
			{"the temperature", `,"temperature":0.5`, `"temperature":0.5`},
			{"a result", `,\{"role":"tool","tool_call_id":"b","content":"two"\}`, "has no result"},
			{"the schema", `,"response_format":\{.*?\}\}\}`, `"output"`},
		}},
		{pawltest.Responses, func(url string, h http.RoundTripper) llm.Model {
			return openai.New("m", &openai.Options{BaseURL: url, Key: "test-key", Retries: -1, HTTP: h})
		}, []loss{
			{"the instructions", `"instructions":"[^"]*",`, "Be brief."},
			{"a forced choice", `,"tool_choice":"required"`, `"choice":"required"`},
			{"a result", `,\{"type":"function_call_output","call_id":"b","output":"two"\}`, "b"},
			{"the encrypted reasoning", `"encrypted_content":"[^"]*",?`, "reasoning"},
		}},
		{pawltest.Anthropic, func(url string, h http.RoundTripper) llm.Model {
			return anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: url, Key: "test-key", Retries: -1, HTTP: h})
		}, []loss{
			{"the system prompt", `"system":\[.*?\],`, "Be brief."},
			{"a forced choice", `,"tool_choice":\{"type":"any"\}`, `"choice":"required"`},
			{"that a result is an error", `,"is_error":true`, `"is_error":true`},
			{"a signature", `,"signature":"[^"]*"`, "signature"},
			{"stop sequences", `,"stop_sequences":\["END"\]`, `"stop":["END"]`},
		}},
		{pawltest.Gemini, func(url string, h http.RoundTripper) llm.Model {
			return gemini.New("gemini-2.5-flash", &gemini.Options{BaseURL: strings.TrimSuffix(url, "/v1"), Key: "test-key", Retries: -1, HTTP: h})
		}, []loss{
			{"the instructions", `"systemInstruction":\{.*?\]\},`, "Be brief."},
			{"a forced choice", `"mode":"ANY"`, `"choice"`},
			{"a signature", `,"thoughtSignature":"[^"]*"`, "ignature"},
			{"the settings", `,"generationConfig":\{[^{}]*\}`, `"temperature":0.5`},
		}},
	} {
		for _, test := range soak.N(api.losses[:1], api.losses) {
			t.Run(api.name+"/"+test.what, func(t *testing.T) {
				r := newRecorder(t)
				pawltest.TestAdapter(r, func(_ recorder, url string) llm.Model {
					tr := &http.Transport{}
					t.Cleanup(tr.CloseIdleConnections)
					return api.open(url, spoiled{tr, regexp.MustCompile(test.lost)})
				})
				if all := strings.Join(*r.log, "\n"); !strings.Contains(all, test.want) {
					t.Errorf("the suite says nothing of %s:\n%.2000s", test.what, all)
				}
			})
		}
		t.Run(api.name+"/nothing", func(t *testing.T) {
			r := newRecorder(t)
			pawltest.TestAdapter(r, func(_ recorder, url string) llm.Model {
				tr := &http.Transport{}
				t.Cleanup(tr.CloseIdleConnections)
				return api.open(url, tr)
			})
			if len(*r.log) > 0 {
				t.Errorf("without a loss the suite says: %.2000s", strings.Join(*r.log, "\n"))
			}
		})
	}
}

// The suite finds each fault that the API can have, in the adapters of all APIs.
func TestScoreOfAdapters(t *testing.T) {
	soak.Sequential(t)
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wires {
		t.Run(w.api, func(t *testing.T) {
			t.Parallel() // it waits for replies that never end
			score := pawltest.ScoreAdapter(t, func(t *testing.T, url string) llm.Model {
				return w.open(url, transport(t), -1)
			})
			if len(score.Survived) > 0 {
				t.Errorf("%s", score)
			}

			row := fmt.Sprintf("| %s | %d of %d | %d |\n", w.name, len(score.Found), len(score.Found)+len(score.Survived),
				len(score.LeftOut))
			if !strings.Contains(string(page), row) {
				t.Errorf("docs/testing.md wants the row %s", row)
			}
		})
	}
}
