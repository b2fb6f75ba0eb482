package docgen

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated parts instead of comparing them")

const root = "../../.."

func read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	return string(b), err
}

// current compares the file name with want, or updates it.
func current(t *testing.T, name, want string) {
	t.Helper()
	got, err := read(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("wrote %s", name)
		return
	}
	t.Errorf("%s is not what the code says; make docs writes it again (-in the file +from the code):\n%s",
		name, cmp.Diff(got, want))
}

// TestEventsPage keeps docs/events.md equal to event.go.
func TestEventsPage(t *testing.T) {
	src, err := read("event.go")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Events(src)
	if err != nil {
		t.Fatal(err)
	}
	current(t, "docs/events.md", want)
}

// TestPages keeps the Go blocks of README.md and docs/*.md equal to their source files.
func TestPages(t *testing.T) {
	for _, name := range pages(t) {
		t.Run(name, func(t *testing.T) {
			page, err := read(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Fill(page, read)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			current(t, name, want)
		})
	}
}

func TestFill(t *testing.T) {
	files := map[string]string{
		"a.go": "package a\n",
		"b.go": "package b\n\nfunc f() {\n\t// begin x\n\tif true {\n\t\tg()\n\t}\n\n\tg()\n\t// end x\n}\n",
		"c.go": "// begin x\n",
		"e.go": "// About it.\npackage e\n\nimport \"fmt\"\n\nfunc Example_e() {\n\tf()\n\n\t// Output:\n\t// one\n}\n\nfunc f() {}\n",
		"d.go": "package d\n\nfunc Example_x() {\n\tf()\n\t// Output:\n\t// one\n\t//\n\t//  two\n}\n\nfunc ExampleY() {\n}\n",
	}
	open := func(name string) (string, error) {
		if s, ok := files[name]; ok {
			return s, nil
		}
		return "", os.ErrNotExist
	}
	for _, tt := range []struct{ name, page, want, err string }{
		{"no code", "# Title\n\ntext\n", "# Title\n\ntext\n", ""},
		{"other code", "```sh\ngo run .\n```\n", "```sh\ngo run .\n```\n", ""},
		{"file", "<!-- code: a.go -->\n```go\nold\n```\nend\n", "<!-- code: a.go -->\n```go\npackage a\n```\nend\n", ""},
		{"region", "<!-- code: b.go#x -->\n```go\n```\n", "<!-- code: b.go#x -->\n```go\nif true {\n\tg()\n}\n\ng()\n```\n", ""},
		{"no marker", "```go\nx := 1\n```\n", "", "line 1: Go code without"},
		{"marker too far", "<!-- code: a.go -->\n\n```go\n```\n", "", "line 1: no ```go on the next line"},
		{"no file", "<!-- code: z.go -->\n```go\n```\n", "", "file does not exist"},
		{"no region", "<!-- code: a.go#x -->\n```go\n```\n", "", `no line "// begin x"`},
		{"open region", "<!-- code: c.go#x -->\n```go\n```\n", "", `no line "// end x"`},
		{"program", "<!-- program: e.go -->\n```go\n```\n", "<!-- program: e.go -->\n```go\npackage main\n\nimport \"fmt\"\n\nfunc main() {\n\tf()\n}\n\nfunc f() {}\n```\n", ""},
		{"two programs", "<!-- program: d.go -->\n```go\n```\n", "", "the file has 2"},
		{"output", "<!-- output: d.go#Example_x -->\n```text\nold\n```\n", "<!-- output: d.go#Example_x -->\n```text\none\n\n two\n```\n", ""},
		{"no output", "<!-- output: d.go#ExampleY -->\n```text\n```\n", "", `ExampleY has no line "// Output:"`},
		{"no example", "<!-- output: d.go#ExampleZ -->\n```text\n```\n", "", "no func ExampleZ"},
		{"output without a block", "<!-- output: d.go#Example_x -->\n```go\n```\n", "", "no ```text on the next line"},
		{"open block", "<!-- code: a.go -->\n```go\nold\n", "", "not closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Fill(tt.page, open)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestEvents shows that the page follows the source: each of these changes to event.go changes the
// page or is refused.
func TestEvents(t *testing.T) {
	src, err := read("event.go")
	if err != nil {
		t.Fatal(err)
	}
	was, err := Events(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, err string }{
		{"another field", `on:"call_started"`, `on:"call_started notice"`, ""},
		{"another comment", "// A step is complete.", "// A step is through.", ""},
		{"a kind that is not there", `on:"call_started"`, `on:"call_begun"`, `is on "call_begun"`},
		{"a kind without a comment", "// A step is complete.", "", "has no comment"},
		{"a field without kinds", ` on:"call_started"`, "", "has no tag on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(src, tt.old) {
				t.Fatalf("event.go has no %q: change this test with it", tt.old)
			}
			got, err := Events(strings.Replace(src, tt.old, tt.new, 1))
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err == "" && got == was:
				t.Error("the page did not change with the source")
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got error %v, want one with %q", err, tt.err)
			}
		})
	}
}
