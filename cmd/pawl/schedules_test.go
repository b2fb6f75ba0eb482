package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/rogpeppe/go-internal/testscript"
)

// due is a command of the scripts. It stores a schedule that is due now and belongs to alice in the
// database DB. With N it stores N schedules, ID1, ID2 and so on.
func due(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: due DB ID TASK [N]")
	}
	db, err := sqlite.Open(ts.MkAbs(args[0]), &sqlite.Options{NoSync: true})
	ts.Check(err)
	defer db.Close()
	ids := args[1:2]
	if len(args) == 4 {
		n, err := strconv.Atoi(args[3])
		ts.Check(err)
		ids = nil
		for i := range n {
			ids = append(ids, args[1]+strconv.Itoa(i+1))
		}
	}
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Second)
	task := []byte(strings.ReplaceAll(args[2], "SERVER", ts.Getenv("SERVER")))
	for _, id := range ids {
		_, err = db.PutSchedule(context.Background(), store.Scope{User: "alice"},
			store.Schedule{ID: id, Description: "the schedule " + id, When: at.Format(time.RFC3339), Task: task,
				Enabled: true, Next: at})
		ts.Check(err)
	}
}

// Faults in the flags of the commands about stored data are reported before any action, in one line
// with the remedy.
func TestKeptCommandsRefuse(t *testing.T) {
	soak.Sequential(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "pawl.db")
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
	ok(t, err)
	mine := store.Scope{User: "alice"}
	_, err = db.PutSchedule(t.Context(), mine, store.Schedule{ID: "backup", When: "daily 08:00", Task: []byte(`{}`),
		Enabled: true, Next: time.Now().Add(time.Hour)})
	ok(t, err)
	ok(t, db.Close())
	refused(t, path, []badLine{
		{"schedules", 2, "expected one of"},
		{"schedules show", 2, "an argument is missing: SCHEDULE"},
		{"schedules delete", 2, "an argument is missing: SCHEDULE"},
		{"schedules show backap --user alice", 1, "there is no schedule backap; did you mean backup?"},
		{"schedules show backup --user bob", 1, "there is no schedule backup"},
		{"schedules delete backap --user alice", 1, "there is no schedule backap; did you mean backup?"},
		{"memory", 2, "expected one of"},
		{"memory forget", 2, "want ids, a query, a run or --all"},
		{"memory forget m1 --query x", 2, "want ids, a query, a run or --all"},
		{"memory forget nothing", 1, "there is no memory nothing"},
		{"memory forget m1 --db none.db", 2, "there is no database none.db"},
		{"memory list a b", 2, "unexpected argument b"},
		{"knowledge add", 2, "an argument is missing: PATH\n"},
		{"skills", 2, "expected one of"},
		{"skills show", 2, "an argument is missing: SKILL"},
		{"skills show brew", 1, "there is no skill brew"},
		{"skills show brew --version -1", 2, "--version"},
		{"skills delete brew", 1, "there is no skill brew"},
		{"threads", 2, "expected one of"},
		{"threads show", 2, "an argument is missing: THREAD"},
		{"threads show last", 1, "there is no conversation last"},
		{"threads delete x y", 1, "there is no conversation x"},
		{"threads list --limit 3", 2, "unknown flag --limit"},
		{"chat --model openai:sim --thread " + strings.Repeat("x", 300), 2, "at most 256 are allowed"},
		{"chat --model openai:sim --thread last", 2, "there is no conversation yet"},
		{"schedules run --user alice", 2, "--tenant and --user"},
		{"schedules run --poll 0s", 2, "--poll 0s is not more than 0"},
		{"schedules run --poll soon", 2, "--poll"},
		{"schedules run --once --until 10m", 2, "--once and --until"},
		{"schedules run --until yesterday", 2, "such as 90s or 12h"},
		{"schedules run --until 2020-01-01T00:00:00Z", 2, "neither a future time"},
		{"schedules run --until -5m", 2, "--until"},
		{"schedules run --once --tools knife", 2, "no set of tools is named"},
		{"schedules run --once --model nonsense", 2, "nonsense"},
		{"schedules run --once --deny-tool nothing", 2, "nothing"},
		{"schedules run --once --save x", 2, "unknown flag --save"},
	})
}

// badLine is a rejected command line with its status and its message.
type badLine struct {
	args   string
	status int
	want   string
}

// refused checks that each row is rejected in at most two lines, the second of which is a hint. A
// row without a database uses the database at path.
func refused(t *testing.T, path string, rows []badLine) {
	t.Helper()
	for _, row := range rows {
		var out bytes.Buffer
		sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &out, Env: func(string) string { return "" },
			Width: 80}
		args := strings.Fields(row.args)
		if len(args) > 1 && !slices.Contains(args, "--db") {
			args = append(args, "--db", path)
		}
		status := execute(args, sys)
		text := out.String()
		if status != row.status || !strings.HasPrefix(text, "pawl: error: ") || !strings.Contains(text, row.want) ||
			strings.Contains(text, "goroutine") {
			t.Errorf("pawl %s: status %d, want %d; told\n%s\nwant %q in it", row.args, status, row.status, text,
				row.want)
		}
		if lines := strings.Count(strings.TrimSpace(text), "\n"); lines > 1 {
			t.Errorf("pawl %s: told in %d lines:\n%s", row.args, lines+1, text)
		}
	}
}

// ok fails the test if err is not nil.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
