package durable_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// stepping is an agent that makes the given number of steps, with the given number of calls each.
func stepping(steps, calls int) *pawl.Agent {
	act := pawl.Func("act", "acts", func(context.Context, struct {
		N int `json:"n"`
	}) (string, error) {
		return "done", nil
	})
	m := script.New()
	m.Quiet = true
	for i := range steps {
		var together []script.Turn
		for j := range calls {
			together = append(together, script.Call("act", fmt.Sprintf(`{"n":%d}`, i*calls+j)))
		}
		m.Turns = append(m.Turns, script.Together(together...))
	}
	m.Turns = append(m.Turns, script.Say("done"))
	return &pawl.Agent{Model: m, Tools: []pawl.Toolset{act}, Limits: pawl.Limits{Rounds: steps + 1}}
}

// counting counts commits.
type counting struct {
	store.Journal
	commits atomic.Int64
}

func (j *counting) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	j.commits.Add(1)
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

func open(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// The commits of a step: one for reads, together with the reply that made them; two for concurrent
// writes, before and after them; for writes in order one before each, with the outcome of the write
// before, and one after the last. No call waits for a clock.
func TestCommitsPerStep(t *testing.T) {
	const steps = 20
	for _, row := range []struct {
		name       string
		effect     pawl.Effect
		concurrent bool
		commits    func(calls int) int
	}{
		{name: "reads", effect: pawl.EffectRead, commits: func(int) int { return 1 }},
		{name: "concurrent writes", effect: pawl.EffectWrite, concurrent: true, commits: func(int) int { return 2 }},
		{name: "writes in order", effect: pawl.EffectWrite, commits: func(calls int) int { return calls + 1 }},
	} {
		for _, calls := range []int{1, 4, 10} {
			// With a synthetic clock, calls wait for each other as long as necessary, also on a
			// busy machine.
			synctest.Test(t, func(t *testing.T) {
				j := &counting{Journal: new(store.MemoryJournal)}
				a := stepping(steps, calls)
				tool := a.Tools[0].(*pawl.Tool)
				tool.Effect = row.effect
				tool.Concurrent = row.concurrent

				began := time.Now()
				_, err := (&durable.Engine{Journal: j}).Runner("r", a).Run(t.Context(), llm.User("go"))
				if err != nil {
					t.Fatal(err)
				}
				waited := time.Since(began)
				commits := int(j.commits.Load()) - 1 // without the end of the run
				t.Logf("%s, %2d calls a step: %d commits in %d steps", row.name, calls, commits, steps)
				if want := steps * row.commits(calls); commits != want || waited != 0 {
					t.Errorf("%s, %d calls a step: %d commits after waiting %v, want %d and 0",
						row.name, calls, commits, waited, want)
				}
			})
		}
	}
}

// The outcome of a call is on disk soon after its end, also while a later call of its step runs.
func TestOutcomesAreStoredDuringTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(store.MemoryJournal)
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("pay", nil), script.Call("send", nil)),
			script.Say("done"))}
		stored := 0
		for _, name := range []string{"pay", "send"} {
			a.Tools = append(a.Tools, &pawl.Tool{Name: name,
				Run: func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
					if c.Name == "send" {
						time.Sleep(time.Second) // of the synthetic clock
						records, err := j.JournalRecords(ctx, store.Scope{}, "r", 0)
						if err != nil {
							return llm.ToolResult{}, err
						}
						for _, r := range records {
							if r.Kind == "outcome" {
								stored++
							}
						}
					}
					return llm.TextResult("ok"), nil
				}})
		}
		if _, err := (&durable.Engine{Journal: j}).Runner("r", a).Run(t.Context(), llm.User("go")); err != nil {
			t.Fatal(err)
		}
		if stored != 1 {
			t.Errorf("%d outcomes were stored while send ran, want that of pay", stored)
		}
	})
}

// Many runs at once over one file.
func TestManyRuns(t *testing.T) {
	n := soak.N(100, 1000) // runs at once
	eng := &durable.Engine{Journal: open(t), Lease: 5 * time.Minute}
	a := stepping(3, 2)
	var wg sync.WaitGroup
	began := time.Now()
	var bad atomic.Int64
	for i := range n {
		wg.Go(func() {
			res, err := eng.Runner(fmt.Sprint("r", i), a).Run(t.Context(), llm.User("go"))
			if err != nil || res.Text() != "done" || res.Spent.Calls != 6 {
				bad.Add(1)
				t.Errorf("run %d: %+v, %v", i, res, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	t.Logf("%d runs of 3 steps and 6 calls in %v: %.0f steps a second", n, took.Round(time.Millisecond), float64(3*n)/took.Seconds())
	runs, err := eng.Journal.JournalRuns(t.Context(), store.Scope{}, store.JournalOver, store.Page{Limit: 1000})
	if err != nil || len(runs) != n {
		t.Errorf("%d runs are over, %v", len(runs), err)
	}
}

// The cost of storing a step: a run of 100 steps, plain, over memory and over a file, in turn so
// that the machine is the same for all.
func BenchmarkStep(b *testing.B) {
	const steps = 100
	a := stepping(steps, 1)
	db, memory := open(b), new(store.MemoryJournal)
	var plain, inMemory, inFile []time.Duration
	took := func(out *[]time.Duration, run func() error) {
		began := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		*out = append(*out, time.Since(began)/steps)
	}
	n := 0
	for b.Loop() {
		n++
		took(&plain, func() error { _, err := a.Run(b.Context(), llm.User("go")); return err })
		for j, out := range map[store.Journal]*[]time.Duration{memory: &inMemory, db: &inFile} {
			took(out, func() error {
				_, err := (&durable.Engine{Journal: j}).Runner(fmt.Sprint("r", n), a).Run(b.Context(), llm.User("go"))
				return err
			})
		}
	}
	for what, all := range map[string][]time.Duration{"plain": plain, "memory": inMemory, "sqlite": inFile} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, what+"-µs/step")
	}
}
