package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFilesTable keeps the table of files in docs/design.md equal to the first comments of the
// files of the root and of llm.
func TestFilesTable(t *testing.T) {
	page, err := read("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := FileTable(page, goSources(t, ".", "llm"))
	if err != nil {
		t.Fatal(err)
	}
	current(t, "docs/design.md", want)
}

// goSources reads the Go files of the folders dirs, except tests. A folder that is absent has none.
func goSources(t *testing.T, dirs ...string) []GoSource {
	t.Helper()
	var all []GoSource
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			short, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, GoSource{filepath.ToSlash(short), string(content)})
		}
	}
	return all
}

func TestFileTable(t *testing.T) {
	const (
		open  = "# Title\n\n" + filesBegin + "\n"
		head  = "| file | what it holds |\n|---|---|\n"
		close = filesEnd + "\n\nThe end.\n"
	)
	for _, tt := range []struct{ name, path, src, want string }{
		{"sentence", "llm/a.go", "package a\n\n// a.go: the letter a.\n\nimport \"fmt\"\n", "| `llm/a.go` | the letter a |\n"},
		{"two lines", "a.go", "package a\n\n// a.go: the letter\n// a.\n", "| `a.go` | the letter a |\n"},
		{"below a package comment", "a.go", "// Package a is a.\npackage a\n\n// a.go: x.\n\nvar A int\n", "| `a.go` | x |\n"},
		{"a bar", "a.go", "package a\n\n// a.go: a|b.\n", "| `a.go` | a\\|b |\n"},
		{"package comment", "doc.go", "// Package a is a.\npackage a\n", "| `doc.go` | the package comment |\n"},
		{"no sentence", "a.go", "package a\n\nvar A int\n", ""},
		{"another file's", "a.go", "package a\n\n// b.go: the letter b.\n\nvar A int\n", ""},
		{"on a declaration", "a.go", "package a\n\n// a.go: the letter a.\nvar A int\n", ""},
		{"below a declaration", "a.go", "package a\n\nvar A int\n\n// a.go: the letter a.\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FileTable(open+"old\n"+close, []GoSource{{tt.path, tt.src}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, open+head+tt.want+close); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
	if _, err := FileTable("# Title\n", nil); err == nil {
		t.Error("a page without the lines around the table is accepted")
	}
}
