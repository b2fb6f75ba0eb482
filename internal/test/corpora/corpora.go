// Package corpora opens the recorded data that some tests compare with. The data is not part of the
// project: it is in the folder that PAWL_CORPORA names, or in shared/data next to the checkout. A
// test that needs it gets it from this package alone, and is skipped where it is absent, so that
// the tests pass in a clone with nothing next to it.
//
//	for _, c := range corpora.Lines[call](t, "bfcl/dev/simple_python.jsonl.gz") {
//
// The house rules (internal/test/archtest) find a test that reads the data in another way.
package corpora

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Absent starts the message with which a test is skipped for want of the data. The name of the
// absent corpus follows.
const Absent = "corpora absent: "

// Path returns the path of a file or folder of the data, and skips the test if it does not exist.
// The name has slashes and is relative to the data: "bfcl/dev".
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(folder(t), filepath.FromSlash(name))

	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		corpus, _, _ := strings.Cut(name, "/")
		t.Skip(Absent + corpus)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Glob returns the names of the files that the pattern of path.Match selects, sorted. It skips the
// test if there is none.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(folder(t)), pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		corpus, _, _ := strings.Cut(pattern, "/")
		t.Skip(Absent + corpus)
	}
	return names
}

// Read returns the content of a file of the data, and skips the test if it does not exist. A file
// whose name ends in .gz is decompressed.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return b
	}

	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err = io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// Lines returns the JSON values of the lines of a file of the data, and skips the test if the file
// does not exist. A file without a value fails the test.
func Lines[T any](t testing.TB, name string) []T {
	t.Helper()
	var values []T
	for line := range bytes.Lines(Read(t, name)) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: value %d: %v", name, len(values)+1, err)
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return values
}

// Cases returns the folder of programs that play bug reports to the command, next to the data, and
// skips the test if it does not exist.
func Cases(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(folder(t), "..", "found", "cases")
	if _, err := os.Stat(dir); err != nil {
		t.Skip(Absent + "cases")
	}
	return dir
}

// folder returns the folder of the data. It need not exist.
func folder(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("PAWL_CORPORA"); dir != "" {
		return dir
	}
	return filepath.Join(checkout(t), "..", "shared", "data")
}

// checkout returns the root of the checkout, above the test's working directory. A nested module
// has a go.mod of its own, so that the root is known by this package's source.
func checkout(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "internal", "test", "corpora", "corpora.go")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("%s is in no checkout of this project", start)
		}
	}
}
