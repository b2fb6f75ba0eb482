package provider_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// All adapters have the same files, and the same names for functions with the same job.
func TestLayout(t *testing.T) {
	want := map[string]string{"fromRequest": "request.go", "fromTool": "request.go", "fromChoice": "request.go", "fromMessage": "", "fromReply": "", "fromResult": "",
		"fromMedia": "", "toDelta": "", "toCall": "response.go", "toUsage": "response.go", "toFinish": "response.go", "toError": "errors.go", "toStreamError": "errors.go"}
	for _, adapter := range []string{"anthropic", "gemini", "openai"} {
		files, err := filepath.Glob(adapter + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"request.go", "response.go", "stream.go", "errors.go"} {
			if !slices.Contains(files, filepath.Join(adapter, name)) {
				t.Errorf("%s has no %s", adapter, name)
			}
		}
		found := map[string][]string{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					found[fn.Name.Name] = append(found[fn.Name.Name], filepath.Base(name))
				}
			}
		}
		for fn, file := range want {
			if len(found[fn]) == 0 || file != "" && !slices.Contains(found[fn], file) {
				t.Errorf("%s: %s is in %q, want it in %q", adapter, fn, found[fn], file)
			}
		}
	}
}
