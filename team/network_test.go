package team_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/plan"
)

func network(t *testing.T, lead *pawl.Agent, workers ...team.Worker) *pawl.Agent {
	t.Helper()
	a, err := team.Network(lead, workers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The lead's model sees its own tools and its workers by name. Plans and code reach workers, too,
// in parallel.
func TestNetwork(t *testing.T) {
	boss := script.New(
		script.Together(script.Call("scout", `{"task":"Look."}`), script.Call("search_database", `{"query":"q"}`)),
		script.Call("execute_plan", `{"steps":[{"tool":"scout","args":{"task":"East."}},{"tool":"clerk","args":{"task":"West."}}]}`),
		script.Call("execute_code", `{"code":"set_result(call_tool(\"clerk\", {\"task\": \"North.\"}))"}`),
		script.Say("Done."))
	scout, clerk := script.New(script.Loop(script.Say("seen"))), script.New(script.Loop(script.Say("written")))
	runCode, err := code.New(code.Embedded(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := network(t, &pawl.Agent{Name: "desk", Model: boss, Tools: []pawl.Toolset{search(), plan.New(nil), runCode}},
		worker("scout", scout), worker("clerk", clerk))
	var keys []string
	var res *pawl.Result
	for e, err := range a.Stream(t.Context(), llm.User("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventRequestStarted && strings.Count(string(e.Path), "/") > 2 {
			keys = append(keys, string(e.Path))
		}
		if e.Kind == pawl.EventRunEnded && e.Run == "run" {
			res = e.Result
		}
	}
	if len(keys) != 4 || keys[0] != "run/1/0/scout/0/model" || !strings.HasPrefix(keys[1], "run/2/0/s") || keys[3] != "run/3/0/s0/clerk/0/model" {
		t.Errorf("requests of workers: %q", keys)
	}
	if diff := cmp.Diff(called(res), []string{"scout ok, search_database ok", "execute_plan ok", "execute_code ok"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if got := res.Steps[2].Executions[0].Result.Text(); !strings.Contains(got, "written") {
		t.Errorf("the code gave %s", got)
	}
	var offered []string
	for _, tool := range boss.Requests()[0].Tools {
		offered = append(offered, tool.Name)
	}
	if got := strings.Join(offered, " "); got != "search_database execute_plan execute_code clerk scout" {
		t.Errorf("offered: %s", got)
	}
}

// A task that a worker gets twice in one turn is done once. After a failure, and in the next turn,
// it is done again.
func TestIdenticalDelegations(t *testing.T) {
	boss := script.New(
		script.Together(script.Call("clerk", `{"task":"Count."}`), script.Call("clerk", `{"task":"Count."}`)),
		script.Call("clerk", `{ "task" : "Count." }`),
		script.Call("clerk", `{"task":"Count again."}`),
		script.Say("Done."),
		script.Call("clerk", `{"task":"Count."}`),
		script.Say("Done."))
	clerk := script.New(script.Loop(script.Say("3")))
	a := network(t, &pawl.Agent{Name: "desk", Model: boss}, worker("clerk", clerk))
	res, err := a.Run(t.Context(), llm.User("Go."))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(clerk.Requests()); n != 2 {
		t.Errorf("the clerk worked %d times, want 2", n)
	}
	var got []string
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			got = append(got, x.Result.Text())
			if x.Cached != (len(got) == 2 || len(got) == 3) {
				t.Errorf("call %d: cached is %t", len(got), x.Cached)
			}
		}
	}
	if diff := cmp.Diff(got, []string{"3", "The same task is in call call_1_0, and is done once: its result is there.", "3", "3"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if _, err := a.Resume(t.Context(), res, llm.User("Once more.")); err != nil || len(clerk.Requests()) != 3 {
		t.Errorf("in the next turn: %v, %d times", err, len(clerk.Requests()))
	}
	boss = script.New(script.Call("scout", `{"task":"Look."}`), script.Call("scout", `{"task":"Look."}`), script.Say("Done."))
	res, err = network(t, &pawl.Agent{Model: boss}, worker("scout", fails(1, "seen"))).Run(t.Context(), llm.User("Go."))
	if err != nil || strings.Join(called(res), "; ") != "scout error; scout ok" {
		t.Errorf("after a failure: %v, %q", err, called(res))
	}
}

// If the lead's answer is empty, the answer is the last text of the worker.
func TestSilentLead(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		boss := script.New(script.Call("clerk", `{"task":"Count."}`), script.Call("search_database", `{"query":"q"}`), script.Turn{Finish: llm.FinishReasonStop})
		a := network(t, &pawl.Agent{Model: boss, Tools: []pawl.Toolset{search()}}, worker("clerk", script.New(script.Say("3"))))
		var res *pawl.Result
		var err error
		if streamed {
			for e, failed := range a.Stream(t.Context(), llm.User("Go.")) {
				if err = failed; e.Kind == pawl.EventRunEnded && e.Run == "run" {
					res = e.Result
				}
			}
		} else {
			res, err = a.Run(t.Context(), llm.User("Go."))
		}
		if err != nil || res.Text() != "3" {
			t.Errorf("streamed %t: got %q, %v", streamed, res.Text(), err)
		}
	}
}

// Teams that lead each other end: the call that is nested too deep returns an error, and every
// agent can continue.
func TestCircle(t *testing.T) {
	again := new(pawl.Registry)
	clerk := &pawl.Agent{Name: "clerk", Tools: []pawl.Toolset{again},
		Model: script.New(script.Call("desk", `{"task":"You do it."}`), script.Func(func(req *llm.Request) script.Turn {
			return script.Say("The desk says: " + script.Results(req)[0].Text())
		}))}
	desk := network(t, &pawl.Agent{Name: "desk",
		Model: script.New(script.Call("clerk", `{"task":"You do it."}`), script.Func(func(req *llm.Request) script.Turn {
			return script.Say("The clerk says: " + script.Results(req)[0].Text())
		}))}, team.Worker{Agent: clerk})
	if err := again.Add(desk.Tool("Does it.")); err != nil {
		t.Fatal(err)
	}
	res, err := desk.Run(t.Context(), llm.User("Do it."))
	want := "The clerk says: The desk says: The clerk says: The desk says: Not run: agents and calls are nested more than 3 deep."
	if err != nil || res.Text() != want {
		t.Errorf("got %q, %v; want %q", res.Text(), err, want)
	}
}

// One budget serves the whole team: parallel workers pass a limit on cost by at most one request.
func TestCostAcrossWorkers(t *testing.T) {
	price := catalog.Price{Output: 1e6} // a dollar a token
	reply := script.Turn{Parts: []llm.Part{llm.Text{Text: "x"}}, Usage: &llm.Usage{Output: 2}}
	many := script.New(script.Together(script.Call("a", `{"task":"t"}`), script.Call("b", `{"task":"t"}`),
		script.Call("c", `{"task":"t"}`), script.Call("d", `{"task":"t"}`)), script.Say("Done."))
	var workers []team.Worker
	for _, name := range []string{"a", "b", "c", "d"} {
		w := worker(name, price.Of(script.New(reply)))
		w.Agent.Settings.MaxTokens = 2
		workers = append(workers, w)
	}
	free := catalog.Price{}
	res, err := runtest.Ended(network(t, &pawl.Agent{Model: free.Of(many), Limits: pawl.Limits{Cost: 5}},
		workers...).Run(t.Context(), llm.User("Go.")))
	if err != nil || res.Stop != pawl.StopLimit || res.Spent.Usage.Cost != 6 {
		t.Errorf("got %v, %s for %s after $%.0f of 5, in requests of $2", err, res.Stop, res.Cause, res.Spent.Usage.Cost)
	}
	plan := `{"phases":[{"worker":"a","goals":"1"},{"worker":"b","goals":"2"},{"worker":"c","goals":"3"}]}`
	s, err := team.Strategic(&pawl.Agent{Model: free.Of(lead("Done.", plan).Model), Limits: pawl.Limits{Cost: 3}},
		nil, workers...)
	if err != nil {
		t.Fatal(err)
	}
	res, err = runtest.Ended(s.Run(t.Context(), llm.User("Go.")))
	if err != nil || res.Stop != pawl.StopLimit || res.Spent.Usage.Cost != 4 {
		t.Errorf("strategic: %v, %s for %s after $%.0f of 3", err, res.Stop, res.Cause, res.Spent.Usage.Cost)
	}
}

// A rule of the lead about a worker covers giving it work. A denial is a failed phase.
func TestApproval(t *testing.T) {
	ask := pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if c.Name == "clerk" {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "work costs"}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	clerk := script.New(script.Say("3"))
	a, err := team.Strategic(&pawl.Agent{Name: "desk", Model: lead("Three.", twoPhases),
		Middleware: []pawl.Middleware{ask}}, nil, worker("scout", script.New(script.Say("u1"))), worker("clerk", clerk))
	if err != nil {
		t.Fatal(err)
	}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("Go.")))
	if err != nil || res.Stop != pawl.StopPending || len(clerk.Requests()) != 0 {
		t.Fatalf("got %v, %s", err, res.Stop)
	}
	yes, no := res.Pending[0].Approve("ann"), res.Pending[0].Deny("ann", "too dear")
	fresh := *res // a Result is resumed once
	denied, err := a.Resume(t.Context(), &fresh, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{no}})
	if err == nil || denied.Stop != pawl.StopFailed || !strings.Contains(err.Error(), "too dear") {
		t.Errorf("denied: got %v", err)
	}
	res, err = a.Resume(t.Context(), res, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{yes}})
	if err != nil || res.Text() != "Three." {
		t.Errorf("approved: got %q, %v", res.Text(), err)
	}
}
