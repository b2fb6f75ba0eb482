package agentfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// Built.Files are the file tools of the agent, with its protection: a preview for a person shows no
// file that the tools do not reach.
func TestFilesOfBuilt(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"note.txt", "tokens.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := &agentfile.Options{Getenv: environment, Bare: true, Own: []string{filepath.Join(dir, "tokens.json")}}
	built, err := agentOf(t, dir, "agent: a\ntools: [file]\nroot: .\n").Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()

	for name, isShown := range map[string]bool{"note.txt": true, "tokens.json": false} {
		call := llm.ToolCall{ID: "c", Name: "file_write", Args: []byte(`{"path":"` + name + `","content":"after"}`)}
		p, err := built.Files.Preview(t.Context(), call)
		if isShown != (err == nil && p.Before == "before") {
			t.Errorf("%s: the preview is %+v, %v", name, p, err)
		}
	}

	without, err := agentOf(t, dir, "agent: a\ntools: [http]\n").Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if without.Files != nil {
		t.Errorf("an agent without file tools has %v", without.Files)
	}
}
