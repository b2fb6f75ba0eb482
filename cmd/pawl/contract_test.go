package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// An agent does the same when the command runs its file. An MCP server has its tools, and
// its model is behind a provider's API.
func TestContract(t *testing.T) {
	contract.Play(t, "command", func(t *testing.T, s *contract.Scene) contract.Visit {
		file := sceneFile(t, s)
		n := 0
		return contract.Visit{Say: func(text string) contract.Shown {
			n++
			args := []string{"run", file, "--save", fmt.Sprint(n, ".json")}
			if n > 1 {
				args = append(args, "--messages", fmt.Sprint(n-1, ".json"))
			}
			return shownCommand(append(args, text))
		}}
	})
}

// An agent does the same when a schedule runs its file.
func TestContractOfSchedules(t *testing.T) {
	soak.Sequential(t)
	contract.Play(t, "schedules", func(t *testing.T, s *contract.Scene) contract.Visit {
		file := sceneFile(t, s)
		return contract.Visit{Say: func(text string) contract.Shown { return runScheduled(t, file, text) }}
	})
}

// sceneFile writes the file of a scene into a new working directory, and returns its name.
func sceneFile(t *testing.T, s *contract.Scene) string {
	t.Helper()
	sim, err := pawltest.NewSimulator(s.Model, nil)
	ok(t, err)
	t.Cleanup(func() { ok(t, sim.Close()) })
	allow := func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	service := &mcp.Service{Name: "toolbox", Version: "1", Tools: s.Plain(), Approve: allow}
	h, err := service.Handler(t.Context(), nil)
	ok(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)

	dir := t.TempDir()
	t.Chdir(dir)
	return writer(t, dir)("agent.yaml", s.YAML()+
		"model: {name: \"openai-chat:sim\", base_url: \""+sim.URL+"\"}\n"+
		"tools: [{mcp: box}]\nmcp_servers:\n  box: {url: \""+web.URL+"\", prefix: \"-\", trust: true}\n")
}

// shownCommand runs a command, and returns what it shows.
func shownCommand(args []string) contract.Shown {
	var out, errs bytes.Buffer
	sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }}
	status := execute(args, sys)
	shown := contract.Shown{
		Text:  strings.TrimSuffix(out.String(), "\n"),
		End:   pawl.ClassFailed,
		Cause: errs.String(),
		Calls: strings.Split(out.String(), "\n"),
	}
	switch status {
	case 0:
		shown.End = pawl.ClassAnswered
	case cli.StatusPending:
		shown.End = pawl.ClassWaiting
	case cli.StatusLimit:
		shown.End = pawl.ClassLimited
	}
	if json.Valid([]byte(shown.Text)) {
		shown.Output = json.RawMessage(shown.Text)
	}
	return shown
}

// runScheduled runs a task by a schedule that is due, and returns what its owner sees.
func runScheduled(t *testing.T, file, task string) contract.Shown {
	t.Helper()
	mine := store.Scope{User: "alice"}
	db, err := sqlite.Open("s.db", &sqlite.Options{NoSync: true})
	ok(t, err)
	prompt, err := json.Marshal(map[string]string{"prompt": task})
	ok(t, err)
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Second)
	_, err = db.PutSchedule(t.Context(), mine, store.Schedule{ID: "now", When: at.Format(time.RFC3339), Task: prompt,
		Enabled: true, Next: at})
	ok(t, err)
	ok(t, db.Close())

	shownCommand([]string{"schedules", "run", file, "--db", "s.db", "--once"})
	record := shownCommand([]string{"schedules", "show", "now", "--db", "s.db", "--user", "alice", "--json"})
	var stored struct {
		Occurrences []struct{ State, Text string }
	}
	if err := json.Unmarshal(record.Output, &stored); err != nil || len(stored.Occurrences) != 1 {
		t.Fatalf("%v: %s", err, record.Text)
	}
	last := stored.Occurrences[0]
	shown := contract.Shown{Text: last.Text, End: pawl.ClassAnswered}
	if last.State != "done" {
		shown.End = pawl.ClassFailed
		shown.Cause = last.Text
	}
	if json.Valid([]byte(last.Text)) {
		shown.Output = json.RawMessage(last.Text)
	}
	return shown
}
