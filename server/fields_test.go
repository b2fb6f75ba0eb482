package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The meaning of a field in the OpenAPI document is its comment in package api or, for a type with
// the prefix pawl, in the core. Some fields have no meaning in the document, since their names say
// all.
func TestFieldsMeanWhatTheirCommentsSay(t *testing.T) {
	files, err := filepath.Glob("api/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("package api has %d files: %v", len(files), err)
	}
	compared := 0
	for _, file := range append(files, "../result.go") {
		prefix := ""
		if strings.HasPrefix(file, "..") {
			prefix = "pawl."
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			form, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range form.Fields.List {
				if field.Tag == nil {
					continue
				}
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
				key, _, _ := strings.Cut(tag, ",")
				said := strings.Join(strings.Fields(field.Doc.Text()), " ")
				meaning := meaningOf(prefix+spec.Name.Name, key)
				if meaning == "" || spec.Name.Name == "Error" { // whose comments name their fields
					continue
				}
				compared++
				if said != meaning {
					t.Errorf("%s.%s: fields.txt has %q, and the comment %q", spec.Name.Name, key, meaning, said)
				}
			}
			return false
		})
	}
	if compared < 30 {
		t.Errorf("%d fields were compared", compared)
	}
}
