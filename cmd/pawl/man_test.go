package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// Each command has a manual page, and programs that check such pages find no fault.
func TestManPages(t *testing.T) {
	soak.Sequential(t)
	dir := t.TempDir()
	var out bytes.Buffer
	sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
	if status := execute([]string{"man", "--dir", dir}, sys); status != 0 {
		t.Fatalf("status %d: %s", status, out.String())
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	all := commands(t)
	if len(pages) != len(all) {
		t.Errorf("got %d pages for %d commands", len(pages), len(all))
	}
	for _, path := range all {
		if _, err := os.Stat(filepath.Join(dir, strings.ReplaceAll(strings.TrimSpace("pawl "+path), " ", "-")+
			".1")); err != nil {
			t.Error(err)
		}
	}
	for _, reader := range [][]string{{"mandoc", "-Tlint", "-W", "warning"}, {"groff", "-man", "-ww", "-Wbreak", "-z",
		"-Tutf8"}} {
		if _, err := exec.LookPath(reader[0]); err != nil {
			t.Logf("there is no %s here", reader[0])
			continue
		}
		if said, err := exec.Command(reader[0], append(reader[1:], pages...)...).CombinedOutput(); err != nil ||
			len(said) > 0 {
			t.Errorf("%s: %v\n%s", reader[0], err, said)
		}
		// The negative control: a wrong page is reported.
		c := exec.Command(reader[0], reader[1:]...)
		c.Stdin = strings.NewReader(".TH X 1 2026-01-01 x x\n.SH NAME\n.nosuchmacro\nx \\- x\n")
		if said, err := c.CombinedOutput(); err == nil && len(said) == 0 {
			t.Errorf("%s says nothing of a page with a macro that there is not", reader[0])
		}
	}
}

// The text of a page equals the text of the help.
func TestManText(t *testing.T) {
	soak.Sequential(t)
	var out bytes.Buffer
	sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
	if status := execute([]string{"man", "tools", "call"}, sys); status != 0 {
		t.Fatalf("status %d: %s", status, out.String())
	}
	for _, want := range []string{".TH PAWL-TOOLS-CALL 1 ", `pawl\-tools\-call \- Call a tool as a model would`, `pawl tools call \-\-repair \-\-dry\-run file_read "{path: 'go.mod',}"`, ".SS Its tools", ".BR pawl\\-tools (1)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, out.String())
		}
	}
	if got, want := roff(".x \\ -\n'y"), "\\&.x \\e \\-\n\\&'y"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if status := execute([]string{"man", "nothing"}, sys); status != cli.StatusUsage {
		t.Errorf("got status %d, want %d", status, cli.StatusUsage)
	}
}
