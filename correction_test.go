package pawl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pawl-go/pawl"
)

// Each file of the archive has a schema, arguments that do not fit it, and the text for the model.
// -update rewrites the text.
func TestCorrectionTexts(t *testing.T) {
	const path = "testdata/corrections.txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range archive.Files {
		parts := strings.SplitN(string(f.Data), "\n", 3)
		if len(parts) < 3 {
			t.Fatalf("%s: want a schema, arguments and a text, a line each", f.Name)
		}
		var ran []string
		tool := probe(parts[0], &ran)
		if err := tool.Check(); err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		x := execute(t, tool, parts[1])
		got := x.Result.Text() + "\n"
		if x.Outcome != pawl.OutcomeInvalid || len(ran) > 0 {
			t.Errorf("%s: %s, ran with %q", f.Name, x.Outcome, ran)
		}
		if *update {
			archive.Files[i].Data = []byte(parts[0] + "\n" + parts[1] + "\n" + got)
			continue
		}
		if diff := cmp.Diff(got, parts[2]); diff != "" {
			t.Errorf("%s: got -, want +\n%s", f.Name, diff)
		}
		// the example in the text must fit the schema
		if _, example, ok := strings.Cut(got, "with your own values: "); ok {
			if x := execute(t, probe(parts[0], &ran), strings.TrimSpace(example)); x.Outcome != pawl.OutcomeOK ||
				len(x.Repairs) > 0 {
				t.Errorf("%s: the example does not fit: %s", f.Name, x.Result.Text())
			}
		}
	}
	if len(archive.Files) < 40 {
		t.Errorf("%d texts", len(archive.Files))
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(path), txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
