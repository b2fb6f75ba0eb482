package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example with an MCP server runs to its end. This test program is the server, under the
// command's name.
func TestExampleMCP(t *testing.T) {
	pawl, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err) // testscript puts it into PATH
	}
	out, err := exec.CommandContext(t.Context(), pawl, "run", filepath.Join("..", "..", "examples", "mcp",
		"agent.yaml"), "What do the notes say?").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "closed on Mondays (notes.txt)") || !strings.Contains(string(out),
		"notes_file_read") {
		t.Errorf("%v\n%s", err, out)
	}
}
