package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// maxLetters is the number of fields up to which a struct may have fields of one letter.
const maxLetters = 3

// vague are method names that a reader cannot understand without the body.
var vague = []string{"put", "take", "same", "at", "tell", "look", "given", "asked", "see", "end", "leave", "by", "of"}

// declarations finds exported fields without comments, fields of one letter, interfaces without a
// name, and vague methods.
func (c *clarity) declarations(f *goFile) {
	named := map[ast.Node]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			named[n.Type] = true
		case *ast.InterfaceType:
			if !named[n] && hasMethods(n) {
				c.find(f, ruleAnonymous, n.Pos(), 0)
			}
		}
		return true
	})

	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					c.structType(f, t)
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil && slices.Contains(vague, d.Name.Name) {
				c.find(f, ruleVague, d.Pos(), 0)
			}
		}
	}
}

// hasMethods reports whether an interface has methods of its own, and not only type sets.
func hasMethods(t *ast.InterfaceType) bool {
	return slices.ContainsFunc(t.Methods.List, func(m *ast.Field) bool { return len(m.Names) > 0 })
}

func (c *clarity) structType(f *goFile, t *ast.TypeSpec) {
	st, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	documented := f.public() && t.Name.IsExported()
	for _, field := range st.Fields.List {
		for _, name := range field.Names {
			if len(name.Name) == 1 && name.Name != "_" {
				c.letters++
				if st.Fields.NumFields() > maxLetters {
					c.find(f, ruleLetter, name.Pos(), 0)
				}
			}
			if documented && name.IsExported() {
				c.fields++
				if field.Doc == nil && field.Comment == nil {
					c.find(f, ruleField, name.Pos(), 0)
				}
			}
		}
	}
}

// public reports whether users can import the package of the file.
func (f *goFile) public() bool {
	return f.ast.Name.Name != "main" && !strings.Contains("/"+f.path, "/internal/")
}

// wideLines finds lines of code that are wider than codeColumns, string literals included.
func (c *clarity) wideLines(f *goFile) {
	for i, text := range f.lines {
		if columns := width(text); f.code[i+1] && columns > codeColumns {
			c.findings = append(c.findings, finding{ruleWide, f.path, i + 1, columns, text})
		}
	}
}
