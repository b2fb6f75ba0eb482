package wiretest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Part compares the part of a page of docs between two lines with its name with the expected text.
// With -update it writes the part, unless the test has failed.
func Part(t *testing.T, page, name, want string) {
	t.Helper()
	path := filepath.Join(module(), "docs", page)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": made by a test; make docs writes it -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(string(b), begin)
	got, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("docs/%s has no lines %q and %q", page, begin, end)
	case got == want:
	case *update && !t.Failed():
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/%s is not what the tests say; go test -run %s -update writes it in the page:\n%s\nby the tests:\n%s", page, t.Name(), got, want)
	}
}

// module is the folder of go.mod, above the test's own.
func module() string {
	dir, err := filepath.Abs(".")
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}
