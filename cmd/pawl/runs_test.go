package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// A fault in a run's name, a key or a flag is reported in one line with its remedy, and changes
// nothing.
func TestRunCommandsRefuse(t *testing.T) {
	soak.Sequential(t)
	path := filepath.Join(t.TempDir(), "runs.db")
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
	ok(t, err)
	eng := &durable.Engine{Journal: db}
	look := &pawl.Tool{Name: "look", Passive: true}
	for _, id := range []string{"invoice-7", "invoice-8", "quick"} {
		a := &pawl.Agent{Model: script.New(script.Call("look", nil), script.Say("done")), Tools: []pawl.Toolset{look}}
		if id == "quick" {
			a.Model = script.New(script.Say("done"))
		}
		_, err := runtest.Ended(eng.Runner(id, a).Run(t.Context(), llm.User("Look.")))
		ok(t, err)
	}
	ok(t, db.Close())
	before := exported(t, path)
	refused(t, path, []badLine{
		{"runs", 2, "expected one of"},
		{"runs list --state sleeping", 2, "--state"},
		{"runs list --db none.db", 2, "none.db"},
		{"runs show", 2, "an argument is missing: RUN"},
		{"runs show invoice", 1, "2 runs begin with invoice: invoice-7, invoice-8"},
		{"runs show invoce-7", 1, "there is no run invoce-7; did you mean invoice-7?"},
		{"runs show last --user bob", 1, "there is no run yet"},
		{"runs show invoice-7 --user bob", 1, "there is no run invoice-7"},
		{"runs resume x", 1, "there is no run x"},
		{"runs resume invoice-7", 2, "was not started by pawl run"},
		{"runs resume invoice-7 --model script:none.json", 2, "none.json"},
		{"runs resume invoice-7 --model nonsense", 2, "nonsense"},
		{"runs resume invoice-7 --model openai:x --approve run/9/9", 2, "no open call has this key"},
		{"runs resume invoice-7 --lease 1ms", 2, "--lease 1ms is too short"},
		{"runs resume invoice-7 --lease soon", 2, "--lease"},
		{"runs replay invoice-7", 2, "was not started by pawl run"},
		{"runs approve invoice-7", 2, "an argument is missing"},
		{"runs approve invoice-7 run/1/0", 2, "look is a passive tool, which pawl does not execute"},
		{"runs approve invoice-7 run/1/1", 2, "no open call has this key"},
		{"runs approve invoice-7 all", 2, "no open call is left"},
		{"runs approve quick run/1/0", 1, "no call of run quick is pending"},
		{"runs approve invoice-7 run/1/0={", 2, "the arguments are not JSON"},
		{"runs deny invoice-7 run/1/1=no", 2, "no open call has this key"},
		{"runs answer invoice-7 run/1/0", 2, "the result is missing"},
		{"runs answer invoice-7 run/2/0=x", 2, "no open call has this key"},
		{"runs verify invoice-7 --head beef", 1, "beef"},
		{"runs cancel quick", 1, "run quick is over: answer"},
		{"runs fork invoice-7", 2, "--at"},
		{"runs fork invoice-7 --at 5", 2, "has 1 step"},
		{"runs fork invoice-7 --at -1", 2, "--at"},
		{"runs fork quick --at 1 --tool look=x", 2, "no call of this name or key is copied"},
		{"runs fork quick --at 1 --tool look", 2, "--tool"},
		{"runs fork quick --at 1 --as last", 2, "--as last: the word last means the last run"},
		{"runs fork quick --at 1 --as " + strings.Repeat("x", 300), 2, "--as: "},
		{"runs diff invoice-7", 2, "an argument is missing: B"},
		{"runs diff invoice-7 nothing", 1, "there is no run nothing"},
		{"runs delete nothing", 1, "there is no run nothing"},
		{"effects", 2, "expected one of"},
		{"effects list nothing", 1, "there is no run nothing"},
		{"effects list --state done", 2, "--state"},
		{"effects show invoice-7", 2, "an argument is missing: KEY"},
		{"effects show invoice-7 run/1/9", 1, "there is no effect run/1/9"},
		{"effects reconcile invoice-7 run/1/0 --again", 1, "there is no effect run/1/0"},
		{"effects reconcile invoice-7 run/1/0 --again --never x", 2, "--again"},
		{"inbox list --state x", 2, "unknown flag --state"},
		{"inbox answer invoice-7 run/1/0", 2, "the result is missing"},
		{"run --model openai:x --run seven task", 2, "--run: the run is not durable"},
		{"run --model openai:x --lease 9s task", 2, "--lease: the run is not durable"},
		{"run --model openai:x --durable --run last task", 2, "the word last means the last run"},
		{"run --model openai:x --durable --lease 0s task", 2, "too short"},
	})
	if diff := cmp.Diff(exported(t, path), before); diff != "" {
		t.Errorf("something was changed: %s", diff)
	}
}

// exported returns all runs of a database.
func exported(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, id := range []string{"invoice-7", "invoice-8", "quick"} {
		var out bytes.Buffer
		sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
		if status := execute([]string{"runs", "show", id, "--json", "--db", path}, sys); status != 0 {
			t.Fatalf("%s: %s", id, out.String())
		}
		all = append(all, out.String())
	}
	return all
}

// doctor runs lists the stuck runs of all users, and its status says whether there are any.
func TestDoctorRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
	ok(t, err)
	defer db.Close()
	doctor := func(args ...string) (string, int) {
		var out bytes.Buffer
		sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
		status := execute(append([]string{"doctor", "runs", "--db", path}, args...), sys)
		return out.String(), status
	}
	if out, status := doctor(); status != 0 || out != "no run is stuck\n" {
		t.Errorf("status %d, %s", status, out)
	}
	who := store.Scope{Tenant: "acme", User: "alice"}
	l, err := db.BeginJournal(t.Context(), who, store.JournalRun{ID: "bill", State: store.JournalOpen}, "me", time.Now())
	ok(t, err)
	_, err = db.AppendJournal(t.Context(), l, &store.JournalChange{State: store.JournalFailed, Release: true})
	ok(t, err)
	if out, status := doctor(); status != cli.StatusFailed || !strings.Contains(out, "failed without a reason") ||
		!strings.Contains(out, "acme") {
		t.Errorf("status %d, %s", status, out)
	}
	if out, status := doctor("--tenant", "other"); status != 0 {
		t.Errorf("another tenant: status %d, %s", status, out)
	}
	out, status := doctor("--json", "--user", "alice")
	var all []durable.StuckRun
	if err := json.Unmarshal([]byte(out), &all); err != nil || status != cli.StatusFailed || len(all) != 1 ||
		all[0].Run != "bill" || all[0].Scope != who || all[0].Since.IsZero() {
		t.Errorf("status %d, %v, %s", status, err, out)
	}
}

// A run that no process has executed yet is queued, and an interrupted one is not.
func TestQueuedRunsAreListed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
	ok(t, err)
	defer db.Close()
	a := &pawl.Agent{Model: script.New(script.Say("done"))}
	ok(t, (&durable.Engine{Journal: db}).Runner("later", a).Enqueue(t.Context(), llm.User("Look.")))
	_, err = db.BeginJournal(t.Context(), store.Scope{}, store.JournalRun{ID: "broken", State: store.JournalOpen}, "me", time.Now())
	ok(t, err)
	var out bytes.Buffer
	sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
	if status := execute([]string{"runs", "list", "--db", path}, sys); status != 0 {
		t.Fatalf("status %d, %s", status, out.String())
	}
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		if want := map[string]string{"later": "queued", "broken": "interrupted"}[f[0]]; want != "" && f[1] != want {
			t.Errorf("got %s", line)
		}
	}
	if !strings.Contains(out.String(), "later") || !strings.Contains(out.String(), "broken") {
		t.Errorf("got %s", out.String())
	}
}
