package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// application is a row of README.md: a folder or file, what it shows, lines, modules.
var application = regexp.MustCompile(`(?m)^\| \[[^]]+\]\(([^)]+)\) \| .* \| (\d+) \| (\d+) \|$`)

// README.md states the size of each application and the modules that it needs.
func TestApplications(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := application.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 3 {
		t.Fatalf("README.md has %d applications", len(rows))
	}
	for _, row := range rows {
		if got := strconv.Itoa(codeLines(t, row[1])); got != row[2] {
			t.Errorf("%s has %s lines, README.md says %s", row[1], got, row[2])
		}
		if got := strconv.Itoa(len(modules(t, row[1]))); got != row[3] {
			t.Errorf("%s needs %s modules %q, README.md says %s", row[1], got, modules(t, row[1]), row[3])
		}
	}
}

// codeLines counts the lines of a file or of the files in a folder, without blank lines, comments
// and tests.
func codeLines(t *testing.T, path string) (n int) {
	t.Helper()
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		t.Fatal(err)
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range files {
		comment := map[string]string{".go": "//", ".yaml": "#"}[filepath.Ext(name)]
		if comment == "" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, comment) {
				n++
			}
		}
	}
	return n
}

// modules returns the modules besides pawl that the program in a folder or of a file is built from.
// A folder without a program has none.
func modules(t *testing.T, path string) []string {
	t.Helper()
	if filepath.Ext(path) != "" {
		path = filepath.Dir(path)
	}
	if programs, err := filepath.Glob(filepath.Join(path, "*.go")); err != nil || programs == nil {
		return nil
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./"+path)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	slices.Sort(found)
	return slices.Compact(found)
}
