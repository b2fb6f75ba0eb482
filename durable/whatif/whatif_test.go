package whatif_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/whatif"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// desk is a place with a clerk who refunds orders, and what happened outside.
type desk struct {
	server *httptest.Server
	calls  atomic.Int64 // at the server
	asked  atomic.Int64 // requests to models
	db     *store.MemoryJournal
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{db: new(store.MemoryJournal)}
	d.server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { d.calls.Add(1) }))
	t.Cleanup(d.server.Close)
	return d
}

type order struct {
	Order  int `json:"order"`
	Amount int `json:"amount,omitempty"`
}

// outside returns a tool with an effect that calls the server.
func (d *desk) outside(name string, effect pawl.Effect, result func(order) string) *pawl.Tool {
	tool := pawl.Func(name, "At the desk: "+name+".", func(ctx context.Context, in order) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.server.URL, nil)
		if err != nil {
			return "", err
		}
		res, err := d.server.Client().Do(req)
		if err != nil {
			return "", err
		}
		return result(in), res.Body.Close()
	})
	tool.Effect = effect
	return tool
}

// model returns a model whose replies depend on the task and the results so far.
func (d *desk) model(next func(task string, results []llm.ToolResult) script.Turn) *script.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		d.asked.Add(1)
		task := ""
		var results []llm.ToolResult
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case llm.Text:
					if m.Role == llm.RoleUser && task == "" {
						task = p.Text
					}
				case llm.ToolResult:
					results = append(results, p)
				}
			}
		}
		return next(task, results)
	})))
}

// clerk returns the agent: it looks an order up, refunds it and says so. An order of the kind audit
// is shown to the auditor first.
func (d *desk) clerk(auditor string) *pawl.Agent {
	audit := &pawl.Agent{
		Name:         "auditor",
		Instructions: "Say what to refund. " + auditor,
		Model: d.model(func(task string, _ []llm.ToolResult) script.Turn {
			if auditor == "Be generous." {
				return script.Say("99")
			}
			return script.Say("30")
		}),
	}
	return &pawl.Agent{
		Name:         "clerk",
		Instructions: "Refund orders.",
		Model:        d.model(clerkTurn),
		Tools: []pawl.Toolset{
			d.outside("lookup", pawl.EffectRead, func(o order) string {
				return fmt.Sprintf("order %d is paid", o.Order)
			}),
			d.outside("refund", pawl.EffectWrite, func(o order) string {
				return fmt.Sprintf("refunded %d", o.Amount)
			}),
			audit.Tool("Asks the auditor."),
		},
	}
}

// clerkTurn is the next reply of the clerk.
func clerkTurn(task string, results []llm.ToolResult) script.Turn {
	var kind string
	var number, amount int
	if _, err := fmt.Sscanf(task, "%s order %d with %d", &kind, &number, &amount); err != nil {
		return script.Fail(err)
	}
	if kind == "audit" {
		switch len(results) {
		case 0:
			return script.Call("auditor", `{"task":"`+task+`"}`)
		case 1:
			return script.Call("refund", fmt.Sprintf(`{"order":%d,"amount":%s}`, number, results[0].Text()))
		}
		return script.Say("Done: " + results[1].Text())
	}
	switch len(results) {
	case 0:
		return script.Call("lookup", fmt.Sprintf(`{"order":%d}`, number))
	case 1:
		return script.Call("refund", fmt.Sprintf(`{"order":%d,"amount":%d}`, number, amount))
	case 2:
		if kind == "twice" {
			return script.Call("lookup", fmt.Sprintf(`{"order":%d}`, number))
		}
	}
	return script.Say("Done: " + results[1].Text())
}

// record executes a run for each task, and stores it.
func (d *desk) record(t *testing.T, agent *pawl.Agent, tasks map[string]string) {
	t.Helper()
	eng := &durable.Engine{Journal: d.db}
	for id, task := range tasks {
		if _, err := eng.Runner(id, agent).Run(t.Context(), llm.User(task)); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
}

// A thousand runs, of which 37 would differ: a rule denies 13 refunds, the auditor says another
// amount in 12, and a limit ends 12. Exactly these are found. The other runs ask no model, and
// nothing reaches the outside.
func TestThousandRuns(t *testing.T) {
	d := newDesk(t)
	tasks := map[string]string{}
	want := map[string]string{}
	runs := 1000
	if testing.Short() {
		runs = 270
	}
	for i := range runs {
		id := fmt.Sprintf("run-%04d", i)
		tasks[id] = fmt.Sprintf("refund order %d with %d", i, 1+i%400)
		if i%27 != 1 {
			continue
		}
		switch i / 27 % 3 {
		case 0:
			tasks[id] = fmt.Sprintf("refund order %d with %d", i, 500+i)
			want[id] = "refund fewer"
		case 1:
			tasks[id] = fmt.Sprintf("audit order %d with 30", i)
			want[id] = "refund other"
		case 2:
			tasks[id] = fmt.Sprintf("twice order %d with %d", i, 1+i%400)
			want[id] = "stop"
		}
	}
	before := d.clerk("")
	before.Limits.Rounds = 4
	d.record(t, before, tasks)
	calls := d.calls.Load()
	if calls < int64(runs) {
		t.Fatalf("the outside counter has %d calls: it does not see them", calls)
	}

	after := d.clerk("Be generous.")
	after.Limits.Rounds = 3
	after.Middleware = []pawl.Middleware{policy.Rules{
		Deny:    []string{"refund(amount > 400)"},
		Default: pawl.VerdictAllow,
	}.Middleware()}
	d.asked.Store(0)
	trial := &whatif.Trial{Journal: d.db, Change: whatif.Change{All: true}}
	var sum whatif.Summary
	requests := 0
	for id := range tasks {
		run, err := trial.Replay(t.Context(), id, after)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(run)
		requests += run.Asked
		if run.Verdict == whatif.Same && run.Asked > 0 {
			t.Errorf("%s is the same, and asked %d requests", id, run.Asked)
		}
		if got := kindOf(run); got != want[id] {
			t.Errorf("%s (%s): got %q, want %q: %+v", id, tasks[id], got, want[id], run)
		}
	}
	if !testing.Short() && (sum.Same != 963 || sum.Differ != 37) {
		t.Errorf("got %d same, %d differ, want 963 and 37", sum.Same, sum.Differ)
	}
	if sum.Same != runs-len(want) || sum.Differ != len(want) || sum.Unknown != 0 {
		t.Errorf("got %d same, %d differ, %d unknown", sum.Same, sum.Differ, sum.Unknown)
	}
	if got := d.calls.Load(); got != calls {
		t.Errorf("%d calls went out", got-calls)
	}
	if got := int(d.asked.Load()); got != requests || got != sum.Asked || got == 0 {
		t.Errorf("the models had %d requests, the runs say %d, the summary %d", got, requests, sum.Asked)
	}

	amount := whatif.Amount{Argument: "amount"}
	for _, w := range sum.Writes {
		for _, a := range w.Amounts {
			if a.Argument == "amount" {
				amount = a
			}
		}
	}
	planted := map[string]int{}
	for _, kind := range want {
		planted[kind]++
	}
	if amount.Higher != planted["refund other"] || amount.Lower != planted["refund fewer"] {
		t.Errorf("amounts: got %+v, want those of %v", amount, planted)
	}

	// Offline, the same runs are the same, and nothing is asked.
	d.asked.Store(0)
	trial.Offline = true
	sum = whatif.Summary{}
	for id := range tasks {
		run, err := trial.Replay(t.Context(), id, after)
		if err != nil {
			t.Fatal(err)
		}
		if same := run.Verdict == whatif.Same; same != (want[id] == "") {
			t.Errorf("offline, %s: %s", id, run.Verdict)
		}
		sum.Add(run)
	}
	if d.asked.Load() != 0 || d.calls.Load() != calls || sum.Cost != 0 {
		t.Errorf("offline: %d requests, %d calls", d.asked.Load(), d.calls.Load()-calls)
	}
}

// kindOf says in a word how a run differs.
func kindOf(r *whatif.Run) string {
	for _, c := range r.Changes {
		switch {
		case c.What == whatif.ChangedWrite && c.Is == nil:
			return c.Tool + " fewer"
		case c.What == whatif.ChangedWrite && c.Was == nil:
			return c.Tool + " more"
		case c.What == whatif.ChangedWrite:
			return c.Tool + " other"
		}
	}
	rest := []string{whatif.ChangedQuestion, whatif.ChangedStop, whatif.ChangedCall, whatif.ChangedAnswer}
	for _, what := range rest {
		for _, c := range r.Changes {
			if c.What == what {
				return what
			}
		}
	}
	if r.Verdict == whatif.Unknown {
		return "unknown"
	}
	return ""
}

// A leak is planted: the tools of the agent are in the run. The replay stops before the call.
func TestLeakIsCaught(t *testing.T) {
	d := newDesk(t)
	agent := d.clerk("")
	d.record(t, agent, map[string]string{"a": "refund order 1 with 30"})
	calls := d.calls.Load()

	trial := &whatif.Trial{Journal: d.db, Change: whatif.Change{Rules: true}}
	if run, err := trial.Replay(t.Context(), "a", agent); err != nil || run.Verdict != whatif.Same {
		t.Fatalf("without a leak: %+v, %v", run, err)
	}
	trial.Leak()
	if _, err := trial.Replay(t.Context(), "a", agent); !errors.Is(err, whatif.ErrLeak) {
		t.Errorf("got %v, want ErrLeak", err)
	}
	if got := d.calls.Load() - calls; got != 0 {
		t.Errorf("%d calls went out", got)
	}
}

// Each change is found where it begins, and says what it is.
func TestChanges(t *testing.T) {
	said := func(text string) func(string, []llm.ToolResult) script.Turn {
		return func(task string, results []llm.ToolResult) script.Turn {
			next := clerkTurn(task, results)
			if len(results) == 2 {
				return script.Say(text)
			}
			return next
		}
	}
	extra := func(d *desk) pawl.Toolset {
		return d.outside("notify", pawl.EffectWrite, func(order) string { return "sent" })
	}
	for _, row := range []struct {
		name    string
		change  whatif.Change
		edit    func(d *desk, a *pawl.Agent)
		offline bool
		verdict string // of kindOf
		cause   string
		stopped string
		asked   int
		shadows int
	}{
		{name: "nothing"},
		{
			name: "what is not named stays as it was",
			edit: func(d *desk, a *pawl.Agent) {
				a.Instructions = "Other."
				a.Tools = append(a.Tools, extra(d))
			},
		},
		{
			name:   "instructions",
			change: whatif.Change{Instructions: true},
			edit:   func(_ *desk, a *pawl.Agent) { a.Instructions = "Refund orders, please." },
			cause:  "instructions",
			asked:  3,
		},
		{
			name:    "instructions, offline",
			change:  whatif.Change{Instructions: true},
			edit:    func(_ *desk, a *pawl.Agent) { a.Instructions = "Refund orders, please." },
			offline: true,
			verdict: "unknown",
			cause:   "instructions",
			stopped: "offline",
		},
		{
			name:   "another answer",
			change: whatif.Change{Instructions: true},
			edit: func(d *desk, a *pawl.Agent) {
				a.Instructions = "Refund orders, please."
				a.Model = d.model(said("All done."))
			},
			verdict: "answer",
			cause:   "instructions",
			asked:   3,
		},
		{
			name:    "a new tool",
			change:  whatif.Change{Tools: true},
			edit:    func(d *desk, a *pawl.Agent) { a.Tools = append(a.Tools, extra(d)) },
			cause:   "tools: notify is new",
			asked:   3,
			verdict: "",
		},
		{
			name:    "a tool is gone",
			edit:    func(_ *desk, a *pawl.Agent) { a.Tools = a.Tools[:1] },
			cause:   "tools: auditor is gone",
			asked:   3,
			verdict: "refund fewer",
		},
		{
			name:   "one more write",
			change: whatif.Change{Instructions: true},
			edit: func(d *desk, a *pawl.Agent) {
				a.Instructions = "Refund twice."
				a.Model = d.model(func(task string, results []llm.ToolResult) script.Turn {
					if len(results) == 2 {
						return script.Call("refund", `{"order":1,"amount":30}`)
					}
					return clerkTurn(task, results)
				})
			},
			verdict: "refund more",
			cause:   "instructions",
			asked:   4,
			shadows: 1,
		},
		{
			name:   "another read",
			change: whatif.Change{Instructions: true},
			edit: func(d *desk, a *pawl.Agent) {
				a.Instructions = "Look at another order."
				a.Model = d.model(func(_ string, results []llm.ToolResult) script.Turn {
					if len(results) == 0 {
						return script.Call("lookup", `{"order":2}`)
					}
					return script.Say("ok")
				})
			},
			verdict: "call",
			cause:   "instructions",
			stopped: "no result is stored for this call of lookup",
			asked:   1,
		},
		{
			name:    "a rule that asks",
			change:  whatif.Change{Rules: true},
			edit:    withRules(policy.Rules{Ask: []string{"refund(amount >= 30)"}, Default: pawl.VerdictAllow}),
			verdict: "refund fewer",
			cause:   "call: refund was ok, is pending",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			d.record(t, d.clerk(""), map[string]string{"a": "refund order 1 with 30"})
			calls := d.calls.Load()
			agent := d.clerk("")
			if row.edit != nil {
				row.edit(d, agent)
			}

			trial := &whatif.Trial{Journal: d.db, Change: row.change, Offline: row.offline}
			run, err := trial.Replay(t.Context(), "a", agent)
			if err != nil {
				t.Fatal(err)
			}
			if got := kindOf(run); got != row.verdict {
				t.Errorf("got %q, want %q", got, row.verdict)
			}
			stopped := strings.Contains(run.Stopped, row.stopped) && (run.Stopped == "") == (row.stopped == "")
			if run.Cause != row.cause || !stopped {
				t.Errorf("got the cause %q and stopped %q, want %q and %q",
					run.Cause, run.Stopped, row.cause, row.stopped)
			}
			if run.Asked != row.asked || len(run.Shadowed) != row.shadows {
				t.Errorf("got %d requests and %d shadowed calls, want %d and %d",
					run.Asked, len(run.Shadowed), row.asked, row.shadows)
			}
			if got := d.calls.Load() - calls; got != 0 {
				t.Errorf("%d calls went out", got)
			}
			if t.Failed() {
				form, _ := json.MarshalIndent(run, "", " ")
				t.Logf("%s", form)
			}
		})
	}
}

// withRules gives an agent approval rules.
func withRules(r policy.Rules) func(*desk, *pawl.Agent) {
	return func(_ *desk, a *pawl.Agent) { a.Middleware = []pawl.Middleware{r.Middleware()} }
}

// The answers of people count again: an equal question is answered as it was, and a rule that lets
// more calls run asks fewer questions. A call that a person denied would happen.
func TestAnswersOfPeople(t *testing.T) {
	d := newDesk(t)
	agent := d.clerk("")
	agent.Middleware = []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}
	eng := &durable.Engine{Journal: d.db}
	for id, approve := range map[string]bool{"yes": true, "no": false} {
		res, _ := eng.Runner(id, agent).Run(t.Context(), llm.User("refund order 1 with 30"))
		answer := res.Pending[0].Deny("ann", "too much")
		if approve {
			answer = res.Pending[0].Approve("ann")
		}
		_, err := eng.Runner(id, agent).Run(t.Context(), llm.DecisionMessage(answer))
		if err != nil {
			t.Fatal(err)
		}
	}
	calls := d.calls.Load()

	for _, row := range []struct {
		run   string
		rules policy.Rules
		want  string
		asks  whatif.Count
	}{
		{"yes", policy.Rules{}, "", whatif.Count{Was: 1, Is: 1}},
		{"no", policy.Rules{}, "", whatif.Count{Was: 1, Is: 1}},
		{"yes", policy.Rules{Allow: []string{"refund(amount <= 100)"}}, "", whatif.Count{Was: 1}},
		{"no", policy.Rules{Allow: []string{"refund(amount <= 100)"}}, "refund more", whatif.Count{Was: 1}},
		{"yes", policy.Rules{Deny: []string{"refund"}}, "refund fewer", whatif.Count{Was: 1}},
	} {
		now := d.clerk("")
		withRules(row.rules)(d, now)
		trial := &whatif.Trial{Journal: d.db, Change: whatif.Change{Rules: true}}
		run, err := trial.Replay(t.Context(), row.run, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindOf(run); got != row.want || run.Questions != row.asks {
			t.Errorf("%s under %v: got %q with %+v, want %q with %+v",
				row.run, row.rules, got, run.Questions, row.want, row.asks)
		}
	}
	if got := d.calls.Load() - calls; got != 0 {
		t.Errorf("%d calls went out", got)
	}
}
