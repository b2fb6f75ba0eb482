package eval_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/eval"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store/sqlite"
)

// hasty returns a provider whose model pays an invoice twice, unless its instructions say that it
// pays once.
func hasty(t *testing.T) string {
	t.Helper()
	isTold := func(req *llm.Request) string {
		if strings.Contains(req.Messages[0].Text(), "Pay once.") {
			return ""
		}
		return "the instructions do not say that it pays once"
	}
	once := script.Call("pay", json.RawMessage(`{"sum":70,"to":"Anna"}`))
	again := script.Call("pay", json.RawMessage(`{"sum":70,"to":"Anna Berg"}`))
	said := script.Say("Paid Anna 70.")
	sim, err := pawltest.NewSimulator(script.New(
		once,
		script.First(script.Expect(said, isTold), again),
		said,
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	return sim.URL
}

// bank returns a server that counts payments.
func bank(t *testing.T) (url string, payments *atomic.Int64) {
	t.Helper()
	payments = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments.Add(1)
		w.Write([]byte("payment accepted"))
	}))
	t.Cleanup(server.Close)
	return server.URL, payments
}

// production are the files of an agent that pays by a request to a bank, and of a suite for it with
// another case.
func production(provider, bank string) map[string]string {
	return map[string]string{
		"clerk.yaml": `agent: clerk
model: {name: "openai:sim", base_url: "` + provider + `", key_env: SIM_KEY}
instructions: You pay invoices.
http_allow: ["` + strings.TrimPrefix(bank, "http://") + `"]
tools:
  - http: {name: pay, description: Pays., method: POST, url: "` + bank + `/pay", body: {sum: "{sum}", to: "{to}"},
      input: {type: object, required: [sum, to], properties: {sum: {type: number}, to: {type: string}}}}
  - http: {name: cancel, description: Cancels., method: POST, url: "` + bank + `/cancel"}
`,
		"s.eval.yaml": `eval: s
agent: clerk.yaml
trials: 3
# The cases.
cases:
  - id: greets
    input: Pay Anna 70.
    world: {tools: {pay: [{result: paid}], cancel: [{result: done}]}}
    answers: [{tool: pay, do: approve}]
    checks: [{answer: {contains: Paid}}, {calls: {count: {pay: {min: 1}}}}]
`,
	}
}

func getenv(name string) string {
	if name == "SIM_KEY" {
		return "test-key"
	}
	return ""
}

// produced runs the agent of a folder as a durable run, with the approval of all calls, and returns
// the run.
func produced(t *testing.T, dir, input string) *eval.StoredRun {
	t.Helper()
	file, err := config.Load(filepath.Join(dir, "clerk.yaml"), &config.Options{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	built, err := file.Build(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	engine := &durable.Engine{Journal: db}

	msgs := []llm.Message{llm.User(input)}
	for {
		res, err := engine.Runner("invoice-7", built.Agent).Run(t.Context(), msgs...)
		if res == nil {
			t.Fatal(err)
		}
		if res.Stop != pawl.StopPending {
			break
		}
		msgs = nil
		for _, q := range res.Pending {
			msgs = append(msgs, llm.DecisionMessage(q.Approve("alice")))
		}
	}
	x, err := engine.Export(t.Context(), "invoice-7")
	if err != nil {
		t.Fatal(err)
	}
	effects, err := engine.Effects(context.Background(), "invoice-7")
	if err != nil {
		t.Fatal(err)
	}
	return &eval.StoredRun{ID: "invoice-7", Export: x, Effects: effects}
}

// loadEnv reads the suite of a folder, with the key of the provider.
func loadEnv(t *testing.T, dir string) *eval.Suite {
	t.Helper()
	s, err := eval.Load(filepath.Join(dir, "s.eval.yaml"), &eval.LoadOptions{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runEnv runs the suite of a folder, and returns its report and its text.
func runEnv(t *testing.T, dir string, o *eval.Options) (*eval.Report, string) {
	t.Helper()
	o.Dir = filepath.Join(dir, "evals")
	r, err := eval.Run(t.Context(), loadEnv(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	return r, text.String()
}

// change replaces a text in a file of a folder.
func change(t *testing.T, dir, name, from, to string) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q:\n%s", name, from, text)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFromProduction follows a failure from production to a gate: a run that paid twice becomes a
// case, the agent fails it, and a changed instruction passes it.
func TestFromProduction(t *testing.T) {
	t.Parallel()
	address, payments := bank(t)
	dir := folder(t, production(hasty(t), address))
	run := produced(t, dir, "Pay the invoice of Anna.")
	if payments.Load() != 2 {
		t.Fatalf("the run in production paid %d times, want 2", payments.Load())
	}
	base := filepath.Join(dir, "base.json")

	// The suite does not see the fault: this is the gap that the case closes.
	if r, text := runEnv(t, dir, &eval.Options{}); r.Status() != 0 {
		t.Fatalf("before: status %d\n%s", r.Status(), text)
	}
	added, err := eval.Add(t.Context(), filepath.Join(dir, "s.eval.yaml"), run, &eval.AddOptions{
		Want:   []string{`pay={"sum":70,"to":{"$contains":"Anna"}}`},
		Getenv: getenv,
	})
	if err != nil {
		t.Fatal(err)
	}
	if added.Draft || len(added.Failed) == 0 || !strings.Contains(added.Failed[0], "Anna Berg") {
		t.Fatalf("got %+v, want a case that the run fails", added)
	}

	// The present agent fails the case, and the gate says so.
	red, text := runEnv(t, dir, &eval.Options{})
	if red.Status() != 1 || !strings.Contains(text, "gate: case invoice-7 (now): 0/3, want 1") {
		t.Errorf("the old instructions: status %d\n%s", red.Status(), text)
	}
	before, err := red.Baseline()
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Write(base); err != nil {
		t.Fatal(err)
	}

	// A changed instruction passes it. The gate shows both.
	change(t, dir, "clerk.yaml", "You pay invoices.", "You pay invoices. Pay once.")
	green, text := runEnv(t, dir, &eval.Options{Baseline: base})
	for _, want := range []string{"invoice-7  3/3", "changed: invoice-7 (now): 3/3, was 0/3", "passed: "} {
		if green.Status() != 0 || !strings.Contains(text, want) {
			t.Errorf("the new instructions: status %d, want %q\n%s", green.Status(), want, text)
		}
	}

	// Back to the old one: what passed in the baseline fails newly.
	after, err := green.Baseline()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Write(base); err != nil {
		t.Fatal(err)
	}
	change(t, dir, "clerk.yaml", " Pay once.", "")
	again, text := runEnv(t, dir, &eval.Options{Baseline: base})
	if again.Status() != 1 || !strings.Contains(text, "gate: newly failing (now): 1, want at most 0 [invoice-7]") {
		t.Errorf("the old instructions again: status %d\n%s", again.Status(), text)
	}
	if payments.Load() != 2 {
		t.Errorf("the evals paid %d times, want 0", payments.Load()-2)
	}
}

// TestAdd makes cases of one run by what a person says.
func TestAdd(t *testing.T) {
	t.Parallel()
	address, _ := bank(t)
	source := production(hasty(t), address)
	dir := folder(t, source)
	run := produced(t, dir, "Pay the invoice of Anna.")

	for _, row := range []struct {
		name  string
		o     eval.AddOptions
		draft bool
		fault string // of Add
		text  string // in the file of the case
	}{
		{"nothing is stated", eval.AddOptions{}, true, "", "draft: true"},
		{"the run passes", eval.AddOptions{WantAnswer: []string{"paid anna 70"}}, true, "", "draft: true"},
		{"a key", eval.AddOptions{Forbid: []string{"run/1/0"}}, false, "", "to: Anna"},
		{"another key", eval.AddOptions{Forbid: []string{"run/9/0"}}, false, "the run has no call run/9/0; it has run/1/0, run/2/0", ""},
		{"a pattern", eval.AddOptions{Forbid: []string{"pa*"}}, false, "", "- pa*"},
		{"no arguments", eval.AddOptions{Forbid: []string{"cancel={}"}, WantAnswer: []string{"refused"}}, false, "", "args: {}"},
		{"an answer", eval.AddOptions{WantAnswer: []string{"refused"}}, false, "", "fold: true"},
		{"a tool that is not there", eval.AddOptions{Want: []string{"refund"}}, false, "lacks it", ""},
		{"wrong arguments", eval.AddOptions{Want: []string{`pay={"sum":{"$nearly":1}}`}}, false, "there is no operator $nearly", ""},
		{"a wanted call", eval.AddOptions{Want: []string{`pay={"sum":7,"to":"Anna"}`}}, false, "", "result: payment accepted"},
		{"good", eval.AddOptions{Good: true}, false, "", "reference:"},
		{"good and not", eval.AddOptions{Good: true, Want: []string{"pay"}}, false, "say either", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, source)
			row.o.Getenv = getenv
			suite := filepath.Join(dir, "s.eval.yaml")
			added, err := eval.Add(t.Context(), suite, run, &row.o)
			if row.fault != "" {
				text, readErr := os.ReadFile(suite)
				_, statErr := os.Stat(filepath.Join(dir, "cases"))
				isUnchanged := readErr == nil && string(text) == source["s.eval.yaml"] && statErr != nil
				if err == nil || !strings.Contains(err.Error(), row.fault) || !isUnchanged {
					t.Errorf("got %v, %v, want %q and unchanged files", added, err, row.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(added.File)
			if err != nil || added.Draft != row.draft || !strings.Contains(string(text), row.text) {
				t.Errorf("draft %v, want %v, and %q in %v\n%s", added.Draft, row.draft, row.text, err, text)
			}

			// What was written is read again, and each of its checks can fail.
			s := loadEnv(t, dir)
			if _, err := s.Check(t.Context(), false); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			if got := s.Cases(); len(got) != 2 {
				t.Errorf("the suite has the cases %v, want two", got)
			}
			if _, err := eval.Add(t.Context(), suite, run, &row.o); err == nil || !strings.Contains(err.Error(), "another name") {
				t.Errorf("a second time: got %v", err)
			}
		})
	}
}

// TestAddSecret makes a case of a run with a secret: it is not in the file, and the same call fits.
func TestAddSecret(t *testing.T) {
	t.Parallel()
	address, _ := bank(t)
	dir := folder(t, production(hasty(t), address))
	run := produced(t, dir, "Pay the invoice of Anna.")
	hide := new(redact.Redactor)
	if err := hide.Add("Anna Berg"); err != nil {
		t.Fatal(err)
	}
	run.Export = run.Export.Redacted(hide)
	added, err := eval.Add(t.Context(), filepath.Join(dir, "s.eval.yaml"), run, &eval.AddOptions{Good: true, Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	if text := read(t, added.File); strings.Contains(text, "Berg") || !strings.Contains(text, "$any: true") {
		t.Errorf("got\n%s", text)
	}
	if r, text := runEnv(t, dir, &eval.Options{Only: "invoice-7"}); r.Status() != 0 {
		t.Errorf("status %d\n%s", r.Status(), text)
	}
}

// TestAddResult makes a case of a Result, whose last messages are of the run. Texts that a suite
// would read as variables and operators stay what they are.
func TestAddResult(t *testing.T) {
	t.Parallel()
	address, _ := bank(t)
	dir := folder(t, production(hasty(t), address))
	first := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Which one?"}}}
	call := llm.ToolCall{ID: "c1", Name: "pay", Args: json.RawMessage(`{"sum":7,"to":"${HOME}\ud83d\ude00"}`)}
	result := llm.TextResult("accepted ${HOME}")
	result.CallID = "c1"
	res := &pawl.Result{
		Messages: []llm.Message{
			llm.User("Pay."), first, llm.User("The one of ${NAME}, $5."),
			{Role: llm.RoleAssistant, Parts: []llm.Part{call}},
			{Role: llm.RoleTool, Parts: []llm.Part{result}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Done."}}},
		},
		Steps: []pawl.Step{
			{Response: &llm.Response{}, Executions: []pawl.Execution{{Key: "run/1/0", Call: call, Result: result,
				Outcome: pawl.OutcomeOK, Attempts: 1}}},
			{Response: &llm.Response{}},
		},
		Stop:   pawl.StopAnswer,
		Answer: &pawl.Answer{Text: "Done.", From: pawl.AnswerReply},
	}
	added, err := eval.Add(t.Context(), filepath.Join(dir, "s.eval.yaml"),
		&eval.StoredRun{ID: "saved", Export: eval.ResultExport(res)},
		&eval.AddOptions{Forbid: []string{"run/1/0"}, Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(added.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`$${HOME}\U0001F600`, "$${NAME}, $5.", "Which one?", "accepted $${HOME}"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the case lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "text: Done.") || added.Draft {
		t.Errorf("the case has messages of the run as its input:\n%s", text)
	}
	if _, err := loadEnv(t, dir).Check(t.Context(), false); err != nil {
		t.Error(err)
	}
}
