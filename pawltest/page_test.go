package pawltest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest/mutant"
)

// The page lists the faults that TestModel finds. TestScoreOverAScript and TestScoreOverAWire prove
// the list.
func TestPageHasTheScore(t *testing.T) {
	const page, begins, ends = "../docs/testing.md", "<!-- faults of models -->\n", "<!-- end of faults -->"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), begins)
	got, after, found := strings.Cut(rest, ends)
	if !found {
		t.Fatalf("%s has no place for the faults", page)
	}
	want := faultTable()
	if got == want {
		return
	}
	if f := flag.Lookup("update"); f == nil || f.Value.String() != "true" {
		t.Fatalf("%s has another table; run go test ./pawltest -run Page -update", page)
	}
	if err := os.WriteFile(page, []byte(before+begins+want+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// faultTable has a row for each part of the suite, with the number of its faults and their names.
func faultTable() string {
	var parts []string
	faults := map[string][]string{}
	models := mutant.Models()
	for _, m := range models {
		part, _, _ := strings.Cut(m.Part, "/")
		if faults[part] == nil {
			parts = append(parts, part)
		}
		faults[part] = append(faults[part], m.Name)
	}

	var b strings.Builder
	fmt.Fprintf(&b, "`TestModel` finds %d of %d planted faults.\n\n| part | faults | a Model that … |\n|---|---|---|\n", len(models), len(models))
	for _, part := range parts {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", part, len(faults[part]), strings.Join(faults[part], "; "))
	}
	return b.String()
}
