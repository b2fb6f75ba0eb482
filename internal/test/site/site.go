// Package site makes a web site from the documents: one static page for each, with a search that
// needs no network, and llms.txt for models. Links are checked while it is made.
//
//	go run ./internal/test/site/make -out site
package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	_ "embed"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/pawl-go/pawl/internal/test/docgen"
)

// Source is the address of files that are not pages.
const Source = "https://github.com/pawl-go/pawl/blob/main/"

//go:embed page.html
var layout string

//go:embed search.js
var searchScript string

// folders are the places of the pages, in their order on the site.
var folders = []string{".", "docs", "docs/guide", "docs/from", "docs/internals"}

// page is a document and its place on the site.
type page struct {
	source string // docs/guide/tools.md
	target string // guide/tools.html
	title  string
	text   string
}

// Site returns the files of the site by their paths. module is the folder of the module.
func Site(module fs.FS) (map[string][]byte, error) {
	pages, err := read(module)
	if err != nil {
		return nil, err
	}
	index := NewIndex()
	files := map[string][]byte{"search.js": []byte(searchScript)}
	tmpl, err := template.New("page").Parse(layout)
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		body, err := render(p, pages, module, files)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		root := strings.Repeat("../", strings.Count(p.target, "/"))
		if err := tmpl.Execute(&out, map[string]any{"Title": p.title, "Root": root, "Body": template.HTML(body)}); err != nil {
			return nil, err
		}
		files[p.target] = out.Bytes()
		index.Add(p.target, p.title, p.text, reference(p.source))
	}
	data, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	files["index.js"] = append(append([]byte("const index = "), data...), ";\n"...)
	files["llms.txt"] = llms(pages)
	return files, nil
}

// reference reports whether a page is for looking up details, so that a page of the guide with the
// same words comes first.
func reference(source string) bool {
	return strings.HasPrefix(source, "docs/internals/") || !strings.HasPrefix(source, "docs/guide/") &&
		!strings.HasPrefix(source, "docs/from/") && !slices.Contains([]string{"docs/first-agent.md", "docs/testing.md"}, source)
}

var titleLine = regexp.MustCompile(`(?m)^# (.+)$`)

func read(module fs.FS) ([]page, error) {
	var all []page
	for _, dir := range folders {
		names, err := fs.Glob(module, path.Join(dir, "*.md"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			b, err := fs.ReadFile(module, name)
			if err != nil {
				return nil, err
			}
			p := page{source: name, text: string(b)}
			p.target = strings.TrimSuffix(strings.TrimPrefix(name, "docs/"), ".md") + ".html"
			if name == "README.md" {
				p.target = "index.html"
			} else if name == "docs/README.md" {
				p.target = "guide.html"
			}
			if m := titleLine.FindStringSubmatch(p.text); m != nil {
				p.title = strings.TrimSpace(m[1])
			} else {
				return nil, fmt.Errorf("%s has no title", name)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// render returns the HTML of a page. Links to pages lead to their HTML, links to other files of the
// module lead to Source. A link that leads nowhere is an error. Images are added to files.
func render(p page, pages []page, module fs.FS, files map[string][]byte) ([]byte, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(headings{p.text}, 100))))
	doc := md.Parser().Parse(text.NewReader([]byte(p.text)))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		var to *[]byte
		switch n := n.(type) {
		case *ast.Link:
			to = &n.Destination
		case *ast.Image:
			to = &n.Destination
		}
		if !entering || to == nil || strings.Contains(string(*to), "://") || strings.HasPrefix(string(*to), "#") {
			return ast.WalkContinue, nil
		}
		file, anchor, _ := strings.Cut(string(*to), "#")
		file = path.Join(path.Dir(p.source), file)
		if i := slices.IndexFunc(pages, func(q page) bool { return q.source == file }); i >= 0 {
			if anchor != "" && !slices.Contains(docgen.Anchors(pages[i].text), anchor) {
				return ast.WalkStop, fmt.Errorf("%s: %s has no heading #%s", p.source, file, anchor)
			}
			*to = []byte(strings.Repeat("../", strings.Count(p.target, "/")) + pages[i].target)
		} else if _, err := fs.Stat(module, file); err != nil {
			return ast.WalkStop, fmt.Errorf("%s: the link %s leads nowhere", p.source, *to)
		} else if n.Kind() == ast.KindImage {
			b, err := fs.ReadFile(module, file)
			if err != nil {
				return ast.WalkStop, err
			}
			target := strings.TrimPrefix(file, "docs/")
			files[target], *to = b, []byte(strings.Repeat("../", strings.Count(p.target, "/"))+target)
		} else {
			*to = []byte(Source + file)
		}
		if anchor != "" {
			*to = append(*to, "#"+anchor...)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = md.Renderer().Render(&out, []byte(p.text), doc)
	return out.Bytes(), err
}

// headings gives each heading the id that links of the documents use.
type headings struct{ page string }

// Transform sets the ids.
func (h headings) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var ids []string
	for _, a := range docgen.Anchors(h.page) {
		if !strings.Contains(h.page, `<a id="`+a+`"`) {
			ids = append(ids, a)
		}
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindHeading && len(ids) > 0 {
			n.SetAttributeString("id", []byte(ids[0]))
			ids = ids[1:]
		}
	}
}

// llms returns the index for models: each page with its first sentence.
func llms(pages []page) []byte {
	var b strings.Builder
	b.WriteString("# pawl\n\n> A Go runtime for language models that call tools: a library, a command and a server.\n")
	for _, dir := range folders[1:] {
		fmt.Fprintf(&b, "\n## %s\n\n", map[string]string{"docs": "In depth", "docs/guide": "Guide",
			"docs/from": "Coming from another system", "docs/internals": "Internals"}[dir])
		for _, p := range pages {
			if path.Dir(p.source) == dir {
				fmt.Fprintf(&b, "- [%s](%s): %s\n", p.title, p.target, first(p.text))
			}
		}
	}
	return []byte(b.String())
}

var (
	markup   = regexp.MustCompile("\\[([^\\]]*)\\]\\([^)]*\\)|[`*]|<!--.*?-->")
	sentence = regexp.MustCompile(`(?s)^.*?[.:](?:\s|$)`)
)

// first returns the first sentence below the title.
func first(text string) string {
	_, text, _ = strings.Cut(text, "\n# ")
	for _, paragraph := range strings.Split("# "+text, "\n\n")[1:] {
		paragraph = strings.Join(strings.Fields(markup.ReplaceAllString(paragraph, "$1")), " ")
		if paragraph != "" && !strings.HasPrefix(paragraph, "#") && !strings.HasPrefix(paragraph, "|") {
			return strings.TrimRight(sentence.FindString(paragraph+" "), " :")
		}
	}
	return ""
}
