package wiretest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/parts"
)

// Enumeration is a list of words in the source of a provider's official Go SDK.
type Enumeration struct {
	Module string // with the source, as testdata/sdks/go.mod requires it
	Folder string // in the module; "" means its root
	Type   string // a type whose constants are the words, or a struct
	// Field is a field of the struct whose comment lists the words: `Any of "stop", "length".` ""
	// means that Type has constants.
	Field string
}

// Words returns the words of an enumeration. It skips the test if the SDK was not downloaded.
func (e Enumeration) Words(t testing.TB) []string {
	t.Helper()
	dir := filepath.Join("..", "..", "internal", "test", "wiretest", "testdata", "sdks")
	files, err := filepath.Glob(filepath.Join(parts.Source(t, dir, e.Module), filepath.FromSlash(e.Folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	words := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if decl, ok := d.(*ast.GenDecl); ok {
				e.read(decl, words)
			}
		}
	}
	if len(words) == 0 {
		t.Fatalf("%s %s of %s has no words: the SDK has changed", e.Type, e.Field, e.Module)
	}
	return slices.Sorted(maps.Keys(words))
}

// read adds the words in a declaration to words.
func (e Enumeration) read(decl *ast.GenDecl, words map[string]bool) {
	for _, spec := range decl.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			if id, ok := s.Type.(*ast.Ident); !ok || id.Name != e.Type || e.Field != "" {
				continue
			}
			for _, v := range s.Values {
				addWord(v, words)
			}
		case *ast.TypeSpec:
			if fields, ok := s.Type.(*ast.StructType); ok && s.Name.Name == e.Type {
				e.readFields(fields, words)
			}
		}
	}
}

func addWord(v ast.Expr, words map[string]bool) {
	if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		word, err := strconv.Unquote(lit.Value)
		words[word] = err == nil
	}
}

// readFields adds the words that the comment of the field lists.
func (e Enumeration) readFields(s *ast.StructType, words map[string]bool) {
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 || field.Names[0].Name != e.Field {
			continue
		}
		_, list, ok := strings.Cut(strings.Join(strings.Fields(field.Doc.Text()), " "), "Any of ")
		if !ok {
			continue
		}
		for i, word := range strings.Split(list, `"`) {
			if i%2 == 1 {
				words[word] = true
			}
		}
	}
}

// CheckRows checks that table has a row for each word of the enumerations. Its negative control
// removes each of these rows in turn and finds exactly that word.
func CheckRows[V any](t *testing.T, table map[string]V, of ...Enumeration) {
	t.Helper()
	for _, e := range of {
		words := e.Words(t)
		if missing := wordsWithout(table, words); len(missing) > 0 {
			t.Errorf("%s %s has %q, and the table has no row for them", e.Module, e.Type, missing)
			continue
		}
		for _, word := range words {
			less := maps.Clone(table)
			delete(less, word)
			if missing := wordsWithout(less, words); !slices.Equal(missing, []string{word}) {
				t.Errorf("without the row %q: found %q", word, missing)
			}
		}
		t.Logf("%s %s: %d words: %s", e.Module, e.Type, len(words), strings.Join(words, ", "))
	}
}

// wordsWithout returns the words that are no key of table.
func wordsWithout[V any](table map[string]V, words []string) (missing []string) {
	for _, word := range words {
		if _, ok := table[word]; !ok {
			missing = append(missing, word)
		}
	}
	return missing
}
