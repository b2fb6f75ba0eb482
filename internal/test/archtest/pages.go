package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// page is a document for readers (README.md, or a page of docs but for docs/internals) or a text of
// the product that stands in a file of its own: help, descriptions of tools, prompts.
type page struct {
	path string // relative to the module, with slashes
	text string
}

// pages reads the documents of the project and the texts of its product.
func pages(root string, product map[string]bool) ([]page, error) {
	names := []string{filepath.Join(root, "README.md")}
	for _, dir := range []string{"docs", "docs/guide", "docs/from"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}

	files, err := tracked(root)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		dir := path.Dir(name)
		text := path.Ext(name) == ".txt" || path.Ext(name) == ".md"
		// Prompts stand in a folder below the package that embeds them.
		if text && dir != "." && (product[dir] || product[path.Dir(dir)]) && path.Base(dir) != "testdata" {
			names = append(names, filepath.Join(root, name))
		}
	}

	var all []page
	for _, name := range names {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		all = append(all, page{filepath.ToSlash(short), string(text)})
	}
	return all, nil
}

var (
	madePage   = regexp.MustCompile(`^<!-- Made (from|by) `)
	madeTable  = regexp.MustCompile(`-(wire|quirks)\.md$`)
	madeBegins = regexp.MustCompile(`^<!-- (begin \w|\w+: made |ratios: )`)
	madeEnds   = regexp.MustCompile(`^<!-- (end |\w+ end )`)

	fenced   = regexp.MustCompile("^ {0,3}(```|~~~)")
	codeSpan = regexp.MustCompile("`[^`]*`|<!--.*?-->|\\]\\([^)]*\\)")
)

// generated reports whether `make docs` writes the whole page.
func (p page) generated() bool {
	return madePage.MatchString(p.text) || madeTable.MatchString(p.path)
}

// written returns the lines that people wrote: generated parts are empty.
func (p page) written() []string {
	lines := strings.Split(p.text, "\n")
	made := p.generated()
	for i, line := range lines {
		switch {
		case madeBegins.MatchString(line):
			made = true
		case madeEnds.MatchString(line):
			made = p.generated()
		}
		if made {
			lines[i] = ""
		}
	}
	return lines
}

// passage returns the prose of the page. Code, comments and the targets of links are empty.
func (p page) passage() passage {
	lines := strings.Split(p.text, "\n")
	code := false
	for i, line := range lines {
		fence := fenced.MatchString(line)
		if fence {
			code = !code
		}
		if fence || code {
			lines[i] = ""
			continue
		}
		lines[i] = codeSpan.ReplaceAllString(line, "_")
	}
	return passage{p.path, 1, strings.Join(lines, "\n")}
}
