package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/runtrace"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/find"
)

// login takes a password, and repeats it in its result.
func login(changed string) *pawl.Tool {
	return &pawl.Tool{Name: "login", Description: "Logs in." + changed, Effect: pawl.EffectRead,
		Input: json.RawMessage(`{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string","writeOnly":true},"pin":{"type":"string","x-secret":true}}}`),
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult("hunter2hunter2 is right"), nil
		}}
}

const secretArgs = `{"user":"bob","password":"hunter2hunter2","pin":"47"}`

// A displayed run does not contain the values that its tools mark as secret, also without its
// agent. A fork knows the secrets of its copied part. The stored run is complete.
func TestRedactedRuns(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	a := &pawl.Agent{Model: script.New(script.Together(script.Say("hunter2hunter2 it is"), script.Call("login", secretArgs)),
		script.Call("ask", `{"pin":"no secret"}`), script.Say("done")),
		Tools: []pawl.Toolset{login(""), &pawl.Tool{Name: "ask", Passive: true, Input: json.RawMessage(`{"type":"object"}`)}}}
	res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("Log in.")))
	if err != nil || res.Stop != pawl.StopPending {
		t.Fatal(res, err)
	}
	other := &pawl.Tool{Name: "other", Effect: pawl.EffectRead, Run: login("").Run}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "f", Steps: 1}); err != nil {
		t.Fatal(err)
	}
	// It does not know login.
	bare := &pawl.Agent{Model: script.New(script.Say(""), script.Say("gone on without it")), Tools: []pawl.Toolset{other}}
	if _, err := eng.Runner("f", bare).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"r", "f"} {
		x, err := eng.Export(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		hide, err := eng.Redactor(t.Context(), id, nil)
		if err != nil {
			t.Fatal(err)
		}
		whole, shown := asJSON(x), asJSON(x.Redacted(hide))
		if !strings.Contains(whole, "hunter2hunter2") || !strings.Contains(whole, `"47"`) || asJSON(x) != whole {
			t.Errorf("%s: the export is not what was: %s", id, whole)
		}
		if strings.Contains(shown, "hunter2") || strings.Contains(shown, `"47"`) || !strings.Contains(shown, "bob") ||
			strings.Count(shown, `"pin":"[redacted]"`) != 3 {
			t.Errorf("%s: shown as %s", id, shown)
		}
		if id == "r" && !strings.Contains(shown, "no secret") {
			t.Errorf("%s: what another tool takes is hidden: %s", id, shown)
		}
		effects, err := eng.Effects(t.Context(), id)
		if err != nil || !strings.Contains(asJSON(effects), "hunter2") {
			t.Fatalf("%s: %v, %v", id, effects, err)
		}
		for _, f := range effects {
			if s := asJSON(f.Redacted(hide)); strings.Contains(s, "hunter2") || strings.Contains(s, `"47"`) {
				t.Errorf("%s: the ledger shows %s", id, s)
			}
		}
	}
	r, _ := eng.Export(t.Context(), "r")
	f, err := eng.Export(t.Context(), "f")
	if err != nil || f.Forked == nil || *f.Forked != (journal.Origin{Run: "r", Steps: 1}) || r.Forked != nil {
		t.Errorf("it comes from %+v, %v", f.Forked, err)
	}
	f.Calls[0].Execution.Result = llm.TextResult("hunter2hunter2 was right")
	hide, _ := eng.Redactor(t.Context(), "r", nil)
	ds, err := journal.Diff(r, f, hide)
	if err != nil ||
		!slices.ContainsFunc(ds,
			func(d journal.Difference) bool { return d.What == "call" && string(d.First) != string(d.Second) }) ||
		strings.Contains(asJSON(ds), "hunter2") {
		t.Errorf("the difference shows %s, %v", asJSON(ds), err)
	}
	f.Calls[0].Execution.Result, f.Calls[0].Call.Args = r.Calls[0].Execution.Result,
		json.RawMessage(strings.Replace(secretArgs, "47", "48", 1))
	if ds, err = journal.Diff(r, f, hide); err != nil ||
		!slices.ContainsFunc(ds, func(d journal.Difference) bool {
			return d.Key == "run/1/0" && string(d.First) == string(d.Second)
		}) {
		t.Errorf("a difference in what is hidden: %s, %v", asJSON(ds), err)
	}
}

// finder is an agent that finds the tool login by a search, and calls it in another process.
func finder(changed string, stop *func()) *pawl.Agent {
	found := login(changed)
	found.Timeout, found.Address = -1, changed
	run := found.Run
	found.Run = func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		if (*stop)(); ctx.Err() != nil {
			return llm.ToolResult{}, context.Cause(ctx)
		}
		return run(ctx, c)
	}
	return &pawl.Agent{Model: script.New(script.Call("tool_search", `{"query":"login"}`), script.Call("login", secretArgs), script.Say("done")),
		Tools: []pawl.Toolset{find.OnDemand(found, &find.Options{Least: 1})}}
}

// A tool that is offered after a search is compared, and its secrets are known, like the tools that
// are offered from the start.
func TestFoundToolThatChanged(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	stop := func() {}
	ctx, cancel := context.WithCancel(t.Context())
	stop = cancel
	if _, err := runtest.Ended(eng.Runner("r", finder("", &stop)).Run(ctx, llm.User("Log in."))); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stop = func() {}
	hide, err := eng.Redactor(t.Context(), "r", nil)
	if err != nil || strings.Contains(hide.String("hunter2hunter2"), "hunter2") {
		t.Errorf("its secrets are not known: %v", err)
	}
	if _, err := runtest.Ended(eng.Runner("r", finder(" Otherwise.", &stop)).Run(t.Context())); !errors.Is(err, durable.ErrChanged) ||
		!strings.Contains(err.Error(), "login") {
		t.Errorf("a found tool that changed: %v", err)
	}
	accepting := &durable.Engine{Journal: eng.Journal, AcceptChangedTools: []string{"login"}}
	if res, err := accepting.Runner("r", finder(" Otherwise.", &stop)).Run(t.Context()); err != nil || res.Text() != "done" {
		t.Errorf("accepted: %+v, %v", res, err)
	}
	if res, err := eng.Runner("r", finder(" Otherwise.", &stop)).Run(t.Context()); err != nil || res.Text() != "done" {
		t.Errorf("it was noted: %+v, %v", res, err)
	}
	if _, err := runtest.Ended(eng.Runner("r", finder("", &stop)).Run(t.Context())); !errors.Is(err, durable.ErrChanged) {
		t.Errorf("the old one after the new one: %v", err)
	}
}

// A resumed run receives the position of its previous attempt in a trace, and a fork the position
// of its original run.
func TestTraces(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	stop := func() {}
	attempt := func(id, trace string) (said *durable.Attempt) {
		ctx, cancel := context.WithCancel(runtrace.With(t.Context(), trace))
		defer cancel()
		stop = cancel
		for e, err := range eng.Runner(id, finder("", &stop)).Stream(ctx, llm.User("Log in.")) {
			if err == nil && e.Code == "attempt" {
				said = new(durable.Attempt)
				if err := json.Unmarshal(e.Data, said); err != nil {
					t.Error(err)
				}
			}
		}
		return said
	}
	if said := attempt("r", "first"); said != nil {
		t.Errorf("the first attempt follows %+v", said)
	}
	if said := attempt("r", "second"); said == nil || said.Trace != "first" || said.Attempt != 2 || said.ForkedFrom != nil {
		t.Errorf("the second follows %+v", said)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "f", Steps: 1}); err != nil {
		t.Fatal(err)
	}
	if said := attempt("f", "third"); said == nil || said.Trace != "" || said.ForkedFrom == nil ||
		*said.ForkedFrom != (journal.Origin{Run: "r", Steps: 1, Trace: "second"}) {
		t.Errorf("the fork follows %+v", said)
	}
	if said := attempt("f", ""); said == nil || said.Trace != "third" {
		t.Errorf("its next attempt follows %+v", said)
	}
}

// An agent without tools makes several requests. That there are none is stored once.
func TestNoToolsAreKeptOnce(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	a := &pawl.Agent{Model: script.New(script.Call("invented", `{}`), script.Call("invented", `{"n":1}`), script.Say("done"))}
	if res, err := eng.Runner("r", a).Run(t.Context(), llm.User("go")); err != nil || res.Text() != "done" {
		t.Errorf("%+v, %v", res, err)
	}
}
