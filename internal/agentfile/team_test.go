package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// played runs the only lead of a file against a simulator that plays m for all models. It returns
// the calls of its steps, the answer and the received requests.
func played(t *testing.T, dir string, m *script.Model, task string) (calls, answer, received string) {
	t.Helper()
	sim, err := pawltest.NewSimulator(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	getenv := func(name string) string {
		return map[string]string{"OPENAI_BASE_URL": sim.URL, "OPENAI_API_KEY": "k"}[name]
	}
	f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	if wrong := a.Check(t.Context(), &agentfile.Options{Getenv: getenv}); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	t.Setenv("OPENAI_BASE_URL", sim.URL)
	t.Setenv("OPENAI_API_KEY", "k")
	built, err := a.Build(t.Context(), &agentfile.Options{Commands: echo})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	res, err := built.Agent.Run(t.Context(), llm.User(task))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			names = append(names, x.Call.Name+" "+string(x.Outcome))
		}
	}
	var bodies strings.Builder
	for _, r := range sim.Received() {
		bodies.Write(r.Body)
		bodies.WriteByte('\n')
	}
	return strings.Join(names, ", "), res.Text(), bodies.String()
}

// by answers the last words of the user: pairs of a text and its answer, then an answer to all
// else.
func by(pairs ...string) *script.Model {
	var turns []script.Turn
	for i := 0; i+1 < len(pairs); i += 2 {
		turns = append(turns, script.Expect(script.Say(pairs[i+1]), script.Asked(pairs[i])))
	}
	return script.New(script.First(append(turns, script.Say(pairs[len(pairs)-1]))...))
}

const (
	planOne   = `{"phases":[{"worker":"one","goals":"Do it well."},{"worker":"two","goals":"Check it."}]}`
	scriptOne = `{"script":[{"worker":"one","execution_mode":"direct","tool_name":"search","args":{"q":1}},{"worker":"two","execution_mode":"guided","notes":"Check it."}]}`
)

// teamRows are ways to lead, in the native form and in agent.framework/v2.
var teamRows = []struct {
	name, native, framework string
	model                   func() *script.Model
	calls, answer           string
	received                []string
}{
	{"strategic", "{workers: [one, {agent: two, description: Checks.}], on_failure: replan, prompt: Plan well.}",
		"{type: StrategicPlanner, config: {inference_gateway: llm, planning_prompt: Plan well.}}",
		func() *script.Model { return by("gave:\n## Do", "Summed up.", "Do it", "Done.", planOne) },
		"make_plan ok, one ok, two ok, sum_up ok", "Summed up.", []string{`STRATEGIC PLAN:\n{\n  \"phases\"`, "Plan well.", "Your workers:"}},
	{"strategic, below", "{manager: strategic, workers: [one, two], max_phases: 3}", "{type: StrategicDecomposerPlanner, config: {inference_gateway: llm}}",
		func() *script.Model { return by("gave:\n## Do", "Summed up.", "Do it", "Done.", planOne) },
		"make_plan ok, one ok, two ok, sum_up ok", "Summed up.", nil},
	{"router, by a rule", "{manager: router, workers: [one, two], rules: [{worker: two, include: [pay]}], default: one}",
		"{type: WorkerRouterPlanner, config: {inference_gateway: llm, rules: [{worker: two, include: [pay]}], default_worker: one}}",
		func() *script.Model { return by("Paid.") }, "two ok", "Paid.", nil},
	{"router, by the model", "{manager: router, workers: [one, two]}", "{type: WorkerRouterPlanner, config: {inference_gateway: llm, worker_keys: [one, two]}}",
		func() *script.Model {
			return script.New(script.Func(func(req *llm.Request) script.Turn {
				if req.Output != nil {
					return script.Say(`{"worker":"two"}`)
				}
				return script.Say("Paid.")
			}))
		}, "choose_worker ok, two ok", "Paid.", nil},
	{"script", "{manager: script, workers: [{agent: one, tools: [search]}, two]}", "{type: ManagerScriptPlanner, config: {inference_gateway: llm, worker_specs: [{worker: one, description: Looks., tools: [search]}]}}",
		func() *script.Model {
			return by("gave:\n## search", "Summed up.", "1. Check it.", "Checked.", scriptOne)
		},
		"write_script ok, one ok, two ok, sum_up ok", "Summed up.", []string{`{\"q\":1}`, "search: Searches."}},
}

// Every way to lead builds and runs, in both forms.
func TestTeams(t *testing.T) {
	worker := func(name string) string {
		return "agent: " + name + "\nmodel: openai:sim\ninstructions: You are " + name + ".\ntools: [{command: {name: search, description: Searches., run: [cat], effect: read, input: {type: object, properties: {q: {type: integer}}}}}]\n"
	}
	for _, row := range teamRows {
		for form, text := range map[string]string{
			"native": "agent: lead\nmodel: openai:sim\nteam: " + row.native + "\n---\n" + worker("one") + "---\n" + worker("two"),
			"agent.framework": "apiVersion: agent.framework/v2\nkind: ManagerAgent\nmetadata: {name: lead}\nresources: {inference_gateways: [{name: llm, type: OpenAIGateway, config: {model: sim}}]}\n" +
				"spec:\n  workers: [{name: one, config_path: one.yaml}, {name: two, config_path: two.yaml}]\n  planner: " + row.framework + "\n",
		} {
			t.Run(row.name+"/"+form, func(t *testing.T) {
				dir := t.TempDir()
				for name, text := range map[string]string{"agent.yaml": text, "one.yaml": worker("first"), "two.yaml": worker("second")} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				calls, answer, received := played(t, dir, row.model(), "Please pay.")
				if calls != row.calls || answer != row.answer {
					t.Errorf("got %s: %q; want %s: %q", calls, answer, row.calls, row.answer)
				}
				for _, part := range row.received {
					if !strings.Contains(received, part) && !strings.Contains(received, strings.ReplaceAll(part, `\"`, `\\\"`)) {
						t.Errorf("no request has %q:\n%s", part, received)
					}
				}
			})
		}
	}
}

// The lead of a network has its own tools and its workers, which may be in other files and lead
// others.
func TestNetworkOfFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agent.yaml":    "agent: lead\nmodel: openai:sim\ntools: [data, plan]\napprove: {ask: [desk]}\ntool_choice: desk\nteam: {manager: network, workers: [{file: sub/desk.yaml}]}\n",
		"sub/desk.yaml": "agent: desk\nmodel: openai:sim\nteam: {manager: router, rules: [{worker: clerk}], workers: [clerk]}\n---\nagent: clerk\nmodel: openai:sim\ntools: [file]\nroot: .\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Getenv: environment, Dry: true})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	var own, within []string
	for _, tool := range built.Tools {
		own = append(own, tool.Name)
	}
	for _, tool := range built.Within {
		within = append(within, tool.Name)
	}
	if diff := cmp.Diff(own, []string{"data_parse", "data_filter", "data_aggregate", "data_transform", "execute_plan", "desk"}); diff != "" {
		t.Errorf("offered, got -, want +\n%s", diff)
	}
	if got := strings.Join(within, " "); !strings.Contains(got, "clerk") || !strings.Contains(got, "file_read") {
		t.Errorf("within: %s", got)
	}
	if got := built.Agent.Choice; len(got.Names) != 1 || got.Names[0] != "desk" {
		t.Errorf("the choice is %+v", got)
	}
}

// Rules of a lead apply to its workers and to its own questions. With all else denied, an allowed
// team works; without a permission, the answer names the denial.
func TestTeamRules(t *testing.T) {
	for _, tt := range []struct{ allow, calls string }{
		{"[make_plan, sum_up, one, two]", "make_plan ok, one ok, two ok, sum_up ok"},
		{"[make_plan, one, two]", "no answer: Denied"},
		{"[one, two]", "no plan: Denied"},
	} {
		f := parse(t, "agent: lead\nmodel: openai:sim\napprove: {else: deny, allow: "+tt.allow+"}\nteam: {workers: [one, two]}\n---\nagent: one\nmodel: openai:sim\n---\nagent: two\nmodel: openai:sim\n")
		sim, err := pawltest.NewSimulator(by("gave:\n## Do", "Summed up.", "Do it", "Done.", planOne), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		t.Setenv("OPENAI_BASE_URL", sim.URL)
		t.Setenv("OPENAI_API_KEY", "k")
		built, err := f.Agents[0].Build(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer built.Close()
		res, err := built.Agent.Run(t.Context(), llm.User("Go."))
		var got []string
		for _, s := range res.Steps {
			for _, x := range s.Executions {
				got = append(got, x.Call.Name+" "+string(x.Outcome))
			}
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if !strings.Contains(strings.Join(got, ", "), tt.calls) {
			t.Errorf("with %s: got %q, want %s", tt.allow, got, tt.calls)
		}
	}
}
