package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// The command and YAML agents ask before a call with EffectWrite, also where a program builds the
// agent of a file. An agent in Go with the same tools does not ask. TestServe has the server.
func TestWritesAskByDefault(t *testing.T) {
	soak.Sequential(t)
	dir := t.TempDir()
	write := writer(t, dir)
	write("turns.json", `{"turns": [{"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "file_write", "args": {"path": "a.txt", "content": "hi"}}]}, "finish": "tool_calls"}, {"message": {"role": "assistant", "parts": [{"type": "text", "text": "written"}]}, "finish": "stop"}]}`)
	file := write("agent.yaml", "agent: clerk\nmodel: script:turns.json\ntools: [file]\nroot: .\n")
	written := func() bool {
		_, err := os.Stat(filepath.Join(dir, "a.txt"))
		return err == nil
	}
	for _, args := range []string{"run agent.yaml Go", "run --model script:turns.json --tools file --root . Go"} {
		if out := pawlIn(t, dir, strings.Fields(args)...); !strings.Contains(out, "1 call waits for an answer: run/1/0") || written() {
			t.Errorf("pawl %s: written %t: %s", args, written(), out)
		}
	}
	if out := pawlIn(t, dir, "run", "agent.yaml", "--yes", "Go"); !written() {
		t.Errorf("as a control, with --yes: %s", out)
	}
	if err := os.Remove(filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}

	f, err := agentfile.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	built, err := f.Agents[0].Build(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	if res, err := built.Agent.Run(t.Context(), llm.User("Go")); err == nil || res.Stop != pawl.StopPending || written() {
		t.Errorf("config: got %s, %v, written %t", res.Stop, err, written())
	}
	a := &pawl.Agent{Tools: built.Agent.Tools}
	if built, err = f.Agents[0].Build(t.Context(), nil); err != nil { // the script begins again
		t.Fatal(err)
	}
	defer built.Close()
	a.Model = built.Agent.Model
	if res, err := a.Run(t.Context(), llm.User("Go")); err != nil || !written() {
		t.Errorf("Go: got %s, %v, written %t", res.Stop, err, written())
	}
}

// The pages and the documentation of Agent say the same about calls with EffectWrite.
func TestPagesSayWhoAsks(t *testing.T) {
	for path, want := range map[string]string{
		"README.md":         "The command, YAML agents and the server ask by default.",
		"docs/approvals.md": "The command, YAML agents and the server ask by default.",
		"docs/yaml.md":      "The command, YAML agents and the server ask by default.",
		"agent.go":          "calls with EffectWrite or EffectUnstated run without a question.",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		if flat := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", "")), " "); !strings.Contains(flat, want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}
