package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// resumed makes a run whose process is shut down at each of its calls in turn, and returns the last
// Result.
func resumed(t *testing.T, eng *durable.Engine, a *pawl.Agent, stop *func()) *pawl.Result {
	t.Helper()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		*stop = cancel
		res, err := runtest.Ended(eng.Runner("r", a).Run(ctx, llm.User("go")))
		cancel()
		if !errors.Is(err, context.Canceled) {
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
	}
	t.Fatal("it never ends")
	return nil
}

// Counters and budgets are never reset (R7): a run whose process is shut down after each of its
// calls stops at the same place, with the same counters and texts.
func TestBudgetsSurvive(t *testing.T) {
	for name, l := range map[string]pawl.Limits{"rounds": {Rounds: 3}, "calls": {Calls: 3}, "tokens": {Tokens: 100}, "none": {}} {
		stop := func() {}
		look := pawl.Func("look", "looks", func(context.Context, struct {
			N int `json:"n"`
		}) (string, error) {
			stop()
			return "seen", nil
		})
		look.Effect, look.Timeout = pawl.EffectRead, -1
		var turns []script.Turn
		for i := range 6 {
			turns = append(turns, script.Call("look", fmt.Sprintf(`{"n":%d}`, i)))
		}
		turns = append(turns, script.Say("all seen"))
		model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			n := 0
			for _, m := range req.Messages {
				if m.Role == llm.RoleAssistant {
					n++
				}
			}
			if req.Choice.Mode == llm.ToolNone {
				return script.Say("that is all")
			}
			return turns[n]
		})))
		a := &pawl.Agent{Model: model, Tools: []pawl.Toolset{look}, Limits: l}
		want, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		got := resumed(t, eng, a, &stop)
		if asJSON(got.Messages) != asJSON(want.Messages) || asJSON(got.Spent) != asJSON(want.Spent) ||
			got.Stop != want.Stop || got.Cause != want.Cause {
			t.Errorf("%s: %s (%s) %s\nwant %s (%s) %s", name, got.Stop, got.Cause, asJSON(got.Messages),
				want.Stop, want.Cause, asJSON(want.Messages))
		}
		if again, err := runtest.Ended(eng.Runner("r", a).Run(t.Context())); err != nil ||
			asJSON(again.Messages) != asJSON(want.Messages) || asJSON(again.Spent) != asJSON(want.Spent) ||
			again.Cause != want.Cause {
			t.Errorf("%s: played back: %+v, %v", name, again, err)
		}
		if head, err := eng.Journal.JournalRun(t.Context(), store.Scope{}, "r"); err != nil || head.Fence < 3 {
			t.Errorf("%s: %d attempts, %v; the run was not resumed", name, head.Fence, err)
		}
	}
}

// The time of a run is the sum of the times in which any process worked on it.
func TestTimeSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := func() {}
		wait := pawl.Func("wait", "waits", func(ctx context.Context, _ struct {
			N int `json:"n"`
		}) (string, error) {
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
			stop()
			return "waited", nil
		})
		wait.Effect = pawl.EffectRead
		var turns []script.Turn
		for i := range 9 {
			turns = append(turns, script.Call("wait", fmt.Sprintf(`{"n":%d}`, i)))
		}
		a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: []pawl.Toolset{wait},
			Limits: pawl.Limits{Time: 70 * time.Second}}
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		res := resumed(t, eng, a, &stop)
		if res.Stop != pawl.StopLimit || res.Spent.Calls < 3 || res.Spent.Calls > 4 {
			t.Errorf("it stopped with %s after %d calls of 20 s, of at most 70 s", res.Stop, res.Spent.Calls)
		}
	})
}

// Observers receive the attempt and all stored events (R8), without fragments.
func TestAttempts(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	a := paying(&paid, -1)
	w := pending(t, eng, a)
	if err := eng.Decide(t.Context(), "r", w.Approve("a")); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for e, err := range eng.Runner("r", a).Stream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 {
			var data struct{ Attempt, Kept int }
			if err := json.Unmarshal(e.Data, &data); err != nil || e.Code != "attempt" || data.Attempt != 2 || data.Kept < 4 {
				t.Errorf("first comes %+v, %v", e, err)
			}
		}
		kinds = append(kinds, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "notice run_started step_started request_started call_delta call_ready response_received call_started call_completed step ") || !strings.HasSuffix(got, "run_ended") {
		t.Errorf("the events are %s", got)
	}
	for range eng.Runner("r", a).Stream(t.Context()) {
		break // a caller that breaks off does not change the run
	}
	if res, err := eng.Runner("r", a).Run(t.Context()); err != nil || res.Text() != "done" || len(paid) != 1 {
		t.Errorf("%+v, %v, paid %v", res, err, paid)
	}
}

// Recover takes over the runs of dead processes, and the runs whose answer arrived in the meantime.
// It does not touch runs that have ended or are pending.
func TestRecover(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	c := durabletest.ForEffect("pay")
	var worlds [6]durabletest.Memory
	for i := range worlds {
		id := fmt.Sprint("r", i)
		ctx := store.WithScope(t.Context(), store.Scope{User: id})
		res, err := runtest.Ended(eng.Runner(id, c.Agent(&worlds[i])).Run(ctx, c.Messages()...))
		if err != nil || res.Stop != pawl.StopPending {
			t.Fatal(res, err)
		}
		if i%2 == 0 {
			if err := eng.Decide(ctx, id, res.Pending[0].Approve("a")); err != nil {
				t.Fatal(err)
			}
		}
	}
	n, err := eng.Recover(t.Context(), 0, func(r store.JournalRun) (pawl.Runner, error) {
		if r.ID == "r4" {
			return nil, errors.New("no such agent")
		}
		return c.Agent(&worlds[int(r.ID[1]-'0')]), nil
	})
	if n != 3 || err == nil || !strings.Contains(err.Error(), "r4: no such agent") {
		t.Errorf("%d runs, %v", n, err)
	}
	for i := range worlds {
		want := 0
		if i == 0 || i == 2 { // answered, and its agent is known
			want = 1
		}
		if got := deliveries(&worlds[i], "pay"); got != want {
			t.Errorf("run %d paid %d times, want %d", i, got, want)
		}
	}
}

// The ledger states for each effect what is known about it.
func TestEffects(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	stop := func() {}
	var key string
	act := func(name string, effect pawl.Effect, err error) *pawl.Tool {
		tool := pawl.Func(name, name, func(ctx context.Context, _ none) (string, error) {
			if name == "write" {
				key = pawl.InvocationFrom(ctx).IdempotencyKey()
				stop()
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return name, err
		})
		tool.Effect = effect
		return tool
	}
	a := &pawl.Agent{Model: script.New(script.Together(script.Call("good", `{}`), script.Call("bad", `{}`),
		script.Call("pay", `{}`), script.Call("missing", `{}`)), script.Call("write", `{}`), script.Say("done")),
		Tools: []pawl.Toolset{act("good", pawl.EffectIdempotent, nil), act("bad", pawl.EffectWrite, errors.New("no")),
			act("write", pawl.EffectWrite, nil), act("pay", pawl.EffectWrite, nil)},
		Middleware: []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall,
			_ *pawl.Tool) (pawl.Approval, error) {
			return pawl.Approval{Verdict: map[bool]pawl.Verdict{true: pawl.VerdictAsk,
				false: pawl.VerdictAllow}[c.Name == "pay"]}, nil
		})}}
	ledger := func() string {
		effects, err := eng.Effects(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range effects {
			out = append(out, fmt.Sprintf("%s=%s", f.Tool, f.State))
			if f.Tool == "write" && (f.IdempotencyKey != key || f.Effect != pawl.EffectWrite) {
				t.Errorf("the ledger has the key %q, the tool had %q", f.IdempotencyKey, key)
			}
		}
		return strings.Join(out, " ")
	}
	res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("go")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got, want := ledger(), "good=completed bad=failed pay=intended"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := eng.Decide(t.Context(), "r", res.Pending[0].Deny("a", "")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop = func() {
		if got, want := ledger(), "good=completed bad=failed write=started"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		cancel()
	}
	if _, err := runtest.Ended(eng.Runner("r", a).Run(ctx)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got, want := ledger(), "good=completed bad=failed write=unknown"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	res, err = runtest.Ended(eng.Runner("r", a).Run(t.Context()))
	if err != nil || len(res.Pending) != 1 || res.Pending[0].Outcome != pawl.OutcomeUnknown {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := eng.Decide(t.Context(), "r", res.Pending[0].Answer("a", llm.TextResult("it happened"))); err != nil {
		t.Fatal(err)
	}
	if res, err = eng.Runner("r", a).Run(t.Context()); err != nil || res.Text() != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	if got, want := ledger(), "good=completed bad=failed write=completed"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A run is replayed offline and compared; a changed program is detected. A fork continues from its
// place, with another model.
func TestReplayAndFork(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var world durabletest.Memory
	c := durabletest.ForEffect("pay")
	res, err := durabletest.Drive(t.Context(), eng, "r", c, &world)
	if err != nil {
		t.Fatal(err)
	}
	before := len(world.All())
	played, err := eng.Replay(t.Context(), "r", c.Agent(&world))
	if err != nil || played.Result == nil || asJSON(played.Result.Messages) != asJSON(res.Messages) ||
		played.Requests < 5 || len(world.All()) != before {
		t.Errorf("%+v, %v, %d deliveries", played, err, len(world.All())-before)
	}
	other := c.Agent(&world)
	other.Instructions += "!"
	if _, err := eng.Replay(t.Context(), "r", other); !errors.Is(err, durable.ErrChanged) {
		t.Errorf("other instructions: %v", err)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "f", Steps: 2}); err != nil {
		t.Fatal(err)
	}
	other.Model = script.New(script.Say("never"), script.Say("never"), script.Say("another end"))
	got, err := eng.Runner("f", other).Run(t.Context())
	if err != nil || got.Text() != "another end" || len(got.Messages) != 6 || deliveries(&world, "model") != countModel(&world, before) {
		t.Errorf("the fork: %+v, %v", got, err)
	}
	if a, b := asJSON(got.Messages[:5]), asJSON(res.Messages[:5]); a != b {
		t.Errorf("the fork begins with %s, want %s", a, b)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "g", Steps: 99}); err == nil {
		t.Error("a fork behind the end")
	}
	if _, err := eng.Verify(t.Context(), "f", nil); err != nil {
		t.Error(err)
	}
}

func countModel(w *durabletest.Memory, before int) (n int) {
	for _, d := range w.All()[:before] {
		if d.Tool == "model" {
			n++
		}
	}
	return n
}

// A reply that was paid for is not asked for again: before a request, every reply before it is on
// disk, also one without calls that did not fit and is to be corrected.
func TestRepliesAreStoredBeforeTheNextRequest(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	stored := -1
	corrected := script.Func(func(*llm.Request) script.Turn {
		run, err := eng.Export(t.Context(), "r")
		if err != nil {
			t.Error(err)
		}
		stored = len(run.Replies)
		return script.Say("1")
	})
	a := &pawl.Agent{Output: pawl.SchemaFor[int](), Model: script.New(script.Say("one"), corrected)}
	res, err := eng.Runner("r", a).Run(t.Context(), llm.User("How many?"))
	if err != nil || string(res.Output) != "1" || stored != 1 {
		t.Errorf("%s, %v; the journal has %d replies at the second request, want 1", res.Text(), err, stored)
	}
}
