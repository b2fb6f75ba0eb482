package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/runtrace"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/find"
)

// testdata/kinds holds a database with a run for each kind of record that testdata/release0 does
// not have, and what its writer read from it. Commit 86d9fb60 wrote them, before the records of a
// run had a package of their own. They must not be written again: -update writes a file only if
// none exists.
const kinds = "testdata/kinds"

// kindRun is a run of the database. Each process makes its agent anew.
type kindRun struct {
	id    string
	turns []kindTurn
	write func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) // writes the run
}

// kindTurn is a reply. While the run is written, it may end early.
type kindTurn struct {
	deltas []llm.Delta
	// background identifies the reply that the provider computes while the process ends. Empty
	// means that the reply arrives at once.
	background string
	err        error // of the request; nil means none
}

// saysKind is an answer.
func saysKind(text string) kindTurn {
	return kindTurn{deltas: []llm.Delta{{Part: llm.Text{Text: text}, Done: true},
		{Finish: llm.FinishReasonStop, Usage: &llm.Usage{Input: 7, Output: 3}}}}
}

// callsKind is a reply with a call. Its reasoning has bytes that JSON does not preserve.
func callsKind(tool, args string) kindTurn {
	return kindTurn{deltas: []llm.Delta{
		{Part: llm.Reasoning{Text: "hm\xff", Opaque: &llm.Opaque{Provider: "p", Data: json.RawMessage(`{"b" : 1}`)}}, Done: true},
		{Index: 1, Part: llm.ToolCall{ID: "call-" + tool, Name: tool, Args: json.RawMessage(args)}, Done: true},
		{Finish: llm.FinishReasonToolCalls, Usage: &llm.Usage{Input: 5, Output: 2}}}}
}

// kindModel plays the turn after the number of replies in the request, and posts each request.
type kindModel struct {
	turns   []kindTurn
	writing bool
	stop    func()
	client  *http.Client
}

func (m *kindModel) Name() string { return "kinds:1" }

func (m *kindModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		n := 0
		for _, msg := range req.Messages {
			if msg.Role == llm.RoleAssistant {
				n++
			}
		}
		turn := m.turns[min(n, len(m.turns)-1)]
		body, err := json.Marshal(llm.WithoutLabels(req.Messages)) // as an adapter sends it
		if err == nil {
			err = m.post(ctx, body)
		}
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		if m.writing && turn.background != "" {
			yield(llm.Delta{Background: &llm.Opaque{Provider: "p", Data: json.RawMessage(turn.background)}}, nil)
			m.stop()
			yield(llm.Delta{}, context.Cause(ctx))
			return
		}
		if m.writing && turn.err != nil {
			yield(llm.Delta{Usage: &llm.Usage{Input: 11}, Requests: 1}, nil)
			yield(llm.Delta{}, turn.err)
			return
		}
		for _, d := range turn.deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (m *kindModel) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.test/reply", bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := m.client.Do(r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// kindProvider accepts every request.
type kindProvider struct{}

func (kindProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// agent makes the agent of the run. version is part of the description of the tool pay, and done
// receives the executed calls. writing makes the turns of the model fail as they say.
func (r kindRun) agent(version string, done *[]string, stop func(), writing bool) *pawl.Agent {
	tool := func(name, schema string, e pawl.Effect) *pawl.Tool {
		return &pawl.Tool{
			Name:        name,
			Description: "Does " + name + "." + version,
			Input:       json.RawMessage(schema),
			Effect:      e,
			Timeout:     -1,
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				*done = append(*done, name)
				return llm.TextResult(name + " is done"), nil
			},
		}
	}
	login := tool("login", `{"type":"object","properties":{"password":{"type":"string","writeOnly":true}}}`, pawl.EffectRead)
	pay := tool("pay", `{"type":"object","properties":{"n":{"type":"integer"}}}`, pawl.EffectWrite)
	rare := tool("rare", `{"type":"object"}`, pawl.EffectRead)
	rare.Description = "Does what is rare."
	ask := pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if c.Name == "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it is money", ValidFor: -1}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	tools := []pawl.Toolset{login, pay}
	if r.id == "found" {
		tools = append(tools, find.OnDemand(rare, &find.Options{Least: 1}))
	}
	return &pawl.Agent{Name: "main", Instructions: "Do the task.", Parallel: pawl.Parallel{Limit: 1}, Tools: tools,
		Middleware: []pawl.Middleware{ask},
		Model: &kindModel{turns: r.turns, writing: writing, stop: stop,
			client: &http.Client{Transport: durable.Transport(kindProvider{})}}}
}

func kindRuns() []kindRun {
	run := func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) {
		t.Helper()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		one := eng.Runner(r.id, r.agent("", new([]string), cancel, true))
		one.Meta = json.RawMessage(`{"for":"ann"}`)
		var stop *pawl.StopError
		var refused *llm.ProviderError
		if _, err := one.Run(ctx, llm.User("Do it.")); err != nil && !errors.As(err, &stop) && !errors.As(err, &refused) {
			t.Fatalf("%s: %v", r.id, err)
		}
	}
	return []kindRun{
		// It is the first, because each run that is not over would get the record.
		{id: "restored", turns: []kindTurn{callsKind("pay", `{"n":1}`), saysKind("paid")},
			write: func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) {
				if err := eng.Runner(r.id, r.agent("", new([]string), nil, true)).Enqueue(ctx, llm.User("Do it.")); err != nil {
					t.Fatal(err)
				}
				if n, err := eng.MarkRestored(ctx); err != nil || n != 1 {
					t.Fatal(n, err)
				}
			}},
		{id: "traced", turns: []kindTurn{callsKind("login", `{"password":"hunter2hunter2"}`), saysKind("in")},
			write: func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) {
				run(t, runtrace.With(ctx, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), eng, r)
			}},
		{id: "found", turns: []kindTurn{callsKind("tool_search", `{"query":"rare"}`), callsKind("rare", `{}`), saysKind("found")}, write: run},
		{id: "steered", turns: []kindTurn{callsKind("login", `{"password":"hunter2hunter2"}`), callsKind("pay", `{"n":2}`), saysKind("paid")},
			write: func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) {
				if err := eng.Runner(r.id, r.agent("", new([]string), nil, true)).Enqueue(ctx, llm.User("Do it.")); err != nil {
					t.Fatal(err)
				}
				if err := eng.Steer(ctx, r.id, llm.User("Be quick.")); err != nil {
					t.Fatal(err)
				}
				if _, err := runtest.Ended(eng.Runner(r.id, r.agent("", new([]string), nil, true)).Run(ctx)); err != nil {
					t.Fatal(err)
				}
				if err := eng.Fork(ctx, durable.Fork{Run: r.id, ID: "forked", Steps: 1}); err != nil {
					t.Fatal(err)
				}
				open, err := eng.Pending(ctx, r.id)
				if err != nil || len(open) != 1 {
					t.Fatal(open, err)
				}
				if err := eng.Decide(ctx, r.id, open[0].Approve("ann")); err != nil {
					t.Fatal(err)
				}
				if err := eng.Steer(ctx, r.id, llm.User("And well.")); err != nil {
					t.Fatal(err)
				}
			}},
		{id: "forked", turns: []kindTurn{saysKind("not asked"), callsKind("pay", `{"n":3}`), saysKind("paid again")}},
		{id: "accepted", turns: []kindTurn{callsKind("pay", `{"n":4}`), saysKind("paid")},
			write: func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) {
				run(t, ctx, eng, r)
				accepting := &durable.Engine{Journal: eng.Journal, AcceptChangedTools: []string{"pay", "login"}}
				accepting.SetClock(func() time.Time { return released })
				other := r.agent(" Otherwise.", new([]string), nil, true)
				if _, err := runtest.Ended(accepting.Runner(r.id, other).Run(ctx)); err != nil {
					t.Fatal(err)
				}
			}},
		{id: "background", turns: []kindTurn{func() kindTurn {
			turn := saysKind("computed")
			turn.background = `{"id":"reply-1"}`
			return turn
		}()}, write: run},
		{id: "failed", turns: []kindTurn{func() kindTurn {
			turn := saysKind("late")
			turn.err = &llm.ProviderError{Code: llm.CodeInvalidRequest, Message: "it is refused"}
			return turn
		}()}, write: run},
		{id: "cancelled", turns: []kindTurn{callsKind("pay", `{"n":5}`), saysKind("paid")},
			write: func(t *testing.T, ctx context.Context, eng *durable.Engine, r kindRun) {
				run(t, ctx, eng, r)
				if err := eng.Cancel(ctx, r.id); err != nil {
					t.Fatal(err)
				}
			}},
	}
}

// version returns the version of the agent with which the run continues.
func (r kindRun) version() string {
	if r.id == "accepted" {
		return " Otherwise."
	}
	return ""
}

// writeKinds writes the database.
func writeKinds(t *testing.T, path string) {
	t.Helper()
	ctx := store.WithScope(t.Context(), releaseScope)
	file := filepath.Join(t.TempDir(), "kinds.db")
	db, err := sqlite.Open(file, &sqlite.Options{Now: func() time.Time { return released }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	eng := &durable.Engine{Journal: db}
	eng.SetClock(func() time.Time { return released })
	for _, r := range kindRuns() {
		if r.write != nil {
			r.write(t, ctx, eng, r)
		}
	}
	once(t, path, packed(t, file))
}

// openKinds unpacks the database, and returns an engine with the clock one hour later.
func openKinds(t *testing.T) (context.Context, *sqlite.DB, *durable.Engine) {
	t.Helper()
	return openStored(t, filepath.Join(kinds, "runs.db.gz"), writeKinds)
}

// Each kind of record is read as its writer read it: exports, times, ledgers, questions and marks
// of secrets. The chains are whole, and a replay makes the same requests, byte for byte.
func TestKindsAreReadAndReplayed(t *testing.T) {
	ctx, db, eng := openKinds(t)
	var seen []any
	written := map[string]bool{}
	for _, r := range kindRuns() {
		records, err := db.JournalRecords(ctx, releaseScope, r.id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			written[rec.Kind] = true
		}
		v, err := eng.Verify(ctx, r.id, nil)
		if err != nil {
			t.Fatal(err)
		}
		open, answered, err := eng.Questions(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		effects, err := eng.Effects(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		times, err := eng.Timeline(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		for i := range times.Taken {
			times.Taken[i] = released // it depends on the elapsed time
		}
		x, err := eng.Export(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		hide, err := eng.Redactor(ctx, r.id, nil)
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := x.Redacted(hide).JSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(hidden), "hunter2") {
			t.Errorf("%s: the password is shown", r.id)
		}
		form, err := x.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var done, kept []string
		played, replayErr := eng.Replay(ctx, r.id, r.agent(r.version(), &done, nil, false))
		if len(done) > 0 {
			t.Errorf("%s: a replay made %v", r.id, done)
		}
		for e, err := range eng.ReplayEvents(r.id, r.agent(r.version(), &done, nil, false)).Stream(ctx) {
			kept = append(kept, string(e.Kind)+" "+e.Code+" "+textOf(err))
		}
		meta, err := eng.Meta(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, map[string]any{"run": r.id, "records": v.Records, "head": v.Head, "open": open, "answered": answered,
			"effects": effects, "timeline": times, "export": json.RawMessage(form), "hidden": json.RawMessage(hidden),
			"requests": played.Requests, "bytes": played.Bytes, "calls": played.Calls, "replay": textOf(replayErr),
			"events": kept, "meta": meta})
	}
	want := strings.Fields("accept background begin cancel decision end intent message outcome question reply restored steer tools trace")
	for _, kind := range want {
		if !written[kind] {
			t.Errorf("no run has a record of the kind %s", kind)
		}
	}
	storedGolden(t, filepath.Join(kinds, "read.json"), indent(t, seen))
}

// textOf returns the text of an error, or "".
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Each run continues as its writer continued it. A call that has ended is not repeated.
func TestKindsAreResumed(t *testing.T) {
	ctx, db, eng := openKinds(t)
	var ends []any
	for _, r := range kindRuns() {
		var done []string
		run := eng.Runner(r.id, r.agent(r.version(), &done, nil, false))
		res, err := runtest.Ended(run.Run(ctx))
		for n := 0; err == nil && res.Stop == pawl.StopPending && n < 10; n++ {
			var answers []llm.Message
			for _, q := range res.Pending {
				d := q.Approve("ann")
				if q.Outcome == pawl.OutcomeUnknown {
					d.Reason = "it did not happen"
				}
				answers = append(answers, llm.DecisionMessage(d))
			}
			res, err = run.Run(ctx, answers...)
		}
		if err != nil {
			t.Errorf("%s: %v", r.id, err)
			continue
		}
		if _, err := eng.Verify(ctx, r.id, nil); err != nil {
			t.Error(err)
		}
		records, err := db.JournalRecords(ctx, releaseScope, r.id, 0)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, rec := range records {
			keys = append(keys, rec.Kind+" "+rec.Key)
		}
		ends = append(ends, map[string]any{"run": r.id, "stop": res.Stop, "cause": res.Cause, "text": res.Text(),
			// Their labels are new since.
			"messages": llm.WithoutLabels(res.Messages), "spent": res.Spent, "executed": done, "keys": keys})
	}
	storedGolden(t, filepath.Join(kinds, "resumed.json"), indent(t, ends))
}
