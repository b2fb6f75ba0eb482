package postgres

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/statements.sql again")

var comment = regexp.MustCompile(`(?m)[ \t]*--.*$`)

// statements returns the statements of the migrations without comments, one a line.
func statements(migrations []string) string {
	var b strings.Builder
	for _, m := range migrations {
		text := strings.Join(strings.Fields(comment.ReplaceAllString(m, "")), " ")
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(text, "; ", ";\n"), ", ", ",\n\t") + "\n")
	}
	return b.String()
}

// The statements that create the tables never change, because existing databases were created by
// them. The test needs no server.
func TestStatementsStay(t *testing.T) {
	got, name := statements(migrations), filepath.Join("testdata", "statements.sql")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +now):\n%s", name, diff)
	}
	one := statements([]string{"-- A table.\ncreate table a (\n\tb text -- a column\n);"})
	if other, renamed := statements([]string{"create table a ( b text );"}), statements([]string{"create table a (c text);"}); one != other || one == renamed {
		t.Errorf("got %q, %q and %q: want the first two equal, and the third not", one, other, renamed)
	}
}
