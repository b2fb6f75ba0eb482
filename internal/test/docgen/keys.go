package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// KeyTypes names the types of a package whose fields are keys of a file or of a JSON form.
type KeyTypes struct {
	Dir    string   // the folder of the package
	Prefix string   // stands before the name of each type, such as "mcp."; empty means nothing
	Tag    string   // the struct tag that holds the key: yaml or json
	Types  []string // in the order of the text
}

// Keys returns the meanings of keys, as they stand in the comments of the fields:
//
//	[Agent]
//	agent	The agent's name.
//	title	The agent's name for people.
//
// A field without a key or without a comment has no line. It is an error if a type does not exist,
// or if none of its fields has a line.
func Keys(groups ...KeyTypes) (string, error) {
	var out strings.Builder
	for _, g := range groups {
		structs, err := structsOf(g.Dir)
		if err != nil {
			return "", err
		}
		for _, name := range g.Types {
			s := structs[name]
			if s == nil {
				return "", fmt.Errorf("%s has no struct %s", g.Dir, name)
			}
			lines := keyLines(s, g.Tag)
			if lines == "" {
				return "", fmt.Errorf("no field of %s%s has a key and a comment", g.Prefix, name)
			}
			fmt.Fprintf(&out, "\n[%s%s]\n%s", g.Prefix, name, lines)
		}
	}
	return out.String(), nil
}

// keyLines returns a line for each field of s that has a key and a comment.
func keyLines(s *ast.StructType, tag string) string {
	var lines strings.Builder
	for _, field := range s.Fields.List {
		if field.Tag == nil || field.Doc == nil {
			continue
		}
		tags, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		key, _, _ := strings.Cut(reflect.StructTag(tags).Get(tag), ",")
		if key == "" || key == "-" {
			continue
		}
		meaning := strings.Join(strings.Fields(field.Doc.Text()), " ")
		fmt.Fprintf(&lines, "%s\t%s\n", key, meaning)
	}
	return lines.String()
}

// structsOf returns the structs that the package in dir declares, by name.
func structsOf(dir string) (map[string]*ast.StructType, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	structs := map[string]*ast.StructType{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		const mode = parser.ParseComments | parser.SkipObjectResolution
		f, err := parser.ParseFile(token.NewFileSet(), name, source, mode)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return structs, nil
}
