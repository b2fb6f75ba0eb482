package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain makes the test binary the program itself for a child process.
func TestMain(m *testing.M) {
	if os.Getenv("DEMO_CHILD") != "" {
		main()
	}
	os.Exit(m.Run())
}

func run(t *testing.T, args ...string) (output string, status int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "DEMO_CHILD=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	out, status := run(t, "--out", dir)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, out)
	}
	for _, want := range []string{"pawl demo: an agent at work", dir + "/report.md", "/demo --data DIR"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q\n%s", want, out)
		}
	}
	if _, err := os.Stat(dir + "/report.md"); err != nil {
		t.Error(err)
	}
	if out, status := run(t, "--data", t.TempDir()); status == 0 || !strings.Contains(out, "no usable data file") {
		t.Errorf("without data files: exit status %d\n%s", status, out)
	}
}
