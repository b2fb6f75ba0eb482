package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

// twoPhases is a plan for scout and clerk.
const twoPhases = `{"phases":[{"name":"look","worker":"scout","goals":"Find the active users."},{"name":"count","worker":"clerk","goals":"Count <them> & report."}],"rationale":"Data first."}`

// worker is an agent with a model.
func worker(name string, m llm.Model, tools ...pawl.Toolset) team.Worker {
	return team.Worker{Agent: &pawl.Agent{Name: name, Model: m, Instructions: "You are " + name + ".", Tools: tools},
		Description: "Works as " + name + "."}
}

// strategic makes a team whose lead answers with replies, in turn.
func strategic(t *testing.T, lead llm.Model, o *team.Options, workers ...team.Worker) *pawl.Agent {
	t.Helper()
	a, err := team.Strategic(&pawl.Agent{Name: "desk", Model: lead, Instructions: "Be exact."}, o, workers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// leads answers requests for plans with plans, in turn, and other requests with answer. It records
// the requests.
type leads struct {
	*script.Model
	mu    sync.Mutex
	asked int
}

func lead(answer string, plans ...string) *leads {
	l := new(leads)
	l.Model = script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if !strings.Contains(string(req.Output), `"phases"`) {
			return script.Say(answer)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.asked++; l.asked > len(plans) {
			return script.Fail(fmt.Errorf("plan %d was asked for", l.asked))
		}
		return script.Say(plans[l.asked-1])
	})))
	return l
}

// called are the calls of a run, step by step.
func called(res *pawl.Result) (out []string) {
	for _, s := range res.Steps {
		var names []string
		for _, x := range s.Executions {
			names = append(names, x.Call.Name+" "+string(x.Outcome))
		}
		if len(names) > 0 {
			out = append(out, strings.Join(names, ", "))
		}
	}
	return out
}

// The lead plans, the workers execute the plan with the plan in their system prompt, and the lead
// sums up. All of it is one run: one budget, and keys below the calls.
func TestStrategic(t *testing.T) {
	boss, scout, clerk := lead("Three are active.", twoPhases), script.New(script.Say("u1, u3, u4")), script.New(script.Say("3"))
	a := strategic(t, boss, nil, worker("scout", scout), worker("clerk", clerk))
	var keys []string
	var notice pawl.Event
	var res *pawl.Result
	for e, err := range a.Stream(t.Context(), llm.User("How many users are active?")) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == pawl.EventRequestStarted:
			keys = append(keys, string(e.Path))
		case e.Kind == pawl.EventNotice && e.Code == team.NoticePlan:
			notice = e
		case e.Kind == pawl.EventRunEnded && e.Run == "run":
			res = e.Result
		}
	}
	if res.Text() != "Three are active." || res.Stop != pawl.StopAnswer {
		t.Errorf("got %q (%s)", res.Text(), res.Stop)
	}
	want := []string{"run/0/model", "run/1/0/desk/0/model", "run/1/model", "run/2/0/scout/0/model", "run/2/model", "run/3/0/clerk/0/model", "run/3/model", "run/4/0/desk/0/model", "run/4/model"}
	if diff := cmp.Diff(keys, want); diff != "" {
		t.Errorf("requests, got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(called(res), []string{"make_plan ok", "scout ok", "clerk ok", "sum_up ok"}); diff != "" {
		t.Errorf("calls, got -, want +\n%s", diff)
	}
	var told team.Plan
	if err := json.Unmarshal(notice.Data, &told); err != nil || len(told.Phases) != 2 || notice.Run != "run" {
		t.Errorf("the notice of the plan: %v, %+v", err, notice)
	}
	block := "\n\nSTRATEGIC PLAN:\n{\n  \"phases\": [\n    {\n      \"name\": \"look\",\n      \"worker\": \"scout\",\n"
	for _, m := range []*script.Model{scout, clerk} {
		if got := m.Requests()[0].Messages[0]; got.Role != llm.RoleSystem || !strings.Contains(got.Text(), block) ||
			!strings.Contains(got.Text(), `"Count <them> & report."`) {
			t.Errorf("the system text has no plan:\n%s", got.Text())
		}
	}
	task := clerk.Requests()[0].Messages[1].Text()
	for _, part := range []string{"Count <them> & report.", "How many users are active?", "## look (scout)\nu1, u3, u4"} {
		if !strings.Contains(task, part) {
			t.Errorf("the clerk's task has no %q:\n%s", part, task)
		}
	}
	first := boss.Requests()[0]
	for _, part := range []string{"Be exact.", "- scout: Works as scout.\n- clerk: Works as clerk.\n"} {
		if got := first.Messages[0].Text(); !strings.Contains(got, part) {
			t.Errorf("the lead was not told %q:\n%s", part, got)
		}
	}
	if got := string(res.Values[team.PlanKey]); !strings.Contains(got, `"worker":"scout"`) {
		t.Errorf("the value of the run is %s", got)
	}
	if res.Spent.Requests != 4 || res.Spent.Calls != 4 {
		t.Errorf("spent: %+v", res.Spent)
	}
}

// Parallel phases run together, without the results of each other.
func TestParallelPhases(t *testing.T) {
	plan := `{"phases":[{"worker":"a","goals":"A"},{"worker":"b","goals":"B","parallel":true},{"worker":"a","goals":"C"}]}`
	var both sync.WaitGroup // without the other phase in parallel, each would wait for ever
	both.Add(2)
	meet := func(name string) script.Turn {
		return script.First(script.Expect(script.Say("last"), script.Asked("C\n")), script.Func(func(*llm.Request) script.Turn {
			both.Done()
			both.Wait()
			return script.Say(name)
		}))
	}
	a, b := script.New(meet("from a")), script.New(meet("from b"))
	res, err := strategic(t, lead("Done.", plan), nil, worker("a", a), worker("b", b)).Run(t.Context(), llm.User("Go."))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(called(res), []string{"make_plan ok", "a ok, b ok", "a ok", "sum_up ok"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	last := a.Requests()[1].Messages[1].Text()
	if !strings.Contains(last, "from a") || !strings.Contains(last, "from b") ||
		strings.Contains(b.Requests()[0].Messages[1].Text(), "gave") {
		t.Errorf("the third phase was told:\n%s", last)
	}
}

// A plan with an unknown worker, or without phases, is sent back with its faults and the nearest
// name, a limited number of times.
func TestPlanCorrected(t *testing.T) {
	for _, tt := range []struct{ bad, told string }{
		{strings.Replace(twoPhases, `"scout"`, `"scoot"`, 1), `did you mean "scout"?`},
		{`{"phases":[]}`, "phases"},
		{`{"phases":[{"worker":"scout","goals":""}]}`, "goals"},
		{`Let us begin.`, "not valid JSON"},
	} {
		boss := lead("Done.", tt.bad, twoPhases)
		a := strategic(t, boss, nil, worker("scout", script.New(script.Say("x"))), worker("clerk", script.New(script.Say("y"))))
		if _, err := a.Run(t.Context(), llm.User("Go.")); err != nil {
			t.Errorf("%s: %v", tt.bad, err)
			continue
		}
		again := boss.Requests()[1].Messages
		if got := again[len(again)-1].Text(); !strings.Contains(got, tt.told) {
			t.Errorf("%s: the lead was told %q, want %q in it", tt.bad, got, tt.told)
		}
		boss = lead("Done.", tt.bad, tt.bad, tt.bad, twoPhases)
		a = strategic(t, boss, nil, worker("scout", script.New(script.Say("x"))), worker("clerk", script.New(script.Say("y"))))
		res, err := a.Run(t.Context(), llm.User("Go."))
		if failed := (*team.PhaseError)(nil); !errors.As(err, &failed) || failed.Phase != 0 ||
			res.Stop != pawl.StopFailed || len(boss.Requests()) != 3 {
			t.Errorf("%s, for ever: got %v, %s after %d requests", tt.bad, err, res.Stop, len(boss.Requests()))
		}
	}
}

// fails is a model that fails n times, then reports its work.
func fails(n int, text string) *script.Model {
	var mu sync.Mutex
	return script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
		mu.Lock()
		defer mu.Unlock()
		if n--; n >= 0 {
			return script.Fail(errors.New("the line is down"))
		}
		return script.Say(text)
	})))
}

// A failed phase stops the team, or is done again, or is planned anew, and each ends.
func TestFailedPhase(t *testing.T) {
	other := `{"phases":[{"worker":"clerk","goals":"Ask by post."}]}`
	for _, tt := range []struct {
		name  string
		opts  *team.Options
		down  int
		calls []string
		fails bool
	}{
		{"stop", nil, 1, []string{"make_plan ok", "scout error"}, true},
		{"retry", &team.Options{OnFailure: team.Retry}, 1, []string{"make_plan ok", "scout error", "scout ok", "clerk ok", "sum_up ok"}, false},
		{"retry, in vain", &team.Options{OnFailure: team.Retry, Tries: 2}, 9, []string{"make_plan ok", "scout error", "scout error", "scout error"}, true},
		{"replan", &team.Options{OnFailure: team.Replan}, 9, []string{"make_plan ok", "scout error", "make_plan ok", "clerk ok", "sum_up ok"}, false},
	} {
		boss := lead("Done.", twoPhases, other)
		res, err := strategic(t, boss, tt.opts, worker("scout", fails(tt.down, "found")),
			worker("clerk", script.New(script.Say("3")))).Run(t.Context(), llm.User("Go."))
		if diff := cmp.Diff(called(res), tt.calls); diff != "" {
			t.Errorf("%s: got -, want +\n%s", tt.name, diff)
		}
		failed := (*team.PhaseError)(nil)
		if errors.As(err, &failed) != tt.fails || tt.fails &&
			(failed.Phase != 1 || failed.Worker != "scout" || !strings.Contains(failed.Text, "the line is down") ||
				res.Stop != pawl.StopFailed) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if tt.name == "replan" {
			if got := boss.Requests()[1].Messages[1].Text(); !strings.Contains(got, "phase 1 (look) of scout: scout failed") || !strings.Contains(got, "What was done gave:\n## look (scout, failed)") {
				t.Errorf("the lead was asked for another plan with:\n%s", got)
			}
		}
	}
	// Plans that fail again and again end, too.
	boss := lead("Done.", twoPhases, twoPhases, twoPhases, twoPhases)
	_, err := strategic(t, boss, &team.Options{OnFailure: team.Replan}, worker("scout", fails(99, "")),
		worker("clerk", script.New(script.Say("3")))).Run(t.Context(), llm.User("Go."))
	if err == nil || boss.asked != 3 {
		t.Errorf("got %v after %d plans, want 3", err, boss.asked)
	}
}

// A team uses the plan that its run begins with, and reports its faults. For the next task it plans
// by itself.
func TestGivenPlan(t *testing.T) {
	boss, clerk := lead("Done.", `{"phases":[{"worker":"clerk","goals":"Second."}]}`), script.New(script.Loop(script.Say("3")))
	a := strategic(t, boss, nil, worker("scout", script.New(script.Say("x"))), worker("clerk", clerk))
	given := func(plan string) *pawl.Result {
		return &pawl.Result{Values: pawl.Values{team.PlanKey: json.RawMessage(plan)}}
	}
	res, err := a.Resume(t.Context(), given(twoPhases), llm.User("Go."))
	if err != nil || boss.asked != 0 || !slices.Equal(called(res), []string{"make_plan ok", "scout ok", "clerk ok", "sum_up ok"}) {
		t.Fatalf("got %v, %q, %d plans", err, called(res), boss.asked)
	}
	res, err = a.Resume(t.Context(), res, llm.User("And now?"))
	if err != nil || boss.asked != 1 || !slices.Equal(called(res), []string{"make_plan ok", "clerk ok"}) || res.Text() != "3" {
		t.Errorf("the next task: %v, %q, %d plans", err, called(res), boss.asked)
	}
	if got := clerk.Requests()[1].Messages[1].Text(); !strings.Contains(got, "And now?") || strings.Contains(got, "Go.") {
		t.Errorf("the clerk's second task: %s", got)
	}
	if got := boss.Requests()[1].Messages[1].Text(); !strings.Contains(got, "user: Go.\nassistant: Done.") {
		t.Errorf("the lead planned without what was said before: %s", got)
	}
	_, err = a.Resume(t.Context(), given(strings.Replace(twoPhases, "clerk", "clark", 1)), llm.User("Go."))
	if err == nil || !strings.Contains(err.Error(), `phase 2: there is no worker "clark"; did you mean clerk?`) {
		t.Errorf("got %v", err)
	}
}

// The answer is held to the lead's output, or to the output of Into.
func TestOutput(t *testing.T) {
	type answer struct {
		Active int `json:"active"`
	}
	boss := lead(`{"active":3}`, `{"phases":[{"worker":"clerk","goals":"Count."}]}`)
	a := strategic(t, boss, nil, worker("clerk", script.New(script.Say("There are three."))))
	got, res, err := pawl.Into[answer](t.Context(), a, llm.User("How many?"))
	if err != nil || got.Active != 3 {
		t.Errorf("got %+v, %v (%v)", got, err, res)
	}
}

// A faulty team is an error when it is made.
func TestMistakes(t *testing.T) {
	m := script.New()
	boss := &pawl.Agent{Name: "desk", Model: m}
	clerk := worker("clerk", m)
	for _, tt := range []struct {
		make func() (*pawl.Agent, error)
		want string
	}{
		{func() (*pawl.Agent, error) { return team.Strategic(nil, nil, clerk) }, "team: there is no lead"},
		{func() (*pawl.Agent, error) { return team.Strategic(&pawl.Agent{}, nil, clerk) }, "team: the lead has no model"},
		{func() (*pawl.Agent, error) {
			return team.Script(&pawl.Agent{Model: m, Tools: []pawl.Toolset{search()}}, nil, clerk)
		}, "team team: the lead of such a team calls no tools of its own; give them to a worker, or make it a Network"},
		{func() (*pawl.Agent, error) { return team.Strategic(boss, nil) }, "team desk: there is no worker"},
		{func() (*pawl.Agent, error) { return team.Strategic(boss, nil, clerk, clerk) }, "team desk: the name clerk is taken; rename the worker"},
		{func() (*pawl.Agent, error) { return team.Strategic(boss, nil, worker("make_plan", m)) }, "team desk: the name make_plan is taken; rename the worker"},
		{func() (*pawl.Agent, error) { return team.Network(boss, team.Worker{}) }, "team desk: worker 1 is no agent"},
		{func() (*pawl.Agent, error) { return team.Network(boss, team.Worker{Agent: &pawl.Agent{Model: m}}) }, "team desk: worker 1 has no name"},
		{func() (*pawl.Agent, error) { return team.Network(boss, team.Worker{Agent: &pawl.Agent{Name: "x"}}) }, "team desk: worker x has no model"},
		{func() (*pawl.Agent, error) { return team.Network(boss, team.Worker{Agent: boss}) }, "team desk: the lead is among its own workers"},
		{func() (*pawl.Agent, error) {
			return team.Router(boss, &team.RouterOptions{Rules: []team.Rule{{Worker: "clark"}}}, clerk)
		}, `team desk: rule 1: there is no worker "clark"; did you mean clerk?`},
		{func() (*pawl.Agent, error) { return team.Router(boss, &team.RouterOptions{Default: "x"}, clerk) }, `team desk: default: there is no worker "x"; there are: clerk`},
	} {
		if a, err := tt.make(); a != nil || err == nil || err.Error() != tt.want {
			t.Errorf("got %v, %v; want %s", a, err, tt.want)
		}
	}
}

// ParsePlan reads the plans of people and of other programs, and reports their faults.
func TestParsePlan(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"phases":[{"worker":"a","goals":"G"}]}`, ""},
		{`{"steps":[{"worker":"a","goals":"G","by":"x"}],"task_type":"t"}`, ""},
		{`{"plan":{"phases":[{"worker":"a","goals":"G"}]}}`, ""},
		{`{}`, "plan: there are no phases in it"},
		{`[]`, "plan: json: cannot unmarshal array"},
		{`{"phases":[{"worker":"alpha","goals":"G"}]}`, `plan: phase 1: there is no worker "alpha"; there are: a, beta`},
		{`{"phases":[{"worker":"a","goals":" "}]}`, "plan: phase 1: it has no goals"},
		{`{"phases":[` + strings.Repeat(`{"worker":"a","goals":"G"},`, 12) + `{"worker":"a","goals":"G"}]}`, "plan: it has 13 phases; 12 are the most"},
	} {
		p, err := team.ParsePlan([]byte(tt.text), "a", "beta")
		if tt.want == "" && (err != nil || len(p.Phases) != 1) || tt.want != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%s: got %+v, %v; want %q", tt.text, p, err, tt.want)
		}
	}
}

// Cancellation during a phase reaches the active worker, and no phase follows.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	hold := &pawl.Tool{Name: "hold", Description: "Waits.", Effect: pawl.EffectRead,
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			cancel(pawl.ErrCancelled)
			<-ctx.Done()
			return llm.ToolResult{}, context.Cause(ctx)
		}}
	scout, clerk := script.New(script.Call("hold", `{}`), script.Say("x")), script.New(script.Say("y"))
	boss := strategic(t, lead("Done.", twoPhases), nil, worker("scout", scout, hold), worker("clerk", clerk))
	res, err := runtest.Ended(boss.Run(ctx, llm.User("Go.")))
	if err != nil || res.Stop != pawl.StopCancelled || len(clerk.Requests()) != 0 || len(scout.Requests()) != 1 {
		t.Errorf("got %v, %s; %d and %d requests", err, res.Stop, len(scout.Requests()), len(clerk.Requests()))
	}
	if last := res.Messages[len(res.Messages)-1]; last.Role != llm.RoleTool {
		t.Errorf("the call of the scout is open: the last message is %s", last.Role)
	}
}
