package docgen

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/soak"
)

func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		name, page string
		want       []Block
		err        string
	}{
		{"none", "# Title\n\ntext `code`\n", nil, ""},
		{"class and name", "a\n```yaml agent.yaml\nx: 1\n```\n", []Block{{Line: 2, Class: "yaml", Name: "agent.yaml", Text: "x: 1\n"}}, ""},
		{"no class", "```\nx\n```\n", []Block{{Line: 1, Text: "x\n"}}, ""},
		{"fence in a fence", "````text\n```go\n```\n````\n", []Block{{Line: 1, Class: "text", Text: "```go\n```\n"}}, ""},
		{"in a list", "- item\n  ```sh\n  ls\n  ```\n", []Block{{Line: 2, Class: "sh", Text: "ls\n"}}, ""},
		{"marked", "<!-- code: a.go -->\n```go\nx\n```\n", []Block{{Line: 2, Class: "go", Marked: true, Text: "x\n"}}, ""},
		{"indented", "text\n\n    pawl demo\n    pawl run\n\ntext\n", []Block{{Line: 3, Text: "pawl demo\npawl run\n"}}, ""},
		{"a list goes on", "- item\n\n    more of it\n  and more\n", nil, ""},
		{"a paragraph goes on", "text\n    more of it\n", nil, ""},
		{"open", "text\n```sh\nls\n", nil, "line 2: the block of code is not closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Blocks(tt.page)
			if fmt.Sprint(err) != tt.err && (err != nil || tt.err != "") {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	page := "# A title: `x`, *y*\n\n[a](b.md#c) [d](#e) [f](https://x.test/) `[g](h)`\n```text\n[i](j)\n# K\n```\n## A [link](x.md)\n## A link\n<a id=\"here\"></a>\n"
	if diff := cmp.Diff(Links(page), []Link{{3, "b.md", "c"}, {3, "", "e"}, {8, "x.md", ""}}); diff != "" {
		t.Errorf("links (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(Anchors(page), []string{"a-title-x-y", "a-link", "a-link-1", "here"}); diff != "" {
		t.Errorf("anchors (-got +want):\n%s", diff)
	}
}

// pages are the pages whose links and blocks are checked, by their paths in the module.
func pages(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, dir := range []string{"docs", "docs/guide", "docs/from", "docs/internals"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("found no pages in %s: %v", dir, err)
		}
		for _, p := range found {
			names = append(names, dir+"/"+filepath.Base(p))
		}
	}
	return names
}

// dead returns the faults of the links of a page. read returns a file by its path in the module. is
// reports whether a file or folder exists.
func dead(name, page string, read func(string) (string, error), is func(string) bool) []string {
	var wrong []string
	for _, l := range Links(page) {
		to, text := name, page
		if l.Path != "" {
			to = path.Join(path.Dir(name), l.Path)
			if !is(to) {
				wrong = append(wrong, fmt.Sprintf("%s:%d: the link leads to %s, which is not there", name, l.Line, to))
				continue
			}
			text = ""
		}
		if l.Anchor == "" {
			continue
		}
		if text == "" {
			text, _ = read(to)
		}
		if anchors := Anchors(text); !slices.Contains(anchors, l.Anchor) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s has no heading for #%s; it has %s", name, l.Line, to, l.Anchor, strings.Join(anchors, ", ")))
		}
	}
	return wrong
}

// No link of a page leads nowhere.
func TestNoDeadLinks(t *testing.T) {
	soak.Sequential(t)
	is := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}
	for _, name := range pages(t) {
		page, err := read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range dead(name, page, read, is) {
			t.Error(w)
		}
	}
}

// The negative control: links that lead nowhere are seen.
func TestDeadLinks(t *testing.T) {
	files := map[string]string{"docs/a.md": "# A\n"}
	open := func(name string) (string, error) { return files[name], nil }
	is := func(name string) bool { return files[name] != "" }
	got := dead("docs/b.md", "# B\n[1](a.md) [2](a.md#a) [3](a.md#z) [4](c.md) [5](#b) [6](#y) [7](../README.md)\n", open, is)
	want := []string{
		"docs/b.md:2: docs/a.md has no heading for #z; it has a",
		"docs/b.md:2: the link leads to docs/c.md, which is not there",
		"docs/b.md:2: docs/b.md has no heading for #y; it has b",
		"docs/b.md:2: the link leads to README.md, which is not there",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
