package storetest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store/storetest/fault"
)

// The page lists the faults that the suites find. TestScores proves the lists.
func TestPageHasTheScore(t *testing.T) {
	const page = "../../docs/testing.md"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	const begins = "<!-- faults of stores -->\n"
	before, rest, _ := strings.Cut(string(was), begins)
	_, after, found := strings.Cut(rest, "<!-- end of faults -->")
	if !found {
		t.Fatal("the page has no place for the faults of stores")
	}
	is := before + begins + faultTable() + "<!-- end of faults -->" + after
	if is == string(was) {
		return
	}
	if f := flag.Lookup("update"); f == nil || f.Value.String() != "true" {
		t.Fatalf("%s has another table; run go test ./store/storetest -run Page -update", page)
	}
	if err := os.WriteFile(page, []byte(is), 0o644); err != nil {
		t.Fatal(err)
	}
}

var _ = flag.Bool("update", false, "write the table of faults")

func faultTable() string {
	var rows strings.Builder
	all := 0
	row := func(suite, implementation string, names []string) {
		all += len(names)
		fmt.Fprintf(&rows, "| `%s` | %d | %s that … %s |\n", suite, len(names), implementation, strings.Join(names, "; "))
	}
	row("TestThreads", "a `store.Threads`", namesOf(fault.Threads()))
	row("TestKnowledge", "a `store.Knowledge`", namesOf(fault.Knowledge()))
	row("TestMemories", "a `store.Memories`", namesOf(fault.Memories()))
	row("TestSkills", "a `store.Skills`", namesOf(fault.Skills()))
	row("TestSchedules", "a `store.Schedules`", namesOf(fault.Schedules()))
	row("TestTraces", "a `store.Traces`", namesOf(fault.Traces()))
	row("TestArtifacts", "a `store.Artifacts`", namesOf(fault.Artifacts()))
	row("TestJournal", "a `store.Journal`", namesOf(fault.Journals()))
	row("TestStore", "a `store.Store`", namesOf(fault.Stores()))
	return fmt.Sprintf("The suites of `storetest` find %d of %d planted faults.\n\n", all, all) +
		"| suite | faults | implementations |\n|---|---|---|\n" + rows.String()
}

func namesOf[M any](faults []mutant.Mutant[M]) []string {
	var names []string
	for _, f := range faults {
		names = append(names, f.Name)
	}
	return names
}
