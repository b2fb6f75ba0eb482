package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// lookingAt is an agent that looks, and then answers. look may end with an error.
func lookingAt(effect pawl.Effect, look func(ctx context.Context) error) *pawl.Agent {
	tool := pawl.Func("look", "looks", func(ctx context.Context, _ struct{}) (string, error) {
		return "seen", look(ctx)
	})
	tool.Effect = effect
	return &pawl.Agent{Model: script.New(script.Call("look", `{}`), script.Say("done")), Tools: []pawl.Toolset{tool}}
}

// kindsOf returns the number of the records of a run by kind.
func kindsOf(t *testing.T, j store.Journal, id string) map[string]int {
	t.Helper()
	records, err := j.JournalRecords(t.Context(), store.Scope{}, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range records {
		kinds[r.Kind]++
	}
	return kinds
}

// A call that only reads has no intent, and is in the ledger when it has ended. Writes are the
// control.
func TestLedgerOfReads(t *testing.T) {
	fails := errors.New("it is dark")
	for _, row := range []struct {
		name    string
		effect  pawl.Effect
		err     error
		intents int
		want    journal.EffectState
	}{
		{name: "a read", effect: pawl.EffectRead, want: journal.EffectCompleted},
		{name: "a computation", effect: pawl.EffectPure, want: journal.EffectCompleted},
		{name: "a read that fails", effect: pawl.EffectRead, err: fails, want: journal.EffectFailed},
		{name: "a write", effect: pawl.EffectWrite, intents: 1, want: journal.EffectCompleted},
		{name: "an idempotent write", effect: pawl.EffectIdempotent, intents: 1, want: journal.EffectCompleted},
	} {
		t.Run(row.name, func(t *testing.T) {
			eng := &durable.Engine{Journal: new(store.MemoryJournal)}
			a := lookingAt(row.effect, func(context.Context) error { return row.err })
			if _, err := eng.Runner("r", a).Run(t.Context(), llm.User("go")); err != nil {
				t.Fatal(err)
			}
			if got := kindsOf(t, eng.Journal, "r")["intent"]; got != row.intents {
				t.Errorf("the journal has %d intents, want %d", got, row.intents)
			}

			ledger, err := eng.Effects(t.Context(), "r")
			if err != nil || len(ledger) != 1 {
				t.Fatalf("the ledger has %+v, %v, want one entry", ledger, err)
			}
			e := ledger[0]
			switch {
			case e.Key != "run/1/0" || e.Tool != "look" || e.Effect != row.effect || e.State != row.want:
				t.Errorf("the entry is %+v, want look, %v, %s", e, row.effect, row.want)
			case e.Attempts != 1 || e.Began.IsZero() || e.Ended.IsZero():
				t.Errorf("the entry has %d attempts, from %v to %v", e.Attempts, e.Began, e.Ended)
			}
		})
	}
}

// A read that a process did not end has no entry, since it may be repeated, and is repeated when
// the run resumes.
func TestInterruptedRead(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	ctx, cancel := context.WithCancel(t.Context())
	var looks atomic.Int32
	look := func(ctx context.Context) error {
		if looks.Add(1) == 1 {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	_, _ = runtest.Ended(eng.Runner("r", lookingAt(pawl.EffectRead, look)).Run(ctx, llm.User("go")))
	ledger, err := eng.Effects(t.Context(), "r")
	if err != nil || len(ledger) != 0 {
		t.Errorf("after the interruption the ledger has %+v, %v", ledger, err)
	}

	res, err := eng.Runner("r", lookingAt(pawl.EffectRead, look)).Run(t.Context())
	if err != nil || res.Text() != "done" || looks.Load() != 2 {
		t.Errorf("resumed: %+v, %v after %d looks", res, err, looks.Load())
	}
	ledger, err = eng.Effects(t.Context(), "r")
	if err != nil || len(ledger) != 1 || ledger[0].State != journal.EffectCompleted {
		t.Errorf("in the end the ledger has %+v, %v", ledger, err)
	}
}

// An approved read has an intent, because it uses the approval up.
func TestApprovedReadHasIntent(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	asking := func() *pawl.Agent {
		a := lookingAt(pawl.EffectRead, func(context.Context) error { return nil })
		a.Middleware = []pawl.Middleware{pawl.Approve(policy.Rules{Ask: []string{"look"}}.Approve)}
		return a
	}
	res, err := runtest.Ended(eng.Runner("r", asking()).Run(t.Context(), llm.User("go")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v, want a question", res, err)
	}
	answer := llm.DecisionMessage(res.Pending[0].Approve("ann"))
	if _, err := eng.Runner("r", asking()).Run(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	if got := kindsOf(t, eng.Journal, "r")["intent"]; got != 1 {
		t.Errorf("the journal has %d intents, want 1", got)
	}
}

// queried is a journal that counts its queries.
type queried struct {
	store.Journal
	heads, records atomic.Int32
}

func (j *queried) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	j.heads.Add(1)
	return j.Journal.JournalRun(ctx, s, id)
}

func (j *queried) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	j.records.Add(1)
	return j.Journal.JournalRecords(ctx, s, id, after)
}

// A run that does not exist costs one query.
func TestQueriesOfANewRun(t *testing.T) {
	j := &queried{Journal: new(store.MemoryJournal)}
	a := lookingAt(pawl.EffectRead, func(context.Context) error { return nil })
	if _, err := (&durable.Engine{Journal: j}).Runner("r", a).Run(t.Context(), llm.User("go")); err != nil {
		t.Fatal(err)
	}
	if heads, records := j.heads.Load(), j.records.Load(); heads != 1 || records != 0 {
		t.Errorf("%d queries for the head, %d for records, want 1 and 0", heads, records)
	}
}
