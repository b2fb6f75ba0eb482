package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"
)

// wrappersFile lists all wrappers of a Model. TestWrappersAreComposed of internal/test/core reads
// it.
const wrappersFile = "testdata/wrappers.txt"

// modelType returns the interface llm.Model.
func modelType(t *testing.T) types.Type {
	t.Helper()
	pkg, err := theTree(t).importer.Import(module + "/llm")
	if err != nil {
		t.Fatal(err)
	}
	return pkg.Scope().Lookup("Model").Type()
}

// TestWrappers checks all wrappers of the module, and compares them with the list.
func TestWrappers(t *testing.T) {
	tr, model := theTree(t), modelType(t)
	var all []string
	for _, u := range tr.ours {
		if len(u.GoFiles) == 0 || u.ImportPath == module+"/llm" || !slices.Contains(u.Deps, module+"/llm") {
			continue
		}
		s, err := tr.source(u)
		if err != nil {
			t.Fatal(err)
		}
		found, bad := wrappers(s.pkg, model)
		all = append(all, found...)
		report(t, bad)
	}
	slices.Sort(all)
	got := strings.Join(all, "\n") + "\n"
	if *update {
		if err := os.WriteFile(wrappersFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(wrappersFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the wrappers of a Model are\n%s\nand %s lists\n%s\nUse -update, and compose a new wrapper in "+
			"internal/test/core/abilities_test.go", got, wrappersFile, want)
	}
}

func TestCheckWrappers(t *testing.T) {
	model := modelType(t)
	const stream = "func (w *w) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] { return nil }\n"
	const head = "package x\nimport (\n\"context\"\n\"iter\"\n\"sync/atomic\"\n\"" + module + "/llm\"\n)\n" +
		"var _ context.Context\nvar _ iter.Seq[int]\nvar _ llm.Usage\nvar _ atomic.Int64\n" +
		"type own struct{}\nfunc (*own) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] { return nil }\n"
	for _, s := range []sample{
		{"no Unwrap", "type w struct{ inner llm.Model }\n" + stream, "type x.w wraps a llm.Model"},
		{"embedded", "type w struct{ llm.Model }\n", "type x.w wraps a llm.Model"},
		{"several", "type w struct{ all []llm.Model }\n" + stream, "type x.w wraps a llm.Model"},
		{"by name", "type w struct{ all map[string][]llm.Model }\n" + stream, "type x.w wraps a llm.Model"},
		{"in a struct", "type w struct{ o struct{ m llm.Model } }\n" + stream, "type x.w wraps a llm.Model"},
		{"a type of its own", "type w struct{ inner *own }\n" + stream, "type x.w wraps a llm.Model"},
		{"an interface of its own", "type both interface{ llm.Model; Close() error }\ntype w struct{ inner both }\n" + stream,
			"type x.w wraps"},
		{"atomic", "type w struct{ inner atomic.Pointer[own] }\n" + stream, "type x.w wraps a llm.Model"},
		{"another Unwrap", "type w struct{ inner llm.Model }\n" + stream + "func (w *w) Unwrap() error { return nil }",
			"type x.w wraps"},
		{"Unwrap", "type w struct{ inner llm.Model }\n" + stream + "func (w *w) Unwrap() llm.Model { return w.inner }", ""},
		{"no Model", "type w struct{ inner int }\n" + stream, ""},
		{"no Stream", "type w struct{ inner llm.Model }\n", ""},
	} {
		t.Run(s.name, func(t *testing.T) {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "x.go", head+s.src, 0)
			if err != nil {
				t.Fatal(err)
			}
			pkg, err := (&types.Config{Importer: theTree(t).importer}).Check(module+"/x", fset, []*ast.File{f}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, got := wrappers(pkg, model)
			wantComplaint(t, got, s.want)
		})
	}
}
