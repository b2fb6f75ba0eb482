package corpora_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/corpora"
)

// data makes a folder of recorded data, and names it in the environment.
func data(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PAWL_CORPORA", dir)

	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte("[1]\n[2]\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}

	for name, content := range map[string][]byte{
		"numbers/plain.jsonl":  []byte("1\n\n2"),
		"numbers/a.jsonl.gz":   zipped.Bytes(),
		"numbers/b.jsonl.gz":   zipped.Bytes(),
		"numbers/empty.jsonl":  nil,
		"numbers/broken.jsonl": []byte("1\nx\n"),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRead(t *testing.T) {
	data(t)
	if got := corpora.Lines[int](t, "numbers/plain.jsonl"); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("plain lines: got %v", got)
	}
	if got := corpora.Lines[[]int](t, "numbers/a.jsonl.gz"); len(got) != 2 || got[1][0] != 2 {
		t.Errorf("compressed lines: got %v", got)
	}
	if got := corpora.Glob(t, "numbers/*.gz"); !slices.Equal(got, []string{"numbers/a.jsonl.gz", "numbers/b.jsonl.gz"}) {
		t.Errorf("glob: got %q", got)
	}
	if got := string(corpora.Read(t, "numbers/plain.jsonl")); got != "1\n\n2" {
		t.Errorf("content: got %q", got)
	}
}

// stop ends a test of recorder.
type stop struct{}

// recorder is a testing.TB that records how the test ended.
type recorder struct {
	testing.TB
	skipped string
	failed  bool
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(args ...any) {
	r.skipped = args[0].(string)
	panic(stop{})
}

func (r *recorder) Fatal(...any) {
	r.failed = true
	panic(stop{})
}

func (r *recorder) Fatalf(string, ...any) { r.Fatal() }

// ended calls f with a test of its own, and returns how that test ended.
func ended(f func(t testing.TB)) (r recorder) {
	defer func() {
		if v := recover(); v != nil && v != any(stop{}) {
			panic(v)
		}
	}()
	f(&r)
	return r
}

// Without the data, every function skips the test in one form. Data that cannot be read fails it.
func TestAbsent(t *testing.T) {
	data(t)
	for what, f := range map[string]func(t testing.TB){
		"path":  func(t testing.TB) { corpora.Path(t, "words/dev") },
		"glob":  func(t testing.TB) { corpora.Glob(t, "words/*.gz") },
		"read":  func(t testing.TB) { corpora.Read(t, "words/dev.json") },
		"lines": func(t testing.TB) { corpora.Lines[string](t, "words/dev.jsonl") },
	} {
		if got := ended(f); got.skipped != "corpora absent: words" || got.failed {
			t.Errorf("%s: skipped with %q, failed %t", what, got.skipped, got.failed)
		}
	}
	for _, name := range []string{"numbers/empty.jsonl", "numbers/broken.jsonl"} {
		if got := ended(func(t testing.TB) { corpora.Lines[int](t, name) }); got.skipped != "" || !got.failed {
			t.Errorf("%s: skipped with %q, failed %t", name, got.skipped, got.failed)
		}
	}
}

// The folder is found from every folder of the checkout, also below a nested module.
func TestFolder(t *testing.T) {
	t.Setenv("PAWL_CORPORA", "")
	root := t.TempDir()
	nested := filepath.Join(root, "checkout", "nested", "deep")
	source := filepath.Join(root, "checkout", "internal", "test", "corpora")
	numbers := filepath.Join(root, "shared", "data", "numbers")
	for _, dir := range []string{nested, source, numbers} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(source, "corpora.go"), filepath.Join(nested, "..", "go.mod")} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	t.Chdir(nested)
	if got := corpora.Path(t, "numbers"); !strings.HasSuffix(got, filepath.Join("shared", "data", "numbers")) {
		t.Errorf("got %s", got)
	}
	t.Chdir(root)
	if got := ended(func(t testing.TB) { corpora.Path(t, "numbers") }); !got.failed {
		t.Errorf("outside of a checkout: skipped with %q, failed %t", got.skipped, got.failed)
	}
}
