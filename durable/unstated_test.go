package durable_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// A crash in a call whose effect is not stated asks, as in a stated write: the call is not
// repeated. The run resumes after the author states write, because that changes the order alone.
// Control: a read is repeated without a question.
func TestACrashInAnUnstatedCallAsks(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for name, journal := range map[string]store.Journal{"memory": new(store.MemoryJournal), "sqlite": db} {
		for _, row := range []struct {
			id            string
			first, second pawl.Effect
			asks          bool
		}{
			{"unstated", pawl.EffectUnstated, pawl.EffectUnstated, true},
			{"stated later", pawl.EffectUnstated, pawl.EffectWrite, true},
			{"not stated any more", pawl.EffectWrite, pawl.EffectUnstated, true},
			{"read", pawl.EffectRead, pawl.EffectRead, false},
		} {
			t.Run(name+" "+row.id, func(t *testing.T) {
				ctx, crash := context.WithCancel(t.Context())
				ran := 0
				agent := func(effect pawl.Effect) *pawl.Agent {
					f := pawl.Func("f", "does", func(context.Context, none) (string, error) {
						ran++
						crash()
						return "did", nil
					})
					f.Effect = effect
					return &pawl.Agent{Model: script.New(script.Call("f", `{}`), script.Say("done")), Tools: []pawl.Toolset{f}}
				}
				eng := &durable.Engine{Journal: &severed{Journal: journal, ctx: ctx}}
				_, err := runtest.Ended(eng.Runner(row.id, agent(row.first)).Run(ctx, llm.User("go")))
				if err == nil || ran != 1 {
					t.Fatalf("the first process ended with %v after %d calls", err, ran)
				}

				after := &durable.Engine{Journal: journal}
				res, err := runtest.Ended(after.Runner(row.id, agent(row.second)).Run(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				asked := len(res.Pending) == 1 && res.Pending[0].Outcome == pawl.OutcomeUnknown
				if asked != row.asks || asked != (ran == 1) {
					t.Errorf("it is asked about: %v, %d calls, pending %+v", asked, ran, res.Pending)
				}
			})
		}
	}
}

// severed is a journal that a process cannot reach after ctx has ended.
type severed struct {
	store.Journal
	ctx context.Context
}

func (j *severed) AppendJournal(
	ctx context.Context, l store.Lease, c *store.JournalChange, records ...store.Record,
) (int64, error) {
	if j.ctx.Err() != nil {
		return 0, errors.New("the process has crashed")
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}
