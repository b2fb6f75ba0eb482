package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/docgen"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// TestFirstAgent follows docs/first-agent.md in an empty folder, as a newcomer does: it writes the
// files of the page, runs its sessions, and builds and runs its program. It prints the time. The
// module comes from this checkout in place of the network.
func TestFirstAgent(t *testing.T) {
	soak.Sequential(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "first-agent.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docgen.Blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p := newPage(t, "first-agent.md")
	p.dir = t.TempDir()
	var program, output string
	for i, b := range blocks {
		if err := p.keep(b); err != nil {
			t.Fatal(err)
		}
		switch {
		case b.Class == "console":
			if err := p.console(b.Text); err != nil {
				t.Errorf("line %d: %v", b.Line, err)
			}
		case b.Class == "go" && strings.HasPrefix(b.Text, "package main") && i+1 < len(blocks):
			program, output = b.Text, blocks[i+1].Text
		}
	}
	if program == "" {
		t.Fatal("the page has no program")
	}
	t.Logf("the agent in a file: %v", time.Since(began).Round(time.Millisecond))

	dir := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	const module = "module github.com/pawl-go/pawl"
	for name, text := range map[string]string{
		"main.go": program,
		"go.sum":  string(sums),
		"go.mod": strings.Replace(string(mod), module, "module hello", 1) +
			"\nrequire github.com/pawl-go/pawl v0.0.0\n\nreplace github.com/pawl-go/pawl => " + root + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "run", "-mod=mod", ".")
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false -trimpath", "GOWORK=off", "GOPROXY=off")
	got, err := c.CombinedOutput()
	if err != nil || string(got) != output {
		t.Errorf("the program printed %q, %v; want %q", got, err, output)
	}
	t.Logf("with the program in Go: %v", time.Since(began).Round(time.Millisecond))
}
