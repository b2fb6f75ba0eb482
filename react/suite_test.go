package react_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/react"
)

// carried is a test of pawltest.TestModel without the replies that text cannot carry.
type carried struct {
	*testing.T
	format react.Format
}

// uncarried are the replies that a decision has no place for, and what becomes of them.
var uncarried = map[string]string{
	"reply/text and calls":   "the text is a thought there",
	"reply/broken arguments": "a decision that cannot be read is asked for again",
	"reply/cut call":         "a decision that cannot be read is asked for again",
	"xml reply/long text":    "space around an answer between tags is not part of it",
	"xml reply/filtered":     "space around an answer between tags is not part of it",
}

func (c carried) Run(name string, f func(carried)) bool {
	for _, key := range []string{name, string(c.format) + " " + name} {
		if why := uncarried[key]; why != "" {
			c.Logf("%s is left out: %s", name, why)
			return true
		}
	}
	return c.T.Run(name, func(t *testing.T) { f(carried{t, c.format}) })
}

// over opens a wire on a simulator of behind.
func over(t *testing.T, wire string, behind llm.Model) (llm.Model, *pawltest.Simulator) {
	t.Helper()
	sim, err := pawltest.NewSimulator(behind, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	switch wire {
	case "anthropic":
		return anthropic.New("small", &anthropic.Options{BaseURL: sim.URL, Key: "test", Retries: -1}), sim
	case "gemini":
		return gemini.New("small", &gemini.Options{BaseURL: sim.URL, Key: "test", Retries: -1}), sim
	case "responses":
		return openai.New("small", &openai.Options{BaseURL: sim.URL, Key: "test", Retries: -1}), sim
	}
	return openai.NewChat("small", &openai.Options{BaseURL: sim.URL, Key: "test", Retries: -1}), sim
}

// A react Model passes the suite of models: the reply of a model with function calling arrives,
// although a provider's API carried text both ways.
func TestModel(t *testing.T) {
	for _, f := range []react.Format{react.JSON, react.XML} {
		t.Run(string(f), func(t *testing.T) {
			pawltest.TestModel(carried{t, f}, func(c carried, behind llm.Model) llm.Model {
				streams := strings.Contains(c.Name(), "/cancel") || strings.Contains(c.Name(), "/break")
				inner, _ := over(c.T, "chat", talker{behind, f, streams})
				return react.New(inner, &react.Options{Format: f, Parallel: true, MaxRetries: -1})
			}, "request", "opaque", "reply/media")
		})
	}
}

// talker is a speaker that also reads: it gives the model behind it the conversation with calls and
// results, made of the received text. So rendering can be reversed.
type talker struct {
	behind  llm.Model
	format  react.Format
	streams bool // all is an answer, said as it comes
}

var seen = regexp.MustCompile(`(?s)^Observation: (?:\((\d+) of \d+, [a-z_]+\) )?(ERROR - )?(.*)$`)

func (k talker) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	native := *req
	native.Messages = nil
	var open []llm.ToolCall
	number := 0
	for _, m := range req.Messages {
		n := len(native.Messages)
		if m.Role == llm.RoleAssistant {
			if d, err := react.Read(m.Text(), k.format); err == nil && d.Type == react.CallTool {
				open = nil
				for _, c := range append([]react.Call{{Tool: d.Tool, Args: d.Args}}, d.More...) {
					number++
					open = append(open, llm.ToolCall{ID: fmt.Sprint("c", number), Name: c.Tool, Args: c.Args})
				}
				m = llm.Message{Role: llm.RoleAssistant}
				for _, c := range open {
					m.Parts = append(m.Parts, c)
				}
			}
			native.Messages = append(native.Messages, m)
			continue
		}
		var results []llm.Part
		for _, p := range m.Parts {
			t, _ := p.(llm.Text)
			at := seen.FindStringSubmatch(t.Text)
			if at == nil || len(open) == 0 {
				continue
			}
			place := 1
			if at[1] != "" {
				_, _ = fmt.Sscan(at[1], &place)
			}
			results = append(results, llm.ToolResult{CallID: open[place-1].ID, IsError: at[2] != "",
				Parts: []llm.Part{llm.Text{Text: at[3]}}})
		}
		switch {
		case len(results) == 0:
			native.Messages = append(native.Messages, m)
		case n > 0 && native.Messages[n-1].Role == llm.RoleTool:
			native.Messages[n-1].Parts = append(native.Messages[n-1].Parts, results...)
		default:
			native.Messages = append(native.Messages, llm.Message{Role: llm.RoleTool, Parts: results})
		}
	}
	if !k.streams {
		return speaker{k.behind, k.format}.Stream(ctx, &native)
	}
	return func(yield func(llm.Delta, error) bool) {
		before, after := `{"thought":"","type":"final_answer","answer":"`, `"}`
		if k.format == react.XML {
			before, after = "<answer>", "</answer>"
		}
		if !yield(llm.Delta{Part: llm.Text{Text: before}}, nil) {
			return
		}
		for d, err := range k.behind.Stream(ctx, &native) {
			if d.Finish != "" && !yield(llm.Delta{Part: llm.Text{Text: after}}, nil) {
				return
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// It runs over every provider, with the schema of a decision if the provider can hold a model to
// one.
func TestWires(t *testing.T) {
	for _, wire := range []string{"chat", "responses", "anthropic", "gemini"} {
		for _, f := range react.Formats() {
			for _, enforce := range []bool{false, f == react.JSON} {
				t.Run(fmt.Sprintf("%s/%s/%t", wire, f, enforce), func(t *testing.T) {
					two := llm.Assistant(llm.Reasoning{Text: "Both."}, llm.ToolCall{Name: "weather", Args: json.RawMessage(`{"city":"Oslo"}`)},
						llm.ToolCall{Name: "weather", Args: json.RawMessage(`{"city":"Atlantis"}`)})
					behind := newScript(say(f, two), say(f, llm.Assistant(llm.Reasoning{Text: "So."}, llm.Text{Text: "Take an umbrella."})))
					inner, sim := over(t, wire, behind)
					a := &pawl.Agent{Model: react.New(inner,
						&react.Options{Format: f, Parallel: true, Enforce: enforce}), Tools: []pawl.Toolset{weather()}}
					res, err := a.Run(t.Context(), llm.User("Do I need an umbrella?"))
					if err != nil || res.Text() != "Take an umbrella." || res.Spent.Calls != 2 {
						t.Fatalf("got %+v, %v", res, err)
					}
					for i, r := range sim.Received() {
						// a model that cannot be held to a schema is asked in words
						if len(r.Violations) > 0 || len(r.Request.Tools) > 0 ||
							(len(r.Request.Output) > 0) != (enforce && wire != "anthropic") {

							t.Errorf("request %d: violations %v, %d tools, output %s", i+1, r.Violations, len(r.Request.Tools), r.Request.Output)
						}
					}
					var last strings.Builder
					log := sim.Received()
					msgs := log[len(log)-1].Request.Messages
					for _, m := range msgs[len(msgs)-2:] {
						for _, p := range m.Parts {
							last.WriteString(p.(llm.Text).Text + "\n")
						}
					}
					for _, want := range []string{"rain in Oslo", "ERROR - ", "no such city"} {
						if !strings.Contains(last.String(), want) {
							t.Errorf("the model is not told %q:\n%s", want, last.String())
						}
					}
				})
			}
		}
	}
}
