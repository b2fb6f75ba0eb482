package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strings"

	"github.com/pawl-go/pawl/internal/test/docgen"
)

// checkComments returns the exported names of a package without a comment that starts with the
// name, and a package without a package comment. Methods of unexported types need none.
//
// In a group of constants or variables, a comment on the group, on the name or at the end of the
// line is enough.
func checkComments(fset *token.FileSet, files []*ast.File) []string {
	c := &complaints{fset: fset}
	if len(files) == 0 {
		return nil
	}
	name := files[0].Name.Name
	if !introduced(files, name) {
		c.add(files[0].Package, "package %s has no package comment: it describes the package on one screen, and begins %q",
			name, opening(name))
	}
	if name == "main" {
		return c.list
	}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					c.contract(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							doc := s.Doc
							if doc == nil && !d.Lparen.IsValid() {
								doc = d.Doc
							}
							c.contract(s.Name, doc)
						}
					case *ast.ValueSpec:
						c.value(d, s)
					}
				}
			}
		}
	}
	return c.list
}

func introduced(files []*ast.File, name string) bool {
	for _, f := range files {
		if f.Doc != nil && strings.HasPrefix(f.Doc.Text(), opening(name)) {
			return true
		}
	}
	return false
}

func opening(name string) string {
	if name == "main" {
		return "Command "
	}
	return "Package " + name
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func (c *complaints) contract(name *ast.Ident, doc *ast.CommentGroup) {
	if doc == nil {
		c.add(name.Pos(), "%s has no comment: an exported name states its contract: what it does, what nil and zero mean, "+
			"which errors it returns, and when it may be called", name.Name)
		return
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(doc.Text()), " ")
	if strings.TrimRight(first, ",:") != name.Name || rest == "" {
		c.add(name.Pos(), "the comment of %s begins %q: it starts with the name, so that it reads well in go doc", name.Name, first)
	}
}

func (c *complaints) value(d *ast.GenDecl, s *ast.ValueSpec) {
	for _, name := range s.Names {
		if !name.IsExported() {
			continue
		}
		if !d.Lparen.IsValid() {
			c.contract(name, d.Doc)
		} else if d.Doc == nil && s.Doc == nil && s.Comment == nil {
			c.add(name.Pos(), "%s has no comment, and neither has its group: an exported name states its contract", name.Name)
		}
	}
}

// checkHead requires a sentence about each file of the core. docs/design.md lists them.
func checkHead(f *goFile) []string {
	name := path.Base(f.path)
	if f.test() || f.dir() != "." && f.dir() != "llm" || docgen.FileSentence(name, f.ast) != "" {
		return nil
	}
	return []string{fmt.Sprintf("%s: no comment \"// %s: what the file holds.\" below the package clause: the table of files in "+
		"docs/design.md is made from them", f.path, name)}
}
