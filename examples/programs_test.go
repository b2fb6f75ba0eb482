package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
)

// The programs of the docs have a script as their model, so that readers can run them without a
// key. A script calls its tools in any case. This test builds the programs again, with a package
// script whose Model obeys the request: it calls only what the request offers and permits. The
// outputs are the same.
func TestProgramsObey(t *testing.T) {
	soak.Only(t, "it builds all packages again that know the package script")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-short", "-vet=off", "-overlay", overlay(t, root),
		"-run", "^Example|^Test(Changes|Commands|Conversation)$", "-skip", "^(" + strings.Join(disobedient, "|") + ")$"}
	cmd := exec.CommandContext(t.Context(), "go", append(args, documented...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("with a model that obeys the request: %v", err)
	}
}

// documented are the packages whose programs the docs show.
var documented = []string{"./examples/...", ".", "./config", "./durable", "./history", "./policy", "./react", "./recording",
	"./server", "./server/uistream", "./team", "./telemetry"}

// disobedient are programs about what a model does that does not obey.
var disobedient = []string{
	"Example_executor", // it shows the outcome of a call of an unknown tool
}

// overlay writes the files that make the Model of package script obey, and returns their list.
func overlay(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(root, "script", "script.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const stream = "func (m *Model) Stream(ctx context.Context, req *llm.Request)"
	if strings.Count(string(source), stream) != 1 {
		t.Fatalf("%s has no method %s, once", file, stream)
	}
	scripted := strings.Replace(string(source), stream, strings.Replace(stream, "Stream", "scripted", 1), 1)

	replaced := map[string]string{}
	add := func(path, text string) {
		t.Helper()
		copied := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[path] = copied
	}
	add(file, scripted)
	add(filepath.Join(root, "script", "obeys.go"), `package script

import (
	"context"
	"iter"

	"github.com/pawl-go/pawl/internal/test/obey"
	"github.com/pawl-go/pawl/llm"
)

// Stream yields the turn of the script, made to obey the request.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return obey.Reply(req, m.scripted(ctx, req))
}
`)

	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
