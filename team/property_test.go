package team_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

// For any plan of the lead and any failures of workers, a team ends: with the lead's answer or a
// *PhaseError, after no more work than its options allow, and with a result for each call. No phase
// begins before its predecessors are done.
func TestEveryTeamEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tries := rapid.IntRange(0, 3).Draw(t, "tries")
		policy := team.OnFailure(rapid.IntRange(int(team.Stop), int(team.Replan)).Draw(t, "policy"))
		var mu sync.Mutex
		plans := 0
		boss := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			if req.Output == nil {
				return script.Say("Done.")
			}
			mu.Lock()
			defer mu.Unlock()
			plans++
			if rapid.IntRange(0, 9).Draw(t, "garbage") == 0 {
				return script.Say(rapid.SampledFrom([]string{"", "{}", `{"phases":[]}`, `{"phases":[{"worker":"x","goals":"g"}]}`, "no"}).Draw(t, "words"))
			}
			var p team.Plan
			for i := range rapid.IntRange(1, 5).Draw(t, "phases") {
				p.Phases = append(p.Phases, team.Phase{Worker: rapid.SampledFrom([]string{"a", "b"}).Draw(t,
					"worker"), Goals: fmt.Sprintf("goal %d of plan %d", i, plans), Parallel: rapid.Bool().Draw(t, "parallel")})
			}
			b, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			return script.Say(string(b))
		})))
		work := func(name string) team.Worker {
			return worker(name, script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
				mu.Lock()
				defer mu.Unlock()
				if rapid.IntRange(0, 3).Draw(t, name) == 0 {
					return script.Fail(errors.New("down"))
				}
				return script.Say("done by " + name)
			}))))
		}
		a, err := team.Strategic(&pawl.Agent{Name: "desk", Model: boss, Parallel: pawl.Parallel{Limit: 1}},
			&team.Options{OnFailure: policy, Tries: tries}, work("a"), work("b"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := a.Run(t.Context(), llm.User("Go."))
		failed := (*team.PhaseError)(nil)
		if err == nil && (res.Stop != pawl.StopAnswer || res.Text() == "") || err != nil && !errors.As(err, &failed) {
			t.Fatalf("it ended as %s (%s): %v", res.Stop, res.Cause, err)
		}
		made, again := 0, map[string]int{}
		open := map[string]bool{} // phases that failed last, and must not be passed over
		for _, s := range res.Steps {
			for _, x := range s.Executions {
				switch x.Call.Name {
				case "make_plan":
					made++
					clear(open)
				case "sum_up":
					if len(open) > 0 {
						t.Fatalf("it was summed up with %v not done", open)
					}
				default:
					again[string(x.Call.Args)]++
					goal, _, _ := strings.Cut(string(x.Call.Args), `\n`)
					if open[goal] = x.Result.IsError; !open[goal] {
						delete(open, goal)
					}
				}
			}
		}
		most := max(tries, 1)
		for args, n := range again {
			if policy != team.Retry && n > 1 || n > 1+most {
				t.Fatalf("%s was given %d times", args, n)
			}
		}
		if policy != team.Replan && made > 1 || policy == team.Replan && made > 1+max(tries, 2) {
			t.Fatalf("%d plans were made", made)
		}
		for i, m := range res.Messages {
			if n := len(m.Calls()); n > 0 && (i+1 == len(res.Messages) || len(res.Messages[i+1].Parts) != n) {
				t.Fatalf("message %d has %d calls that are not all answered", i, n)
			}
		}
	})
}

// No text makes ParsePlan panic, and an accepted plan names existing workers.
func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{twoPhases, `{"steps":[{"worker":"scout","goals":"g"}]}`, `{"plan":{"phases":null}}`, `[]`, `{"phases":[{"worker":1}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := team.ParsePlan(text, "scout", "clerk")
		if err != nil {
			return
		}
		for _, ph := range p.Phases {
			if ph.Worker != "scout" && ph.Worker != "clerk" || ph.Goals == "" {
				t.Errorf("it took %+v", ph)
			}
		}
		if len(p.Phases) == 0 {
			t.Error("it took a plan without phases")
		}
	})
}
