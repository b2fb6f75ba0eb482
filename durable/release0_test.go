package durable_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/plan"
)

// testdata/release0 holds a database with runs that release 0 wrote, and the results of these runs
// after they were resumed. The files must not be written again: users have such databases, and
// every later version reads them. -update writes a file only if none exists. The agents and tools
// below are part of the fixture: a journal holds digests of names, descriptions, schemas and
// instructions.
const release0 = "testdata/release0"

var update = flag.Bool("update", false, "write files of testdata/release0 that are not there")

// released is the time at which release 0 wrote the database.
var released = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var releaseScope = store.Scope{Tenant: "acme", User: "ann"}

// releaseRun is a run of the database. Each process makes its agent anew.
type releaseRun struct {
	id    string
	turns []script.Turn
	hold  string // the call of this tool is not recorded: the process dies during the call
}

func releaseRuns() []releaseRun {
	n := func(n int) map[string]any { return map[string]any{"n": n} }
	step := func(tool string, i int) map[string]any { return map[string]any{"tool": tool, "args": n(i)} }
	return []releaseRun{
		{id: "finished", turns: []script.Turn{script.Together(script.Say("I look."), script.Call("look", n(1)),
			script.Call("post", n(2))), script.Say("done")}},
		{id: "waiting", turns: []script.Turn{script.Together(script.Call("look", n(3)), script.Call("pay", n(4))), script.Say("paid")}},
		{id: "killed-read", hold: "look", turns: []script.Turn{script.Call("post", n(5)),
			script.Call("look", n(6)), script.Call("post", n(7)), script.Say("done")}},
		{id: "killed-write", hold: "post", turns: []script.Turn{script.Together(script.Call("look", n(8)), script.Call("post", n(9))), script.Say("done")}},
		{id: "agent-inside", turns: []script.Turn{script.Call("clerk", map[string]any{"task": "Pay."}), script.Say("the clerk paid")}},
		{id: "plan", turns: []script.Turn{script.Call("execute_plan",
			map[string]any{"steps": []any{step("post", 10), step("pay", 11), step("post", 12)}}), script.Say("planned")}},
		{id: "program", turns: []script.Turn{script.Call("execute_code", map[string]any{"code": releaseProgram}), script.Say("programmed")}},
	}
}

const releaseProgram = `
total = call_tool("post", {"n": 13})["twice"]
total += call_tool("pay", {"n": 14})["twice"]
set_result(total + call_tool("post", {"n": 15})["twice"])
`

const releaseSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// agent makes the agent of the run. held is called by the tool of hold, before it delivers.
func (r releaseRun) agent(t *testing.T, w durabletest.World, held func(context.Context)) *pawl.Agent {
	t.Helper()
	act := func(name string, e pawl.Effect) pawl.Toolset {
		return &pawl.Tool{Name: name, Description: "Does " + name + ".", Input: json.RawMessage(releaseSchema),
			Effect: e, Timeout: -1,
			Output: json.RawMessage(`{"type":"object","properties":{"twice":{"type":"integer"}},"required":["twice"]}`),
			Run: func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				if name == r.hold && held != nil {
					held(ctx)
				}
				var in number
				if err := json.Unmarshal(c.Args, &in); err != nil {
					return llm.ToolResult{}, err
				}
				v := pawl.InvocationFrom(ctx)
				return did(in.N), w.Deliver(ctx, durabletest.Delivery{Tool: name, Effect: e, Place: v.Key,
					Key: v.IdempotencyKey()})
			}}
	}
	acts := func() []pawl.Toolset {
		return []pawl.Toolset{act("look", pawl.EffectRead), act("post", pawl.EffectWrite), act("pay", pawl.EffectWrite)}
	}
	ask := []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if c.Name == "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it is money", ValidFor: -1}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})}
	clerk := &pawl.Agent{Name: "clerk", Instructions: "You are a clerk.",
		Model: script.New(script.Call("post", number{16}), script.Call("pay", number{17}),
			script.Say("I paid.")), Tools: acts(), Middleware: ask}
	embedded, err := code.New(code.Embedded(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	// later versions may change the wording of descriptions
	fixed := func(tool *pawl.Tool, input string) pawl.Toolset {
		tool = tool.Clone()
		tool.Description, tool.Input, tool.Output = "Does "+tool.Name+".", json.RawMessage(input), nil
		return tool
	}
	return &pawl.Agent{Name: "main", Instructions: "Do the task.", Model: script.New(r.turns...), Middleware: ask, Tools: append(acts(),
		fixed(clerk.Tool("A clerk."), `{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}`),
		fixed(plan.New(nil), `{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object"}}},"required":["steps"]}`),
		fixed(embedded, `{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`))}
}

// beginReleaseRuns starts the runs and waits until each has ended, is pending, or hangs in a call.
// stop ends the hanging runs.
func beginReleaseRuns(t *testing.T, ctx context.Context, eng *durable.Engine, w durabletest.World,
	runs []releaseRun, parallel pawl.Parallel, settle func()) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	for _, r := range runs {
		reached := make(chan struct{})
		agent := r.agent(t, w, func(ctx context.Context) {
			close(reached)
			<-ctx.Done()
		})
		agent.Parallel = parallel
		run := eng.Runner(r.id, agent)
		if r.hold != "" {
			under.Go(func() { _, _ = run.Run(ctx, llm.User("Do it.")) }) // it is cancelled
			<-reached
			settle()
			continue
		}
		if _, err := runtest.Ended(run.Run(ctx, llm.User("Do it."))); err != nil {
			t.Fatalf("%s: %v", r.id, err)
		}
	}
	return func() { cancel(); under.Wait() }
}

// writeRelease0 writes the database.
func writeRelease0(t *testing.T, path string) {
	t.Helper()
	ctx := store.WithScope(t.Context(), releaseScope)
	file := filepath.Join(t.TempDir(), "pawl.db")
	db, err := sqlite.Open(file, &sqlite.Options{Now: func() time.Time { return released }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	eng := &durable.Engine{Journal: db}
	eng.SetClock(func() time.Time { return released })
	var world durabletest.Memory
	settle := func() { time.Sleep(300 * time.Millisecond) }
	stop := beginReleaseRuns(t, ctx, eng, &world, releaseRuns(), pawl.Parallel{}, settle)
	defer stop()
	for _, err := range []error{
		second(db.PutThread(ctx, releaseScope, store.Thread{ID: "chat", Title: "A chat", Meta: json.RawMessage(`{"a":1}`)})),
		db.AppendMessages(ctx, releaseScope, "chat", 0, llm.User("Which way to the harbour?"), llm.Assistant(llm.Text{Text: "Down the hill."})),
		third(db.AddMemory(ctx, releaseScope, store.Memory{Text: "Ann walks to the harbour.", Source: store.Source{By: "ann"}})),
		second(db.PutSchedule(ctx, releaseScope, store.Schedule{ID: "daily", Name: "daily", When: "0 8 * * *",
			Zone: "Europe/Oslo", Task: json.RawMessage(`{"task":"Say hello."}`), Misfire: "skip", Enabled: true, Next: released.Add(time.Hour)})),
		db.PutArtifact(ctx, releaseScope, "finished", pawl.Artifact{Key: "run/1/0", MIME: "text/plain", Text: "the whole text"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	once(t, path, packed(t, file))
	once(t, filepath.Join(release0, "before.json"), indent(t, world.All()))
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func indent(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// openRelease0 unpacks the database and returns an engine with the clock one hour after its
// release.
func openRelease0(t *testing.T) (context.Context, *sqlite.DB, *durable.Engine) {
	t.Helper()
	return openStored(t, filepath.Join(release0, "pawl.db.gz"), writeRelease0)
}

// The journals of release 0 are intact. Their exports are unchanged, their questions are still
// pending, and their replays send the same requests.
func TestRelease0IsReadAndReplayed(t *testing.T) {
	ctx, db, eng := openRelease0(t)
	var seen []any
	for _, r := range releaseRuns() {
		head, err := db.JournalRun(ctx, releaseScope, r.id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := eng.Verify(ctx, r.id, &durable.VerifyOptions{Heads: []string{head.Head}})
		if err != nil {
			t.Fatal(err)
		}
		pending, err := eng.Pending(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		effects, err := eng.Effects(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		var world durabletest.Memory
		played, err := eng.Replay(ctx, r.id, r.agent(t, &world, nil))
		if err != nil {
			t.Errorf("%s: replay: %v", r.id, err)
		}
		if all := world.All(); len(all) > 0 {
			t.Errorf("%s: a replay made %v", r.id, all)
		}
		x, err := eng.Export(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		form, err := x.JSON()
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, map[string]any{"run": r.id, "state": head.State, "records": v.Records, "head": v.Head, "pending": pending, "effects": effects,
			"requests": played.Requests, "calls": played.Calls, "export": json.RawMessage(form)})
		other := releaseRun{id: r.id, turns: r.turns}.agent(t, &world, nil)
		other.Instructions = "Do another task."
		if _, err := eng.Replay(ctx, r.id, other); err == nil {
			t.Errorf("%s: another agent replays it", r.id)
		}
	}
	storedGolden(t, filepath.Join(release0, "read.json"), indent(t, seen))
}

// A run of release 0 is resumed. Stored calls are not repeated, missing calls are executed once,
// and the result equals the result of release 0.
func TestRelease0IsResumed(t *testing.T) {
	ctx, _, eng := openRelease0(t)
	var ends []any
	for _, r := range releaseRuns() {
		var world durabletest.Memory
		run := eng.Runner(r.id, r.agent(t, &world, nil))
		res, err := runtest.Ended(run.Run(ctx))
		for n := 0; err == nil && res.Stop == pawl.StopPending && n < 10; n++ {
			var answers []llm.Message
			for _, q := range res.Pending {
				d := q.Approve("ann")
				// it did not happen: the process died before the delivery
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
		if places := writtenTwice(deliveredBefore(t), world.All()); len(places) > 0 {
			t.Errorf("%s: writes happened before, and again: %v", r.id, places)
		}
		if _, err := eng.Verify(ctx, r.id, nil); err != nil {
			t.Error(err)
		}
		ends = append(ends, map[string]any{"run": r.id, "stop": res.Stop, "text": res.Text(),
			"messages": llm.WithoutLabels(res.Messages), // their labels are new since
			"spent":    res.Spent, "deliveries": world.All()})
	}
	storedGolden(t, filepath.Join(release0, "resumed.json"), indent(t, ends))
}

// A run that starts anew without its journal repeats its write, and the comparison detects it.
func TestRelease0FindsASecondWrite(t *testing.T) {
	ctx := store.WithScope(t.Context(), releaseScope)
	var world durabletest.Memory
	run := releaseRuns()[0]
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	if _, err := eng.Runner(run.id, run.agent(t, &world, nil)).Run(ctx, llm.User("Do it.")); err != nil {
		t.Fatal(err)
	}
	if got := writtenTwice(deliveredBefore(t), world.All()); len(got) != 1 {
		t.Errorf("got %v, want the write of the run alone", got)
	}
}

// deliveredBefore returns the deliveries of the runs under release 0.
func deliveredBefore(t *testing.T) (before []durabletest.Delivery) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(release0, "before.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &before); err != nil {
		t.Fatal(err)
	}
	return before
}

// writtenTwice returns the places of writes that were delivered before, and again.
func writtenTwice(before, now []durabletest.Delivery) (places []llm.Key) {
	for _, d := range now {
		if d.Effect == pawl.EffectWrite && slices.ContainsFunc(before,
			func(b durabletest.Delivery) bool { return b.Key == d.Key }) {
			places = append(places, d.Place)
		}
	}
	return places
}

// The database also holds a thread, a memory, a schedule and an artifact.
func TestRelease0KeepsTheRest(t *testing.T) {
	ctx, db, _ := openRelease0(t)
	thread, err := db.Thread(ctx, releaseScope, "chat")
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := db.Messages(ctx, releaseScope, "chat", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := db.SearchMessages(ctx, releaseScope, store.Query{Text: "harbour"})
	if err != nil {
		t.Fatal(err)
	}
	memories, err := db.Memories(ctx, releaseScope, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := db.SearchMemories(ctx, releaseScope, store.Query{Text: "walks"})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d memories found, error %v, want 1", len(found), err)
	}
	schedules, err := db.Schedules(ctx, releaseScope, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := db.Artifact(ctx, releaseScope, "finished", "run/1/0")
	if err != nil {
		t.Fatal(err)
	}
	storedGolden(t, filepath.Join(release0, "rest.json"), indent(t, map[string]any{
		"thread":    thread,
		"messages":  msgs,
		"hits":      len(hits),
		"memories":  memories,
		"schedules": schedules,
		"artifact":  artifact.Text,
	}))
}

// recordsOf parses records. It leaves out what they have gained, the members named label, and the
// hashes over that.
func recordsOf(t *testing.T, b []byte) (tree any) {
	if err := json.Unmarshal(b, &tree); err != nil {
		t.Fatal(err)
	}
	var drop func(v any)
	drop = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "label")
			delete(v, "hash")
			for _, inner := range v {
				drop(inner)
			}
		case []any:
			for _, inner := range v {
				drop(inner)
			}
		}
	}
	drop(tree)
	return tree
}

// The records of a journal keep their kinds, keys and bodies, and only gain labels. The clock
// stands still.
func TestJournalFormStays(t *testing.T) {
	got := map[string][]byte{}
	synctest.Test(t, func(t *testing.T) {
		ctx := store.WithScope(t.Context(), releaseScope)
		journal := new(store.MemoryJournal)
		eng := &durable.Engine{Journal: journal}
		var world durabletest.Memory
		beginReleaseRuns(t, ctx, eng, &world, releaseRuns()[:2], pawl.Parallel{Limit: 1}, synctest.Wait)()
		for _, r := range releaseRuns()[:2] {
			records, err := journal.JournalRecords(ctx, releaseScope, r.id, 0)
			if err != nil {
				t.Fatal(err)
			}
			got[r.id] = indent(t, records)
		}
	})
	for id, b := range got {
		then, err := os.ReadFile(filepath.Join(release0, fmt.Sprintf("journal_%s.json", id)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(recordsOf(t, then), recordsOf(t, b)); diff != "" {
			t.Errorf("%s (-then +now):\n%s", id, diff)
		}
	}
}
