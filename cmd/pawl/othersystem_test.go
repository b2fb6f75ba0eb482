package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
)

// On a system without a sandbox, check says which agents cannot start their programs there. The
// command of another architecture stands for such a system.
func TestCheckWithoutSandbox(t *testing.T) {
	soak.Only(t, "builds the command for another architecture")
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("only linux/amd64 executes programs of linux/386")
	}
	dir := t.TempDir()
	pawl := filepath.Join(dir, "pawl386")
	build := exec.Command("go", "build", "-o", pawl, ".")
	build.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	const said = "on this machine the agent's commands and code are refused"
	for _, c := range []struct {
		tools string
		says  bool
	}{
		{"tools: [shell]", true},
		{"tools: [code]", true},
		{"tools: [{command: {name: now, description: The time., command: [date]}}]", true},
		{"tools: [code]\ncode: embedded", false},
		{"tools: [file]", false},
	} {
		file := filepath.Join(dir, "agent.yaml")
		if err := os.WriteFile(file, []byte("agent: a\nmodel: openai:m\n"+c.tools+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(pawl, "check", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", c.tools, err, out)
		}
		if says := strings.Contains(string(out), said); says != c.says {
			t.Errorf("%s: the notice is there: %t, want %t\n%s", c.tools, says, c.says, out)
		}
	}
}
