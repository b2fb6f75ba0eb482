//go:build unix

package history_test

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// A run that needs no edit costs at most 5 % more processor time with Window, by the median of
// interleaved pairs of runs. Control: a middleware that writes each request as JSON costs more.
func TestWindowCost(t *testing.T) {
	soak.Only(t, "it compares processor times")
	soak.Sequential(t)
	wasteful := pawl.Middleware{Model: func(m llm.Model) llm.Model {
		return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			_ = form(req.Messages)
			return m.Stream(ctx, req)
		})
	}}
	run := func(ws ...pawl.Middleware) time.Duration {
		s := &longwork.Survey{Pages: 150, Least: 1_000, Most: 4_000}
		runtime.GC()
		before := processor(t)
		if _, err := s.Run(t, "chat", ws...); err != nil || s.Meter.Edits > 0 {
			t.Fatal(err, s.Meter.Edits)
		}
		return processor(t) - before
	}
	ratio := func(w pawl.Middleware) float64 {
		var all []float64
		for i := range 15 {
			var without, with time.Duration
			if i%2 == 0 {
				without, with = run(), run(w)
			} else {
				with = run(w)
				without = run()
			}
			all = append(all, float64(with)/float64(without))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	with, control := ratio(history.Window(&history.WindowOptions{Tokens: 1_000_000})), ratio(wasteful)
	t.Logf("with Window %.3f, control %.3f", with, control)
	if with > 1.05 {
		t.Errorf("Window costs %.1f %% of a run that needs none", 100*(with-1))
	}
	if control <= 1.05 {
		t.Errorf("the control costs %.1f %%: the test shows nothing", 100*(control-1))
	}
}

// processor returns the processor time of this process.
func processor(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
