package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
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

var (
	duration  = regexp.MustCompile(`\b(\d+m\d+s|\d+(\.\d+)? m?s)\b`)
	directory = regexp.MustCompile(`/\S*/pawl-demo-\d+`)
	// Every text for models changes the tokens.
	tokens    = regexp.MustCompile(`[\d,]+ tokens in, \d+ out`)
	shownDemo = regexp.MustCompile("(?s)<!-- demo -->\n```text\n(.*?)```")
)

// unchanging replaces the parts of a line that differ from run to run.
func unchanging(line string) string {
	line = directory.ReplaceAllString(duration.ReplaceAllString(line, "T"), "DIR")
	line = tokens.ReplaceAllString(line, "TOKENS")
	return strings.Join(strings.Fields(line), " ")
}

// missing returns the first line of shown that does not follow the lines before it in output. A
// line "…" stands for any lines. An empty text means that there is none.
func missing(shown, output string) string {
	rest := strings.Split(output, "\n")
	skips := false
	for _, want := range strings.Split(strings.TrimSpace(shown), "\n") {
		if want == "…" {
			skips = true
			continue
		}
		found := slices.IndexFunc(rest, func(l string) bool { return unchanging(l) == unchanging(want) })
		if found < 0 || found > 0 && !skips {
			return want
		}
		rest = rest[found+1:]
		skips = false
	}
	return ""
}

// README.md shows lines that the demo prints.
func TestReadme(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	out, status := run(t)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, out)
	}
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := shownDemo.FindSubmatch(page)
	if shown == nil {
		t.Fatal("README.md has no output of the demo")
	}
	if line := missing(string(shown[1]), out); line != "" {
		t.Errorf("the demo does not print this line of README.md, or not there:\n%s\nIt prints:\n%s", line, out)
	}

	// The control: another order, another figure and a line between two others are found.
	for _, shown := range []string{"b\na", "a\nB", "a\nc"} {
		if missing(shown, "a\nb\nc") == "" {
			t.Errorf("%q counts as shown by a, b, c", shown)
		}
	}
	if missing("a\n…\nc", "a\nb\nc") != "" {
		t.Error("a, c with a gap does not count as shown by a, b, c")
	}
}
