package durable_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// The cost of a resume: a run is read and replayed from its start, so that a step costs the same
// for any length of run.
func BenchmarkResume(b *testing.B) {
	for _, steps := range []int{200, 2000} {
		b.Run(fmt.Sprint(steps, "-steps"), func(b *testing.B) {
			for what, j := range map[string]store.Journal{"memory": new(store.MemoryJournal), "sqlite": open(b)} {
				eng := &durable.Engine{Journal: j}
				a := stepping(steps, 1)
				if _, err := eng.Runner("r", a).Run(b.Context(), llm.User("go")); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				n := 0
				for ; n < b.N; n++ {
					res, err := eng.Runner("r", a).Run(b.Context())
					if err != nil || res.Spent.Calls != steps {
						b.Fatal(res, err)
					}
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/float64(n*steps), what+"-µs/step")
			}
		})
	}
}

// A thousand concurrent runs over one file, of three steps with two calls each.
func BenchmarkRunsAtOnce(b *testing.B) {
	const runs, steps = 1000, 3
	a := stepping(steps, 2)
	for b.Loop() {
		j := &counting{Journal: open(b)}
		eng := &durable.Engine{Journal: j, Lease: 5 * time.Minute}
		var wg sync.WaitGroup
		began := time.Now()
		for i := range runs {
			wg.Go(func() {
				if _, err := eng.Runner(fmt.Sprint("r", i), a).Run(b.Context(), llm.User("go")); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.ReportMetric(runs/time.Since(began).Seconds(), "runs/s")
		b.ReportMetric(float64(j.commits.Load()-runs)/runs/steps, "commits/step")
	}
}
