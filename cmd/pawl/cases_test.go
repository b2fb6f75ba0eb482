package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/parts"
)

// TestReportedCases plays bug reports of other systems to the command, each by a program that
// prints a line for each check, which begins with PASS, FAIL or SKIP. The controls are the same
// checks on inputs that are in order.
func TestReportedCases(t *testing.T) {
	python := parts.Program(t, "python3", "python3")
	dir := corpora.Cases(t)
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pawl := filepath.Join(t.TempDir(), "pawl")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", pawl, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	programs, err := filepath.Glob(filepath.Join(dir, "*", "case.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range append(programs, filepath.Join(dir, "controls.py")) {
		name, _ := filepath.Rel(dir, program)
		t.Run(strings.TrimSuffix(name, "/case.py"), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, program)
			cmd.Env = append(os.Environ(), "PAWL="+pawl, "REPO="+checkout,
				"PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				if !strings.HasPrefix(line, "PASS") {
					t.Error(strings.TrimSpace(line))
				}
			}
			if len(out) == 0 {
				t.Error("it checks nothing")
			}
		})
	}
}
