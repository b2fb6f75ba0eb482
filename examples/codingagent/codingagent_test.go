package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/script"
)

const source = "package main\n\nfunc add(a, b int) int {\n\treturn a - b\n}\n"

// project makes a folder with a fault in it.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "add.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// talk gives the lines of input to an agent with the model, and returns the output.
func talk(t *testing.T, model llm.Model, dir string, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := chat(model, dir, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// inOrder fails the test unless the parts are in the output in this order.
func inOrder(t *testing.T, out string, parts ...string) {
	t.Helper()
	rest := out
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Fatalf("%q is missing in\n%s\nof\n%s", p, rest, out)
		}
		rest = after
	}
}

func written(t *testing.T, dir, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "add.go"))
	if err != nil || string(got) != want {
		t.Errorf("add.go: %q, %v, want %q", got, err, want)
	}
}

func edit(from, to string) script.Turn {
	return script.Call("file_edit", map[string]any{"path": "add.go",
		"edits": []map[string]string{{"old": from, "new": to}}})
}

// A denied change is not made and the model reads the reason; an approved change is made.
func TestChanges(t *testing.T) {
	dir := project(t)
	model := script.New(
		script.Call("todo", `{"items": [{"text": "repair add", "done": false}]}`),
		edit("a - b", "b + a"),
		script.Expect(edit("a - b", "a + b"), script.Returned("file_edit", "keep the order")),
		script.Expect(script.Say("Repaired."), script.Returned("file_edit", "add.go")),
		script.Say("Nothing is left."),
	)
	out := talk(t, catalog.Price{Input: 1, Output: 1}.Of(model), dir, "Repair add.", "keep the order", "y", "What is left?")
	inOrder(t, out, "> ", "[ ] repair add", "file_edit add.go\n- \treturn a - b\n+ \treturn b + a\n", "deny: ", "denied",
		"+ \treturn a + b\n", "deny: ", "Repaired.", "[4 requests, ", "cost $0.0", "> ", "Nothing is left.", "[1 requests, ")
	written(t, dir, strings.Replace(source, "a - b", "a + b", 1))
	inOrder(t, talk(t, script.New(script.Say("Hello.")), dir, "Hello?"), "cost unknown")
}

// A question without an answer denies the change.
func TestInputEnds(t *testing.T) {
	dir := project(t)
	model := script.New(edit("a - b", "a + b"), script.Say("Not repaired."))
	inOrder(t, talk(t, model, dir, "Repair add."), "deny: ", "file_edit denied", "Not repaired.")
	written(t, dir, source)
}

// Commands run in the sandbox after a yes: they see the project, and Go if it is installed.
func TestCommands(t *testing.T) {
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Skip(err)
	}
	dir := project(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := "grep -c return add.go; cat " + secret
	if len(toolchain().Env) > 0 {
		command += "; go version"
	}
	out := talk(t, script.New(
		script.Call("shell_exec", map[string]string{"command": command}),
		script.Func(func(req *llm.Request) script.Turn {
			return script.Say("I see: " + script.ResultOf(req, "shell_exec").Text())
		}),
	), dir, "Look around.", "y")
	inOrder(t, out, `shell_exec {"command":`, "deny: ", "I see: ", "1\n")
	if strings.Contains(out, "hidden") || len(toolchain().Env) > 0 && !strings.Contains(out, "go version go") {
		t.Error(out)
	}
}
