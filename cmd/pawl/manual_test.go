package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/cli.md again")

// commands are all commands, each before those below it; the first is the program itself.
func commands(t *testing.T) []string {
	t.Helper()
	k, err := parser(&system{out: io.Discard, err: io.Discard, env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		all = append(all, strings.TrimSpace(path))
		for _, below := range n.Children {
			if below.Type == kong.CommandNode {
				walk(below, path+" "+below.Name)
			}
		}
	}
	walk(k.Model.Node, "")
	return all
}

// docs/cli.md is what --help says, command after command. make docs writes it.
func TestCLIPage(t *testing.T) {
	t.Setenv("COLUMNS", "")
	var page strings.Builder
	page.WriteString("<!-- Made from the help of cmd/pawl. Change it there, then: make docs -->\n\n# The command\n")
	for _, command := range commands(t) {
		var out bytes.Buffer
		sys := &system{out: &out, err: &out, env: func(string) string { return "" }}
		if status := execute(append(strings.Fields(command), "--help"), sys); status != 0 {
			t.Errorf("pawl %s --help: exit status %d", command, status)
		}
		fmt.Fprintf(&page, "\n## %s\n\n```text\n%s\n```\n", strings.TrimSpace("pawl "+command), strings.TrimSpace(out.String()))
	}
	path := filepath.Join("..", "..", "docs", "cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), page.String()); diff != "" {
		t.Errorf("docs/cli.md is not what --help says; make docs writes it. Got -, want +\n%s", diff)
	}
}

// A mistake in the program is a line and a status, not a stack trace.
func TestInternalError(t *testing.T) {
	var out bytes.Buffer
	sys := &system{out: &out, err: &out, env: func(string) string { return "" }} // no standard input: reading it panics
	if status := execute([]string{"wire", "decode", "--lines"}, sys); status != statusFailed {
		t.Errorf("got exit status %d, want %d", status, statusFailed)
	}
	if !strings.HasPrefix(out.String(), "pawl: error: internal error: ") || strings.Contains(out.String(), "goroutine") {
		t.Errorf("got %q", out.String())
	}
}
