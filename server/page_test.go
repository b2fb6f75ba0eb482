package server_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/docgen"
)

var updatePage = flag.Bool("update", false, "write docs/http.md again")

// docs/http.md shows the OpenAPI document of the server. make docs writes it.
func TestHTTPPage(t *testing.T) {
	const name = "../docs/http.md"
	v := serve(t, nil)
	var doc json.RawMessage
	v.do("GET", "/openapi.json", "", 200, &doc)
	want, err := docgen.HTTP(doc)
	if err != nil {
		t.Fatal(err)
	}
	if *updatePage {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("docs/http.md is not what the server's document says; make docs writes it. (-in the file +from the document)\n%s", diff)
	}
}
