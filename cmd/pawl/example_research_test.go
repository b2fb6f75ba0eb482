package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// researchPlan lets librarian and analyst work in parallel.
const researchPlan = `{"phases": [
	{"name": "passages", "worker": "librarian", "goals": "Find the plans for shore power."},
	{"name": "sum", "worker": "analyst", "goals": "Add up the megawatts of the ferries.", "parallel": true},
	{"name": "check", "worker": "critic", "goals": "What is missing?"}]}`

// The example of a research team takes in its documents, answers with a report of its form, and
// answers its schedule. A script replaces the model; the search, the sum and the form are real.
func TestExampleResearch(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "research")
	team := filepath.Join(dir, "team.yaml")
	const report = `{"answer": "They need 7.8 MW.", "open": ["costs"],
		"findings": [{"claim": "A third connection is planned.", "source": "harbour.md"}]}`
	search := func(words string) script.Turn {
		return script.Call("knowledge_search", map[string]string{"query": words})
	}
	sim, err := pawltest.NewSimulator(script.New(
		script.First(
			script.Expect(search("third connection"), script.Asked("Find the plans")),
			script.Expect(search("megawatts"), script.Asked("Add up")),
			script.Expect(script.Say("No costs."), script.Asked("What is missing")),
			script.Expect(script.Say(report), script.Asked("What the workers gave"), script.Asked("northern quay"),
				script.Asked("7.8 MW."), script.Asked("No costs.")),
			script.Say(researchPlan)),
		script.First(
			script.Expect(script.Say("The third connection is planned for the northern quay."),
				script.Returned("knowledge_search", "northern quay")),
			script.Expect(script.Call("data_aggregate", `{"records": [{"mw": 2.5}, {"mw": 3.1}, {"mw": 2.2}],
				"metrics": [{"op": "sum", "column": "mw"}]}`),
				script.Returned("knowledge_search", "Birk,1,3.1"))),
		script.Expect(script.Say("7.8 MW."), script.Returned("data_aggregate", "7.8")),
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	data := t.TempDir()
	pawl := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "pawl", args...)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+data, "OPENAI_BASE_URL="+sim.URL, "OPENAI_API_KEY=k")
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("pawl %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}

	if out := pawl("check", team); out != "" {
		t.Errorf("pawl check: %s", out)
	}
	if out := pawl("knowledge", "add", filepath.Join(dir, "docs")); strings.Count(out, "added ") != 3 {
		t.Errorf("taken in: %s", out)
	}
	answer := func(text string) {
		t.Helper()
		var got, want any
		err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(report), &want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v in %s: (-want +got)\n%s", err, text, diff)
		}
	}
	answer(pawl("run", team, "How much shore power do the ferries need?"))
	for _, r := range sim.Received() {
		if len(r.Violations) > 0 {
			t.Errorf("%s: %v", r.Path, r.Violations)
		}
	}

	// Store the schedule of the file, and move it to the past.
	pawl("schedules", "run", team, "--once")
	db, err := sqlite.Open(filepath.Join(data, "pawl", "pawl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const weekly = "research/weekly"
	v, err := db.Schedule(t.Context(), store.Scope{}, weekly)
	if err == nil {
		err = db.MoveSchedule(t.Context(), store.Scope{}, weekly, v.Next, time.Now().Add(-time.Second), true)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if v.Next.Weekday() != time.Monday {
		t.Errorf("the next time is %s", v.Next)
	}
	if out := pawl("schedules", "run", team, "--once"); !strings.Contains(out, "done after") {
		t.Errorf("schedules run: %s", out)
	}
	var shown struct {
		Occurrences []struct{ State, Text string }
	}
	out := pawl("schedules", "show", weekly, "--json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown.Occurrences) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	answer(shown.Occurrences[0].Text)
}
