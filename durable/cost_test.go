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

// A step of concurrent calls takes two commits: one before its calls, and one after them. Calls
// that run in order take at most two each. The end of a run takes one more.
func TestCommitsPerStep(t *testing.T) {
	const steps = 20
	for i, calls := range []int{1, 4, 10, 1, 4, 10} {
		concurrent, right := i < 3, 2.0
		if !concurrent {
			right = float64(2 * calls)
		}
		// With a synthetic clock, calls wait for each other as long as necessary, also on a busy
		// machine.
		synctest.Test(t, func(t *testing.T) {
			j := &counting{Journal: new(store.MemoryJournal)}
			a := stepping(steps, calls)
			a.Tools[0].(*pawl.Tool).Concurrent = concurrent
			if _, err := (&durable.Engine{Journal: j}).Runner("r", a).Run(t.Context(),
				llm.User("go")); err != nil {
				t.Fatal(err)
			}
			per := float64(j.commits.Load()-1) / steps
			t.Logf("%2d calls a step: %.2f commits a step", calls, per)
			if per > right {
				t.Errorf("%d calls a step, concurrent: %t: %.2f commits a step, %v are right", calls, concurrent, per, right)
			}
		})
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
