package pawltest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest/mutant"
)

// The page lists the faults that the suites find. Tests of the scores prove the lists:
// TestScoreOverAScript and TestScoreOverAWire, TestScoreOfAdapters, TestScoreOfExecutors,
// TestScoreOfRunners.
func TestPageHasTheScore(t *testing.T) {
	const page = "../docs/testing.md"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	is := string(was)
	is = withFaults(t, is, "models", faultTable("TestModel", "Model", mutant.Models()))
	is = withFaults(t, is, "adapters", faultRows("adapter", mutant.Adapters()))
	is = withFaults(t, is, "executors", faultTable("TestExecutor", "Executor", mutant.Executors()))
	is = withFaults(t, is, "runners", faultTable("TestRunner", "Runner", mutant.Runners()))
	if is == string(was) {
		return
	}
	if f := flag.Lookup("update"); f == nil || f.Value.String() != "true" {
		t.Fatalf("%s has another table; run go test ./pawltest -run Page -update", page)
	}
	if err := os.WriteFile(page, []byte(is), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withFaults returns page with table in the place for the faults of the implementations.
func withFaults(t *testing.T, page, implementations, table string) string {
	t.Helper()
	begins := "<!-- faults of " + implementations + " -->\n"
	before, rest, _ := strings.Cut(page, begins)
	_, after, found := strings.Cut(rest, "<!-- end of faults -->")
	if !found {
		t.Fatalf("the page has no place for the faults of %s", implementations)
	}
	return before + begins + table + "<!-- end of faults -->" + after
}

// faultTable says how many faults a suite finds, and has their rows.
func faultTable[M any](suite, implementation string, mutants []mutant.Mutant[M]) string {
	return fmt.Sprintf("`%s` finds %d of %d planted faults.\n\n", suite, len(mutants), len(mutants)) +
		faultRows(implementation, mutants)
}

// faultRows has a row for each part of a suite, with the number of its faults and their names.
func faultRows[M any](implementation string, mutants []mutant.Mutant[M]) string {
	var parts []string
	faults := map[string][]string{}
	for _, m := range mutants {
		part, _, _ := strings.Cut(m.Part, "/")
		if faults[part] == nil {
			parts = append(parts, part)
		}
		faults[part] = append(faults[part], m.Name)
	}

	var b strings.Builder
	fmt.Fprintf(&b, "| part | faults | %s %s that … |\n|---|---|---|\n", article(implementation), implementation)
	for _, part := range parts {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", part, len(faults[part]), strings.Join(faults[part], "; "))
	}
	return b.String()
}

func article(noun string) string {
	if strings.Contains("AEIOaeio", noun[:1]) {
		return "an"
	}
	return "a"
}
