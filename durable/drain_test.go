package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// drained is a world with payments of one second each. The key of a payment that is under way when
// its context ends is in cut.
type drained struct {
	paid, tries atomic.Int32
	mu          sync.Mutex
	cut         []string
}

// agent returns an agent that makes payments in the given form.
func (d *drained) agent(form string) *pawl.Agent {
	slow := func(ctx context.Context) (string, error) {
		select {
		case <-time.After(time.Second):
			d.paid.Add(1)
			return "paid", nil
		case <-ctx.Done():
			d.mu.Lock()
			defer d.mu.Unlock()
			d.cut = append(d.cut, form)
			return "", ctx.Err()
		}
	}
	pay := pawl.Func("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) { return slow(ctx) })
	pay.Concurrent = true
	one := script.Call("pay", nil)
	a := &pawl.Agent{Name: "payer", Tools: []pawl.Toolset{pay}}
	a.Model = script.New(script.Together(one, one, one), one, script.Say("Done."))
	switch form {
	case "in order":
		pay.Serial = func(json.RawMessage) string { return "one at a time" }
	case "retried":
		pay.Effect, pay.Timeout = pawl.EffectIdempotent, 10*time.Second
		inner := pay.Run
		pay.Run = func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			if d.tries.Add(1) <= 3 { // the first attempts of the first three calls
				select {
				case <-ctx.Done():
				case <-time.After(600 * time.Millisecond):
				}
				return llm.ToolResult{}, pawl.RetryableError(errors.New("not now"))
			}
			return inner(ctx, c)
		}
	case "nested agent":
		sub := &pawl.Agent{Name: "clerk", Model: a.Model, Tools: a.Tools}
		a = &pawl.Agent{Name: "chief", Tools: []pawl.Toolset{sub.Tool("Pays.")},
			Model: script.New(script.Call("clerk", `{"task":"pay"}`), script.Say("Done."))}
	case "composed":
		outer := pawl.Func("order", "Orders.", func(ctx context.Context, _ struct{}) (string, error) {
			for range 4 {
				if _, err := pawl.InvocationFrom(ctx).Do(ctx, llm.ToolCall{Name: "pay"}); err != nil {
					return "", err
				}
			}
			return "ordered", nil
		})
		outer.Effect = pawl.EffectCompose
		a.Tools = append(a.Tools, outer)
		a.Model = script.New(script.Call("order", nil), script.Say("Done."))
	}
	return a
}

// A drained run lets its calls end and begins none; the next engine continues at once, and no
// effect is unknown. The control cancels the context instead.
func TestDrain(t *testing.T) {
	for _, form := range []string{"together", "in order", "retried", "nested agent", "composed"} {
		for _, control := range []bool{false, true} {
			name := form
			if control {
				name += ", cancelled"
			}
			t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testDrain(t, form, control) }) })
		}
	}
}

func testDrain(t *testing.T, form string, control bool) {
	stored, d, drain := new(store.MemoryJournal), new(drained), make(chan struct{})
	first := &durable.Engine{Journal: stored, Drain: drain}
	ctx, cancel := context.WithCancelCause(t.Context())
	end := errors.New("the process ends")
	time.AfterFunc(500*time.Millisecond, func() {
		if control {
			cancel(end)
		} else {
			close(drain)
		}
	})
	_, err := first.Runner("r", d.agent(form)).Run(ctx, llm.User("Pay."))
	if want := map[bool]error{false: durable.ErrDrained, true: end}[control]; !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	head, err := stored.JournalRun(t.Context(), store.Scope{}, "r")
	if err != nil || head.State != store.JournalOpen || head.Owner != "" {
		t.Errorf("got %+v, %v; want it open and without a lease", head, err)
	}
	left := 0
	effects, err := first.Effects(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range effects {
		if e.State == journal.EffectUnknown {
			left++
		}
	}
	cut := len(d.cut)
	if control != (left > 0) || !control && cut > 0 {
		t.Fatalf("%d effects are not known, %d payments were cut: %+v", left, cut, effects)
	}
	if control {
		return
	}
	began := d.paid.Load()
	res, err := (&durable.Engine{Journal: stored}).Runner("r", d.agent(form)).Run(t.Context())
	if err != nil || res.Stop != pawl.StopAnswer || d.paid.Load() != 4 {
		t.Errorf("resumed: %v, %v; %d payments after %d, want 4", res.Stop, err, d.paid.Load(), began)
	}
	if want := map[string]int32{"together": 3, "in order": 1, "retried": 3, "nested agent": 3, "composed": 1}[form]; began != want {
		t.Errorf("%d payments ended in the first process, want %d", began, want)
	}
}

// A drained run waits for no reply of a model.
func TestDrainCutsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain, slow := make(chan struct{}), script.Say("Done.")
		slow.Delay = time.Hour
		a := &pawl.Agent{Name: "slow", Model: script.New(slow)}
		began, stored := time.Now(), new(store.MemoryJournal)
		time.AfterFunc(time.Second, func() { close(drain) })
		_, err := (&durable.Engine{Journal: stored, Drain: drain}).Runner("r", a).Run(t.Context(), llm.User("Go."))
		if took := time.Since(began); !errors.Is(err, durable.ErrDrained) || took > 2*time.Second {
			t.Errorf("got %v after %v", err, took)
		}
		if _, err := (&durable.Engine{Journal: stored}).Runner("r", a).Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run that was enqueued has no lease, is found by Recover, breaks no promise while it waits, and
// begins with its first attempt. It is enqueued once.
func TestEnqueue(t *testing.T) {
	for name, j := range map[string]store.Journal{"memory": new(store.MemoryJournal), "sqlite": open(t)} {
		past := &durable.Engine{Journal: j, Lease: time.Nanosecond}
		a := &pawl.Agent{Name: "a", Model: script.New(script.Say("Done."))}
		if err := past.Runner("r", a).Enqueue(t.Context(), llm.User("Go.")); err != nil {
			t.Fatal(err)
		}
		if err := past.Runner("r", a).Enqueue(t.Context(), llm.User("Go.")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: enqueued twice: %v", name, err)
		}
		head, err := j.JournalRun(t.Context(), store.Scope{}, "r")
		if err != nil || !head.Queued() || head.Owner != "" {
			t.Errorf("%s: got %+v, %v", name, head, err)
		}
		if stuck, err := past.CheckLiveness(t.Context()); err != nil || len(stuck) != 0 {
			t.Errorf("%s: got %+v, %v", name, stuck, err)
		}
		eng := &durable.Engine{Journal: j}
		if left, err := j.DueRuns(t.Context(), store.DueQuery{Now: time.Now()}); err != nil || len(left) != 1 {
			t.Errorf("%s: a scan finds %+v, %v", name, left, err)
		}
		for e, err := range eng.Runner("r", a).Stream(t.Context()) {
			if err != nil || e.Code == "attempt" {
				t.Errorf("%s: got %+v, %v", name, e, err)
			}
		}
		if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
