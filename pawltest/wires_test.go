package pawltest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// wire is an API with the adapter that speaks it.
type wire struct {
	name   string // its name in docs/providers.md
	api    string
	native bool // is_error has a form of its own
	open   func(url string, tr http.RoundTripper, retries int) llm.Model
	encode func(*llm.Request) ([]byte, error)
}

var wires = []wire{
	{"OpenAI Responses", pawltest.Responses, false, func(url string, tr http.RoundTripper, retries int) llm.Model {
		return openai.New("gpt-5-mini", &openai.Options{BaseURL: url, Key: "test-key", HTTP: tr, Retries: retries})
	}, openai.EncodeResponses},
	{"Chat Completions", pawltest.Chat, false, func(url string, tr http.RoundTripper, retries int) llm.Model {
		return openai.NewChat("gpt-5-mini", &openai.Options{BaseURL: url, Key: "test-key", HTTP: tr, Retries: retries})
	}, openai.EncodeChat},
	{"Anthropic", pawltest.Anthropic, true, func(url string, tr http.RoundTripper, retries int) llm.Model {
		return anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: url, Key: "test-key", HTTP: tr, Retries: retries})
	}, anthropic.EncodeMessages},
	{"Gemini", pawltest.Gemini, true, func(url string, tr http.RoundTripper, retries int) llm.Model {
		return gemini.New("gemini-3-flash-preview", &gemini.Options{BaseURL: strings.TrimSuffix(url, "/v1"), Key: "test-key", HTTP: tr, Retries: retries})
	}, gemini.EncodeGenerate},
}

// on returns a model of w over a Simulator of behind, without retries.
func (w wire) on(t *testing.T, behind llm.Model, opts pawltest.SimulatorOptions) (llm.Model, *pawltest.Simulator) {
	t.Helper()
	opts.Key = "test-key"
	s := simulate(t, behind, &opts)
	return w.open(s.URL, transport(t), -1), s
}

// transport keeps no connection after the test.
func transport(t *testing.T) http.RoundTripper {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// lookAt is a schema that every dialect can express.
var lookAt = json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`)

// passive returns two tools that the caller executes.
func passive() []pawl.Toolset {
	return []pawl.Toolset{&pawl.Tool{Name: "look", Description: "Looks.", Input: lookAt, Passive: true},
		&pawl.Tool{Name: "find", Description: "Finds.", Input: lookAt, Passive: true}}
}

// run resumes a stored Result with msgs, streamed or whole, and returns the new Result after a
// round trip through JSON, and the codes of its notices. nil means a new run.
func run(t *testing.T, m llm.Model, effort string, stream bool, from *pawl.Result,
	msgs ...llm.Message) (*pawl.Result, []string) {
	t.Helper()
	a := &pawl.Agent{Model: m, Instructions: "Be brief.", Tools: passive(), Settings: llm.Settings{Effort: effort}}
	if from == nil {
		from = &pawl.Result{}
	}
	var res *pawl.Result
	var err error
	var notices []string
	if stream {
		res, err = runtest.Ended(pawl.Collect(a.ResumeStream(t.Context(), from, msgs...), func(e pawl.Event) {
			if e.Kind == pawl.EventNotice {
				notices = append(notices, e.Code)
			}
		}))
	} else {
		res, err = runtest.Ended(a.Resume(t.Context(), from, msgs...))
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	stored := new(pawl.Result)
	if err := json.Unmarshal(b, stored); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return stored, notices
}

// say returns a model that gives the same answer to everything.
func say(text string) llm.Model { return script.New(script.Loop(script.Say(text))) }
