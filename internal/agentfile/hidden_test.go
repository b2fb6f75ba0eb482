package agentfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
)

// The keys of all models of an agent are hidden in outputs: its own, its fallback's, its side
// model's and its worker's.
func TestKeysAreHidden(t *testing.T) {
	keys := map[string]string{"FIRST": "key-first-1", "SECOND": "key-second-2", "SIDE": "key-side-3", "WORKER": "key-worker-4"}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	text := `agent: clerk
model:
  - {name: "openai:gpt-5.6-luna", key_env: FIRST}
  - {name: "openai:gpt-5.6-terra", key_env: SECOND}
side: {model: {name: "openai:gpt-5.6-luna", key_env: SIDE}}
team:
  workers: [{agent: helper, description: Helps.}]
---
agent: helper
model: {name: "openai:gpt-5.6-luna", key_env: WORKER}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}

	getenv := func(name string) string { return keys[name] }
	f, err := agentfile.Load(file, &agentfile.LoadOptions{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	for name, key := range keys {
		if !slices.Contains(built.Hidden, key) {
			t.Errorf("the key in %s is not hidden: %q", name, built.Hidden)
		}
	}
}
