package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// goldenForm compares a form from the code with a golden file, or updates the file with -update.
func goldenForm(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "forms", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: clients depend on this (-golden +now):\n%s", path, diff)
	}
}

// The endpoints, their parameters and the fields of their requests and responses keep their names.
// The wording of the document may change.
func TestFormsOfTheAPI(t *testing.T) {
	s, err := New([]*pawl.Agent{{Name: "clerk", Model: script.New()}}, new(store.MemoryJournal), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	doc, err := json.Marshal(s.openAPI())
	if err != nil {
		t.Fatal(err)
	}
	form := withoutWords(t, doc)
	goldenForm(t, "openapi.json", form)
	if renamed := withoutWords(t, []byte(strings.Replace(string(doc), `"operationId"`, `"operation"`, 1))); renamed == form {
		t.Error("a name was changed, and the form is the same")
	}
	if worded := withoutWords(t, []byte(strings.ReplaceAll(string(doc), `"summary":"`, `"summary":"In short: `))); worded != form {
		t.Error("words were changed, and the form is not the same")
	}
}

// The codes of errors and their statuses.
func TestErrorCodesStay(t *testing.T) {
	var b strings.Builder
	for _, c := range runs.ErrorCodes {
		fmt.Fprintf(&b, "%d %s\n", c.Status, c.Code)
	}
	goldenForm(t, "error_codes.txt", b.String())
	e, err := json.Marshal(map[string]*api.Error{"error": {Status: 400, Code: "bad_request", Message: "m", Hint: "h", RetryAfter: 1}})
	if want := `{"error":{"code":"bad_request","message":"m","hint":"h"}}`; err != nil || string(e) != want {
		t.Errorf("got %s, error %v, want %s", e, err, want)
	}
}

// withoutWords returns a document without its descriptions.
func withoutWords(t *testing.T, doc []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	dropWords(v)
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func dropWords(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"description", "summary", "title"} {
			if _, ok := v[name].(string); ok {
				delete(v, name)
			}
		}
		for _, below := range v {
			dropWords(below)
		}
	case []any:
		for _, below := range v {
			dropWords(below)
		}
	}
}
