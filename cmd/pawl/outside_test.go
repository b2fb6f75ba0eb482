package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/sandbox"
)

// Without a flag the sandbox confines a command tool: it reads its own folder and not the files
// next to the folder. As a control, --allow-commands removes the sandbox.
func TestCommandToolsAreHeld(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	tools := filepath.Join(dir, "tools")
	ok(t, os.Mkdir(tools, 0o755))
	ok(t, os.WriteFile(secret, []byte("the secret"), 0o644))
	ok(t, os.WriteFile(filepath.Join(tools, "mine"), []byte("my own"), 0o644))
	file := filepath.Join(tools, "tools.yaml")
	ok(t, os.WriteFile(file, []byte("tools:\n  - command: {name: show, description: Shows files., run: [sh, -c, 'cat mine; cat "+secret+"; true']}\n"), 0o644))
	call := func(flags ...string) string {
		var out bytes.Buffer
		sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &out, Env: os.Getenv}
		execute(append([]string{"tools", "call", "show", "--tool-file", file}, flags...), sys)
		return out.String()
	}
	if got := call("--allow-commands"); !strings.Contains(got, "my own") || !strings.Contains(got, "the secret") {
		t.Errorf("outside of the sandbox: %s", got)
	}
	got := call()
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Log(err)
		if !strings.Contains(got, err.Error()) {
			t.Errorf("where strict cannot be enforced: %s", got)
		}
		return
	}
	if !strings.Contains(got, "my own") || strings.Contains(got, "the secret") {
		t.Errorf("in the sandbox: %s", got)
	}
}
