package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

type query struct {
	Query string `json:"query"`
}

// search answers every query except "down".
func search() *pawl.Tool {
	return pawl.Func("search_database", "Searches.", func(_ context.Context, in query) (string, error) {
		if in.Query == "down" {
			return "", errors.New("the database is down")
		}
		return "records of " + in.Query, nil
	})
}

func scripts(t *testing.T, boss llm.Model, o *team.Options, workers ...team.Worker) *pawl.Agent {
	t.Helper()
	a, err := team.Script(&pawl.Agent{Name: "desk", Model: boss}, o, workers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const twoSteps = `{"thought":"Data first.","script":[
 {"name":"find","worker":"scout","execution_mode":"direct","tool_name":"search_database","args":{"query":"users"}},
 {"worker":"scout","execution_mode":"direct","tool_name":"search_database","args":{"query":"orders"}},
 {"name":"tell","worker":"clerk","execution_mode":"guided","notes":"Write a report."}]}`

// Direct steps are calls of the worker's own tools, without its model. A guided step is a task for
// the worker, with the results before it.
func TestScript(t *testing.T) {
	boss := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if req.Output != nil {
			return script.Say(twoSteps)
		}
		return script.Say("The report.")
	})))
	scout, clerk := script.New(), script.New(script.Say("Report: many."))
	var keys []string
	var res *pawl.Result
	for e, err := range scripts(t, boss, nil, worker("scout", scout, search()),
		worker("clerk", clerk)).Stream(t.Context(), llm.User("Report on users.")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventCallCompleted {
			keys = append(keys, string(e.Path)+" "+e.Execution.Call.Name)
		}
		if e.Kind == pawl.EventRunEnded && e.Run == "run" {
			res = e.Result
		}
	}
	want := []string{"run/1/0 write_script", "run/2/0/scout/1/0 search_database", "run/2/0/scout/2/0 search_database", "run/2/0 scout", "run/3/0 clerk", "run/4/0 sum_up"}
	if diff := cmp.Diff(keys, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if len(scout.Requests()) != 0 || res.Text() != "The report." {
		t.Errorf("%d requests to the scout's model; the answer is %q", len(scout.Requests()), res.Text())
	}
	if got := clerk.Requests()[0].Messages[1].Text(); !strings.Contains(got, "1. Write a report.") || !strings.Contains(got, "2. search_database: records of orders") {
		t.Errorf("the clerk was told:\n%s", got)
	}
	if got := boss.Requests()[0].Messages[0].Text(); !strings.Contains(got, "- scout: Works as scout.\n  - search_database: Searches. Arguments: {") {
		t.Errorf("the lead was not told of the tools:\n%s", got)
	}
}

// A script with unknown tools is sent back with its faults, a limited number of times.
func TestScriptCorrected(t *testing.T) {
	direct := func(rest string) string {
		return `{"script":[{"worker":"scout","execution_mode":"direct"` + rest + `}]}`
	}
	good := direct(`,"tool_name":"search_database","args":{"query":"q"}`)
	for _, tt := range []struct{ bad, told string }{
		{direct(`,"tool_name":"search_databse","args":{}`), `step 1: scout has no tool "search_databse"; did you mean search_database?`},
		{direct(`,"tool_name":"xyz"`), `step 1: scout has no tool "xyz"; there are: search_database`},
		{direct(``), "step 1: a direct step names a tool of scout: search_database"},
		{`{"script":[{"worker":"scout","execution_mode":"guided"}]}`, "step 1: a guided step says in notes what is to be done"},
	} {
		for _, times := range []int{1, 3} {
			n := 0
			boss := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
				if req.Output == nil {
					return script.Say("Done.")
				}
				if n++; n <= times {
					return script.Say(tt.bad)
				}
				return script.Say(good)
			})))
			res, err := scripts(t, boss, nil, worker("scout", script.New(), search())).Run(t.Context(), llm.User("Go."))
			if (err != nil) != (times == 3) || err != nil && (n != 3 || !strings.Contains(err.Error(), tt.told)) {
				t.Errorf("%s, %d times: %v, %q", tt.bad, times, err, called(res))
			}
			if got := boss.Requests()[1].Messages; !strings.Contains(got[len(got)-1].Text(), "The script cannot be executed: "+tt.told) {
				t.Errorf("the lead was told %q, want %q in it", got[len(got)-1].Text(), tt.told)
			}
		}
	}
}

// A failed step stops the script, runs again, or causes another script. The rest of its segment
// does not run.
func TestScriptFailed(t *testing.T) {
	steps := func(queries ...string) string {
		var all []string
		for _, q := range queries {
			all = append(all, fmt.Sprintf(`{"worker":"scout","execution_mode":"direct","tool_name":"search_database","args":{"query":%q}}`, q))
		}
		return `{"script":[` + strings.Join(all, ",") + `]}`
	}
	for _, tt := range []struct {
		opts  *team.Options
		calls string
		fails bool
	}{
		{nil, "write_script ok; scout error", true},
		{&team.Options{OnFailure: team.Retry}, "write_script ok; scout error; scout error", true},
		{&team.Options{OnFailure: team.Replan}, "write_script ok; scout error; write_script ok; scout ok; sum_up ok", false},
	} {
		n := 0
		boss := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			if req.Output == nil {
				return script.Say("Done.")
			}
			if n++; n == 1 {
				return script.Say(steps("a", "down", "b"))
			}
			return script.Say(steps("c"))
		})))
		res, err := scripts(t, boss, tt.opts, worker("scout", script.New(), search())).Run(t.Context(), llm.User("Go."))
		if got := strings.Join(called(res), "; "); got != tt.calls || (err != nil) != tt.fails {
			t.Errorf("got %s, %v; want %s", got, err, tt.calls)
		}
		if tt.fails && !strings.Contains(err.Error(), "step 2 (search_database): the database is down") {
			t.Errorf("got %v", err)
		}
	}
}
