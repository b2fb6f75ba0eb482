package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// The table of files in a page stands between these lines.
const (
	filesBegin = "<!-- files: made from the first comment of each file; make docs -->"
	filesEnd   = "<!-- end of files -->"
)

// FileSentence returns the sentence that says what the file called name holds. It stands below the
// package clause, apart from the declarations, and begins with the name of the file:
//
//	package pawl
//
//	// loop.go: the loop and its steps.
//
//	import "context"
//
// The file must be parsed with comments. An empty result means that the file has no such comment.
// The sentence of doc.go is fixed, because the package comment follows it.
func FileSentence(name string, f *ast.File) string {
	if name == "doc.go" {
		return "the package comment"
	}
	for _, g := range f.Comments {
		if g.Pos() < f.Name.End() {
			continue // the package comment, or a build constraint
		}
		if len(f.Decls) > 0 && (g.Pos() > f.Decls[0].Pos() || g == docOf(f.Decls[0])) {
			return ""
		}
		if text, ok := strings.CutPrefix(g.Text(), name+": "); ok {
			return strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
		}
	}
	return ""
}

func docOf(d ast.Decl) *ast.CommentGroup {
	switch d := d.(type) {
	case *ast.GenDecl:
		return d.Doc
	case *ast.FuncDecl:
		return d.Doc
	}
	return nil
}

// GoSource is a Go file for FileTable.
type GoSource struct {
	Path    string // relative to the module, with slashes
	Content string
}

// FileTable returns page with the table of files filled in: a row for each of files that has a
// sentence, in the order of files.
func FileTable(page string, files []GoSource) (string, error) {
	before, rest, found := strings.Cut(page, filesBegin+"\n")
	_, after, closed := strings.Cut(rest, filesEnd+"\n")
	if !found || !closed {
		return "", fmt.Errorf("the page has no lines %s and %s", filesBegin, filesEnd)
	}
	var rows strings.Builder
	for _, src := range files {
		const mode = parser.ParseComments | parser.SkipObjectResolution
		f, err := parser.ParseFile(token.NewFileSet(), src.Path, src.Content, mode)
		if err != nil {
			return "", err
		}
		name := src.Path[strings.LastIndexByte(src.Path, '/')+1:]
		if sentence := FileSentence(name, f); sentence != "" {
			fmt.Fprintf(&rows, "| `%s` | %s |\n", src.Path, strings.ReplaceAll(sentence, "|", `\|`))
		}
	}
	table := "| file | what it holds |\n|---|---|\n" + rows.String()
	return before + filesBegin + "\n" + table + filesEnd + "\n" + after, nil
}
