// Package apilist lists the exported names of a package, one line a name. The folder api has these
// lists of all public packages, and the test of this package compares them with the source.
package apilist

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// deprecated ends the line of a name whose comment has a paragraph that starts with "Deprecated:".
const deprecated = " //deprecated"

// Of returns the lines of the package in dir, sorted: constants, variables, functions, types, and
// the exported fields and methods of exported types. The files are the files for Linux on amd64, so
// that the list is the same everywhere.
func Of(dir string) ([]string, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	pkg, err := context.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	l := &list{fset: fset}
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		l.file(f)
	}
	slices.Sort(l.lines)
	return l.lines, nil
}

// source returns the lines of one file.
func source(text string) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	l := &list{fset: fset}
	l.file(f)
	slices.Sort(l.lines)
	return l.lines, nil
}

type list struct {
	fset  *token.FileSet
	lines []string
}

func (l *list) add(docs []*ast.CommentGroup, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for _, d := range docs {
		if strings.Contains("\n"+d.Text(), "\nDeprecated: ") {
			line += deprecated
			break
		}
	}
	l.lines = append(l.lines, line)
}

func (l *list) file(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			l.function(d)
		case *ast.GenDecl:
			var of ast.Expr // the type of constants whose specs repeat the one above
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					l.typ(s, []*ast.CommentGroup{d.Doc, s.Doc})
				case *ast.ValueSpec:
					if s.Type != nil || len(s.Values) > 0 {
						of = s.Type
					}
					l.values(d.Tok, s, of, []*ast.CommentGroup{d.Doc, s.Doc})
				}
			}
		}
	}
}

func (l *list) values(tok token.Token, s *ast.ValueSpec, of ast.Expr, docs []*ast.CommentGroup) {
	for i, name := range s.Names {
		if !name.IsExported() {
			continue
		}
		line := tok.String() + " " + name.Name
		if of != nil {
			line += " " + l.text(of)
		}
		if i < len(s.Values) {
			if lit, ok := s.Values[i].(*ast.BasicLit); ok && tok == token.CONST {
				line += " = " + lit.Value
			}
		}
		l.add(docs, "%s", line)
	}
}

func (l *list) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	docs := []*ast.CommentGroup{d.Doc}
	if d.Recv == nil {
		l.add(docs, "func %s%s%s", d.Name.Name, l.params(d.Type.TypeParams), l.signature(d.Type))
		return
	}
	recv := d.Recv.List[0].Type
	base := recv
	if p, ok := base.(*ast.StarExpr); ok {
		base = p.X
	}
	switch x := base.(type) {
	case *ast.IndexExpr:
		base = x.X
	case *ast.IndexListExpr:
		base = x.X
	}
	if id, ok := base.(*ast.Ident); ok && id.IsExported() {
		l.add(docs, "method (%s) %s%s", l.text(recv), d.Name.Name, l.signature(d.Type))
	}
}

func (l *list) typ(s *ast.TypeSpec, docs []*ast.CommentGroup) {
	if !s.Name.IsExported() {
		return
	}
	name := s.Name.Name
	assign := " "
	if s.Assign.IsValid() {
		assign = " = "
	}
	head := "type " + name + l.params(s.TypeParams) + assign
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add(docs, "%sstruct", head)
		l.fields(name, t)
	case *ast.InterfaceType:
		l.add(docs, "%sinterface", head)
		for _, m := range t.Methods.List {
			f, method := m.Type.(*ast.FuncType)
			switch {
			case len(m.Names) == 0:
				l.add([]*ast.CommentGroup{m.Doc}, "embed %s %s", name, l.text(m.Type))
			case method && m.Names[0].IsExported():
				l.add([]*ast.CommentGroup{m.Doc}, "method %s.%s%s", name, m.Names[0].Name, l.signature(f))
			default:
				l.add(nil, "method %s.unexported", name)
			}
		}
	default:
		l.add(docs, "%s%s", head, l.text(t))
	}
}

func (l *list) fields(of string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		docs := []*ast.CommentGroup{f.Doc}
		tag := ""
		if f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`) {
			_, rest, _ := strings.Cut(f.Tag.Value, `json:"`)
			form, _, _ := strings.Cut(rest, `"`)
			tag = " json:" + form
		}
		if len(f.Names) == 0 {
			if name := strings.TrimPrefix(l.text(f.Type), "*"); ast.IsExported(name[strings.LastIndex(name, ".")+1:]) {
				l.add(docs, "embed %s %s%s", of, l.text(f.Type), tag)
			}
		}
		for _, name := range f.Names {
			if name.IsExported() {
				l.add(docs, "field %s.%s %s%s", of, name.Name, l.text(f.Type), tag)
			}
		}
	}
}

// params returns type parameters with their names, which their types use.
func (l *list) params(p *ast.FieldList) string {
	if p == nil {
		return ""
	}
	var all []string
	for _, f := range p.List {
		for _, name := range f.Names {
			all = append(all, name.Name+" "+l.text(f.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// signature returns the types of parameters and results, without their names.
func (l *list) signature(f *ast.FuncType) string {
	out := "(" + strings.Join(l.types(f.Params), ", ") + ")"
	switch results := l.types(f.Results); len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	default:
		return out + " (" + strings.Join(results, ", ") + ")"
	}
}

func (l *list) types(fields *ast.FieldList) (all []string) {
	if fields == nil {
		return nil
	}
	for _, f := range fields.List {
		for range max(1, len(f.Names)) {
			all = append(all, l.text(f.Type))
		}
	}
	return all
}

// text returns an expression on one line.
func (l *list) text(x ast.Expr) string {
	if f, ok := x.(*ast.FuncType); ok {
		return "func" + l.signature(f)
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.fset, x); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// changes compares a stored list with the present one. lost are lines that are gone or changed, and
// more are new lines. A line that is now deprecated counts as new.
func changes(stored, now []string) (lost, more []string) {
	for _, line := range stored {
		if !slices.Contains(now, line) && !slices.Contains(now, line+deprecated) {
			lost = append(lost, line)
		}
	}
	for _, line := range now {
		if !slices.Contains(stored, line) {
			more = append(more, line)
		}
	}
	return lost, more
}
