// Package constants lists the constants of a type, for tests that compare a table with them.
package constants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// Of returns the values of the string constants that the Go files of a folder declare with the type
// name, in the order of their files. No constant is an error.
func Of(dir, name string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					s := s.(*ast.ValueSpec)
					if t, ok := s.Type.(*ast.Ident); !ok || t.Name != name {
						continue
					}
					for _, v := range s.Values {
						text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
						if err != nil {
							return nil, fmt.Errorf("%s: %w", path, err)
						}
						all = append(all, text)
					}
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s declares no constant of type %s", dir, name)
	}
	return all, nil
}
