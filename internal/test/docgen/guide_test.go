package docgen

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// elsewhere are the pages that need no entry in the index: the index itself.
var elsewhere = []string{"docs/README.md"}

// TestGuide requires that each chapter ends with a link to the next chapter, and that every page is
// in the index.
func TestGuide(t *testing.T) {
	index, err := read("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	chapters := Chapters(index)
	if len(chapters) < 12 {
		t.Fatalf("the index has %d chapters: %v", len(chapters), chapters)
	}
	for i, name := range chapters {
		page, err := read("docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		next, text := "", ""
		if i+1 < len(chapters) {
			next = chapters[i+1]
			if text, err = read("docs/" + next); err != nil {
				t.Fatal(err)
			}
		}
		if next != "" {
			if next, err = filepath.Rel(filepath.Dir(name), next); err != nil {
				t.Fatal(err)
			}
		}
		want, err := Lead(page, filepath.ToSlash(next), text)
		if err != nil {
			t.Fatal(err)
		}
		current(t, "docs/"+name, want)
	}
	var listed []string
	for _, l := range Links(index) {
		listed = append(listed, "docs/"+l.Path)
	}
	for _, name := range pages(t) {
		if strings.HasPrefix(name, "docs/") && !slices.Contains(elsewhere, name) && !slices.Contains(listed, name) {
			t.Errorf("%s is not in docs/README.md, so nobody finds it: add it there, to the guide or beside the way", name)
		}
	}
}

func TestLead(t *testing.T) {
	if diff := cmp.Diff(Chapters("1. [A](a.md): x\n2. [B](guide/b-c.md)\n- [D](d.md)\n"), []string{"a.md", "guide/b-c.md"}); diff != "" {
		t.Errorf("chapters (-got +want):\n%s", diff)
	}
	for _, tt := range []struct{ page, name, next, want, err string }{
		{"# A\n\ntext\n", "b.md", "# B: it\n", "# A\n\ntext\n\nNext: [B: it](b.md)\n", ""},
		{"# A\n\ntext\n\nNext: [Old](o.md)\n", "b.md", "<!-- x -->\n# B\n", "# A\n\ntext\n\nNext: [B](b.md)\n", ""},
		{"# A\n\ntext\n\nNext: [Old](o.md)\n", "", "", "# A\n\ntext\n", ""},
		{"# A\n", "b.md", "text\n", "", "b.md has no title"},
	} {
		got, err := Lead(tt.page, tt.name, tt.next)
		if err != nil && err.Error() != tt.err || err == nil && (tt.err != "" || got != tt.want) {
			t.Errorf("%q: got %q, %v; want %q, %s", tt.page, got, err, tt.want, tt.err)
		}
	}
}
