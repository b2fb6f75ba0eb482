// Package apilist lists the exported names of a package, one line a name. The folder api has these
// lists of all public packages, and the test of this package compares them with the source.
package apilist

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// deprecated ends the line of a name whose comment has a paragraph that starts with "Deprecated:".
const deprecated = " //deprecated"

// Of returns the lines of the package in dir, sorted: constants with their values, variables,
// functions, types, the exported fields and methods of exported types with whole tags, also if an
// embedded type which is not exported promotes them. The line of an interface has all its
// methods, because a further method breaks the programs that implement it. The files are the files
// for Linux on amd64, so that the list is the same everywhere.
func Of(dir string) ([]string, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	pkg, err := context.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return lines(fset, files), nil
}

// source returns the lines of one file.
func source(text string) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return lines(fset, []*ast.File{f}), nil
}

// lines returns the lines of a package, sorted.
func lines(fset *token.FileSet, files []*ast.File) []string {
	// Nothing is imported: the values of constants and the methods of embedded types come from
	// the package itself. What needs an import has an error, which counts for nothing.
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}, IgnoreFuncBodies: true, FakeImportC: true}
	_, _ = config.Check("x", fset, files, info)

	l := &list{fset: fset, files: files, defs: info.Defs, promoting: map[string]bool{}}
	for _, f := range files {
		l.file(f)
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

type list struct {
	fset      *token.FileSet
	files     []*ast.File
	defs      map[*ast.Ident]types.Object
	promoting map[string]bool // the embedded types around the current one
	lines     []string
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
		if tok == token.CONST {
			line += l.value(s, i)
		}
		l.add(docs, "%s", line)
	}
}

// value returns the value of a constant, as " = 5". A value that needs an import is its expression.
// An implicit repetition of such an expression has no value here.
func (l *list) value(s *ast.ValueSpec, i int) string {
	c, ok := l.defs[s.Names[i]].(*types.Const)
	switch {
	case ok && c.Val() != nil && c.Val().Kind() != constant.Unknown:
		return " = " + c.Val().ExactString()
	case i < len(s.Values):
		return " = " + l.text(s.Values[i])
	}
	return ""
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
	if ast.IsExported(receiver(d)) {
		l.add(docs, "method (%s) %s%s", l.text(d.Recv.List[0].Type), d.Name.Name, l.signature(d.Type))
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
		members := l.members(name, t)
		slices.Sort(members)
		l.add(docs, "%sinterface{%s}", head, strings.Join(members, "; "))
	default:
		l.add(docs, "%s%s", head, l.text(t))
	}
}

// members adds the lines of the methods and embedded types of an interface, and returns their
// names.
func (l *list) members(of string, t *ast.InterfaceType) (names []string) {
	for _, m := range t.Methods.List {
		docs := []*ast.CommentGroup{m.Doc}
		f, method := m.Type.(*ast.FuncType)
		switch {
		case len(m.Names) == 0:
			names = append(names, l.text(m.Type))
			l.add(docs, "embed %s %s", of, l.text(m.Type))
		case method && m.Names[0].IsExported():
			names = append(names, m.Names[0].Name)
			l.add(docs, "method %s.%s%s", of, m.Names[0].Name, l.signature(f))
		default:
			// Programs outside the package cannot implement it.
			names = append(names, "unexported")
			l.add(nil, "method %s.unexported", of)
		}
	}
	return slices.Compact(names)
}

// promoted adds the fields and methods that the type of gets from an embedded type of the package
// which is not exported, as lines of its own ones.
func (l *list) promoted(of string, embedded ast.Expr) {
	pointer := ""
	if p, ok := embedded.(*ast.StarExpr); ok {
		embedded = p.X
		pointer = "*"
	}
	id, ok := embedded.(*ast.Ident)
	if !ok || l.promoting[id.Name] {
		return
	}
	l.promoting[id.Name] = true
	defer delete(l.promoting, id.Name)

	for _, f := range l.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if receiver(d) == id.Name && d.Name.IsExported() {
					l.add([]*ast.CommentGroup{d.Doc}, "method (%s%s) %s%s", pointer, of, d.Name.Name, l.signature(d.Type))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					spec, ok := s.(*ast.TypeSpec)
					if !ok || spec.Name.Name != id.Name {
						continue
					}
					switch t := spec.Type.(type) {
					case *ast.StructType:
						l.fields(of, t)
					case *ast.InterfaceType:
						l.members(of, t)
					}
				}
			}
		}
	}
}

// receiver returns the name of the type that d is a method of. "" means that d is a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	base := d.Recv.List[0].Type
	if p, ok := base.(*ast.StarExpr); ok {
		base = p.X
	}
	switch x := base.(type) {
	case *ast.IndexExpr:
		base = x.X
	case *ast.IndexListExpr:
		base = x.X
	}
	if id, ok := base.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func (l *list) fields(of string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		docs := []*ast.CommentGroup{f.Doc}
		tag := tagText(f.Tag)
		if len(f.Names) == 0 {
			if name := strings.TrimPrefix(l.text(f.Type), "*"); ast.IsExported(name[strings.LastIndex(name, ".")+1:]) {
				l.add(docs, "embed %s %s%s", of, l.text(f.Type), tag)
			} else {
				l.promoted(of, f.Type)
			}
		}
		for _, name := range f.Names {
			if name.IsExported() {
				l.add(docs, "field %s.%s %s%s", of, name.Name, l.text(f.Type), tag)
			}
		}
	}
}

// tagText returns the whole tag of a field, with a space before it. The quotes of values are left
// out where nothing needs them.
func tagText(tag *ast.BasicLit) string {
	if tag == nil {
		return ""
	}
	text, err := strconv.Unquote(tag.Value)
	if err != nil {
		return " " + tag.Value
	}
	return " " + plainTag.ReplaceAllString(text, "$1:$2")
}

var plainTag = regexp.MustCompile(`([^\s:"]+):"([^\s"\\]*)"`)

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
