package parts_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/internal/test/parts"
)

// stop ends a test of recorder.
type stop struct{}

// recorder is a testing.TB that records why the test was skipped.
type recorder struct {
	testing.TB
	skipped string
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(args ...any) { r.Skipf("%s", args...) }

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	panic(stop{})
}

// skipped calls f with a test of its own, and returns why that test was skipped.
func skipped(f func(t testing.TB)) (why string) {
	r := new(recorder)
	defer func() {
		if v := recover(); v != nil && v != any(stop{}) {
			panic(v)
		}
		why = r.skipped
	}()
	f(r)
	return ""
}

// inShort sets -short for the test.
func inShort(t *testing.T, value string) {
	t.Helper()
	before := flag.Lookup("test.short").Value.String()
	if err := flag.Set("test.short", value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("test.short", before) })
}

func TestAbsent(t *testing.T) {
	inShort(t, "false")
	root := t.TempDir()
	for _, name := range []string{"scripts/setup", ".bin/there", "a/node_modules/p/package.json", "bin/node", "bin/tool"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "a"))
	t.Setenv("PATH", filepath.Join(root, "bin"))

	for _, tt := range []struct {
		name string
		find func(t testing.TB)
		want string
	}{
		{"program", func(t testing.TB) { parts.Program(t, "tool", "tools") }, ""},
		{"no program", func(t testing.TB) { parts.Program(t, "gone", "tools") }, "gone is absent: Debian's package tools has it"},
		{"no program of that path", func(t testing.TB) { parts.Program(t, "/none/gone", "tools") },
			"gone is absent: Debian's package tools has it"},
		{"packages", func(t testing.TB) { parts.Packages(t, ".", "p/package.json") }, ""},
		{"no packages", func(t testing.TB) { parts.Packages(t, ".", "q") }, "npm packages are absent: make test installs them"},
		{"built", func(t testing.TB) { parts.Built(t, "there") }, ""},
		{"not built", func(t testing.TB) { parts.Built(t, "server") }, "server is not built: make soak builds it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := skipped(tt.find); got != tt.want {
				t.Errorf("skipped with %q, want %q", got, tt.want)
			}
		})
	}
}

// Under -short no part is used, also if it is there.
func TestShort(t *testing.T) {
	inShort(t, "true")
	const want = "short: it uses more than Go; make test runs it"
	for what, find := range map[string]func(t testing.TB){
		"program": func(t testing.TB) { parts.Program(t, "go", "golang") },
		"built":   func(t testing.TB) { parts.Built(t, "temporal") },
	} {
		if got := skipped(find); got != want {
			t.Errorf("%s: skipped with %q, want %q", what, got, want)
		}
	}
}
