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
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// checkout returns the folder of the root module.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// blocksOf returns the blocks of a page by its path within the checkout.
func blocksOf(t *testing.T, name string) []docgen.Block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout(t), name))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docgen.Blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// runPasted runs a program in an empty module, as a newcomer pastes it, with more variables. The
// module comes from this checkout in place of the network.
func runPasted(t *testing.T, program string, env ...string) string {
	t.Helper()
	root := checkout(t)
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
	c.Env = append(c.Env, env...)
	got, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("the program ended with %v: %s", err, got)
	}
	return string(got)
}

// TestFirstAgent follows docs/first-agent.md in an empty folder, as a newcomer does: it writes the
// files of the page, runs its sessions, and builds and runs its scripted program. It prints the
// time.
func TestFirstAgent(t *testing.T) {
	soak.Sequential(t)
	blocks := blocksOf(t, filepath.Join("docs", "first-agent.md"))
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
		case isProgram(b) && strings.Contains(b.Text, "script.New("):
			program = b.Text
			output = blocks[i+1].Text
		}
	}
	if program == "" {
		t.Fatal("the page has no program with a script")
	}
	t.Logf("the agent in a file: %v", time.Since(began).Round(time.Millisecond))

	if got := runPasted(t, program); got != output {
		t.Errorf("the program printed %q; want %q", got, output)
	}
	t.Logf("with the program in Go: %v", time.Since(began).Round(time.Millisecond))
}

// isProgram reports whether a block is a whole program.
func isProgram(b docgen.Block) bool {
	return b.Class == "go" && strings.Contains(b.Text, "package main\n")
}

// The first program of the README and of docs/first-agent.md has a real provider. It compiles in an
// empty module as it stands, and talks with a server that speaks the provider's API.
func TestFirstProgram(t *testing.T) {
	soak.Sequential(t)
	sim, err := pawltest.NewSimulator(script.New(
		script.Call("weather", `{"name":"Oslo"}`),
		script.Func(func(req *llm.Request) script.Turn {
			return script.Say("Take one: " + script.Results(req)[0].Text() + ".")
		})), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()

	var seen string
	for _, name := range []string{"README.md", filepath.Join("docs", "first-agent.md")} {
		first := ""
		for _, b := range blocksOf(t, name) {
			if isProgram(b) {
				first = b.Text
				break
			}
		}
		if !strings.Contains(first, "pawl/provider/") {
			t.Errorf("%s: its first program has no real provider: %q", name, first)
			continue
		}
		if first == seen {
			continue // both pages show the same file
		}
		seen = first

		began := time.Now()
		got := runPasted(t, first, "OPENAI_API_KEY=test", "OPENAI_BASE_URL="+sim.URL)
		if want := "Take one: rain in Oslo.\n"; got != want {
			t.Errorf("%s: the program printed %q; want %q", name, got, want)
		}
		t.Logf("%s: %v", name, time.Since(began).Round(time.Millisecond))
	}
}
