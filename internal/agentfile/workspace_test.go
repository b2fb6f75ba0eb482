package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// AGENTS.md is read once: the rules look for the text that the instructions have, and not for what
// the file says later. Without agents_md the file is part of neither.
func TestAgentsMD(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	if err := os.WriteFile(file, []byte("Run make before each patch."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reads := range []bool{true, false} {
		text := "agent: a\nmodel: {name: openai:gpt-6.1-terra, key_env: K}\ninstructions: Fix it.\nroot: " + dir + "\n"
		want := ""
		if reads {
			text += "agents_md: true\n"
			want = "Run make before each patch."
		}
		f, err := agentfile.Parse("agent.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Getenv: func(string) string { return "k" }})
		if err != nil {
			t.Fatal(err)
		}
		defer built.Close()

		if got := built.Rules.Flow.Foreign; got != want {
			t.Errorf("agents_md %v: the rules know %q as foreign, want %q", reads, got, want)
		}
		if has := strings.Contains(built.Agent.Instructions, "Run make"); has != reads {
			t.Errorf("agents_md %v: the instructions are %q", reads, built.Agent.Instructions)
		}
		if l := built.Agent.Label; reads != (l != nil && l.By == llm.Attached) {
			t.Errorf("agents_md %v: the instructions have the label %v", reads, l)
		}
	}
}

// Keys that others use have a hint to the right one.
func TestWordsOfOthers(t *testing.T) {
	for key, want := range map[string]string{
		"system_prompt": "did you mean instructions?",
		"side_model":    "did you mean side: {model: PROVIDER:NAME}?",
	} {
		_, err := agentfile.Parse("agent.yaml", []byte("agent: a\nmodel: openai:gpt-6.1-terra\n"+key+": x\n"), nil)
		if all := agentfile.FindingsOf(err); len(all) != 1 || all[0].Hint != want {
			t.Errorf("%s: got %v, want the hint %q", key, err, want)
		}
	}
}
