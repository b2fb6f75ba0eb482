package mcp_test

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of docs/mcp.md instead of comparing them")

const page = "../docs/mcp.md"

var sections sync.Mutex // parallel tests write parts of one page

// section compares a generated section of the page, or writes it.
func section(t *testing.T, name, text string) {
	t.Helper()
	sections.Lock()
	defer sections.Unlock()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	head, rest, ok := strings.Cut(string(b), begin)
	was, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/mcp.md has no part %s", name)
	}
	text = strings.TrimSpace(text) + "\n"
	if was == text {
		return
	}
	if !*update {
		t.Errorf("the part %s of docs/mcp.md is not what came of the tests; go test ./mcp -run '%s' -update writes it. Now:\n%s", name, t.Name(), text)
		return
	}
	if t.Failed() {
		t.Fatal("nothing is written of a test that fails")
	}
	if err := os.WriteFile(page, []byte(head+begin+text+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
