package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

// A file becomes an agent that runs.
func Example() {
	file, err := config.Parse("analyst.yaml", []byte(`
agent: analyst
model: script:testdata/hello.json
tools: [data]
approve: {deny: [data_transform]}
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	built, err := file.Build(context.Background(), "analyst")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer built.Close()
	res, err := built.Agent.Run(context.Background(), llm.User("Who are you?"))
	fmt.Println(res.Text(), err)
	// Output: The analyst. <nil>
}

// two is a file with two agents, of which the first has the second as its worker.
const two = `
agent: lead
model: ${MODEL}
team: {manager: network, workers: [{agent: helper}]}
---
agent: helper
description: Helps.
model: script:testdata/hello.json
`

func TestFile(t *testing.T) {
	options := &config.Options{
		Getenv: func(name string) string {
			if name == "MODEL" {
				return "script:testdata/hello.json"
			}
			return ""
		},
		Tools: []pawl.Toolset{&pawl.Tool{Name: "mine", Description: "A tool of the program.", Passive: true}},
	}
	file, err := config.Parse("two.yaml", []byte(two), options)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(file.Agents(), " "); got != "lead helper" {
		t.Errorf("the agents are %q, want lead and helper", got)
	}
	if err := file.Check(t.Context()); err != nil {
		t.Errorf("Check: %v, want no fault", err)
	}

	built, err := file.Build(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	if built.Agent.Name != "lead" {
		t.Errorf("an empty name built %q, want the agent that is not a worker", built.Agent.Name)
	}
	var names []string
	for _, tool := range built.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "helper") || !strings.Contains(got, "mine") {
		t.Errorf("the tools are %q, want the worker and the tool of the program", got)
	}

	yaml, err := file.YAML("lead")
	if err != nil || !strings.Contains(string(yaml), "agent: lead") {
		t.Errorf("YAML returned %q, %v, want the agent", yaml, err)
	}
}

// A key without an effect is a warning of the file, and no fault.
func TestWarnings(t *testing.T) {
	const text = `
apiVersion: agent.framework/v2
kind: Agent
metadata: {name: analyst, description: D}
resources: {inference_gateways: [{name: llm, type: OpenAIGateway, config: {model: gpt-5-mini}}]}
spec:
  planner:
    type: ReActPlanner
    config:
      inference_gateway: llm
`
	file, err := config.Parse("analyst.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := file.Warnings()
	if len(all) == 0 || all[0].Line != 4 || !strings.Contains(all[0].Error(), "warning: description and version are for people") {
		t.Errorf("the warnings are %v", all)
	}

	none, err := config.Parse("a.yaml", []byte("agent: a\nmodel: script:testdata/hello.json\n"), nil)
	if err != nil || none.Warnings() != nil {
		t.Errorf("%v, the warnings are %v, want none", err, none.Warnings())
	}
}

func TestFaults(t *testing.T) {
	name := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(name, []byte("agent: a\nmodle: script:x.json\ntools: [flie]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(name, nil)
	var one *config.Finding
	var all config.Findings
	switch {
	case file != nil:
		t.Error("Load returned a file with a fault")
	case !errors.As(err, &all) || !errors.As(err, &one):
		t.Fatalf("got %v, want Findings", err)
	case one.Code != "unknown_key" || one.Line != 2 || !strings.Contains(one.Hint, "model"):
		t.Errorf("got %v, want the line of modle and model as its hint", one)
	}

	if _, err := config.Load(filepath.Join(t.TempDir(), "absent.yaml"), nil); !errors.As(err, &all) {
		t.Errorf("an absent file: got %v, want Findings", err)
	}

	file, err = config.Parse("a.yaml", []byte("agent: a\nmodel: script:testdata/hello.json\napprove: {deny: [nothing]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("Check: got %v, want the rule for a tool that does not exist", err)
	}
	if _, err := file.Build(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "no agent is named b") {
		t.Errorf("Build of an unknown name: got %v", err)
	}
	if _, err := file.YAML("b"); err == nil {
		t.Error("YAML of an unknown name: no error")
	}
}

func TestSchema(t *testing.T) {
	if s := string(config.Schema()); !strings.Contains(s, `"agent"`) {
		t.Errorf("the schema does not name the key agent: %.200s", s)
	}
}

// The agent of a file has the answer that a terminal tool gave.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "file", func(t *testing.T, task string) string {
		dir := t.TempDir()
		said := llm.Assistant(llm.ToolCall{ID: "c1", Name: "submit", Args: json.RawMessage(`{}`)})
		if strings.Contains(task, "speak") {
			said.Parts = append([]llm.Part{llm.Text{Text: "I submit it."}}, said.Parts...)
		}
		turns, err := json.Marshal(map[string]any{"turns": []any{map[string]any{"message": said, "finish": "tool_calls"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "turns.json"), turns, 0o600); err != nil {
			t.Fatal(err)
		}

		submit := pawl.Func("submit", "Submits the report.", func(context.Context, struct{}) (string, error) {
			return answertest.Report, nil
		})
		submit.Effect = pawl.EffectRead
		file, err := config.Parse("a.yaml", []byte("agent: a\nmodel: script:turns.json\nterminal_tools: [submit]\n"),
			&config.Options{Dir: dir, Tools: []pawl.Toolset{submit}})
		if err != nil {
			t.Fatal(err)
		}
		built, err := file.Build(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer built.Close()
		res, err := built.Agent.Run(t.Context(), llm.User(task))
		if err != nil {
			t.Fatal(err)
		}
		return res.Text()
	})
}

// rounds in a file mean what Limits.Rounds means; 0 is none.
func TestRounds(t *testing.T) {
	answertest.PlayRounds(t, "file", func(t *testing.T, l *answertest.Looker, rounds int) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "turns.json"), []byte(`{"turns":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := config.Parse("a.yaml", fmt.Appendf(nil, "agent: a\nmodel: script:turns.json\nlimits: {rounds: %d}\n", rounds),
			&config.Options{Dir: dir, Tools: l.Tools})
		if err != nil {
			t.Fatal(err)
		}
		built, err := file.Build(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer built.Close()
		built.Agent.Model = l.Model
		res, err := runtest.Ended(built.Agent.Run(t.Context(), llm.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		return answertest.ShownBy(res)
	})
}
