package hostile_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/pawltest/hostile"
)

var update = flag.Bool("update", false, "write docs/hostile.md again")

// docs/hostile.md lists the plays of these tests. make docs writes it.
func TestPage(t *testing.T) {
	soak.Sequential(t)
	rows, err := pawlRows()
	if err != nil {
		t.Fatal(err)
	}
	control, err := controlRows()
	if err != nil {
		t.Fatal(err)
	}
	page := hostile.Page(hostile.Behaviours(), rows, control)
	path := filepath.Join("..", "..", "docs", "hostile.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), page); diff != "" {
		t.Errorf("docs/hostile.md is not what was played; make docs writes it. Got -, want +\n%s", diff)
	}
}
