package history_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// The work for a request does not grow with the run: at 2,000 steps it is less than a millisecond
// of the processor.
func TestWindowLinear(t *testing.T) {
	soak.Sequential(t)
	s := &longwork.Survey{Pages: soak.N(1_000, 2_000), Least: 2_000, Most: 8_000}
	var inside time.Duration // of the model
	var spent []time.Duration
	timed := func(add func(time.Duration)) pawl.Middleware {
		return pawl.Middleware{Model: func(m llm.Model) llm.Model {
			return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					start, waits := machine.CPU(), time.Duration(0)
					for d, err := range m.Stream(ctx, req) {
						at := machine.CPU()
						if !yield(d, err) {
							return
						}
						waits += machine.CPU() - at
					}
					add(machine.CPU() - start - waits)
				}
			})
		}}
	}
	o := options()
	count := pawl.Middleware{Model: func(m llm.Model) llm.Model {
		return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			in, _ := req.Bounds()
			s.Current = in * 10 / 34
			s.Meter.Requests++
			return m.Stream(ctx, req)
		})
	}}
	a := s.Agent(s, timed(func(d time.Duration) { spent, inside = append(spent, d-inside), 0 }), history.Window(&o),
		timed(func(d time.Duration) { inside = d }), count)
	if _, err := a.Run(context.Background(), llm.User("Survey the mill.")); err != nil {
		t.Fatal(err)
	}
	median := func(d []time.Duration) time.Duration { d = slices.Sorted(slices.Values(d)); return d[len(d)/2] }
	early, late := median(spent[100:300]), median(spent[len(spent)-200:])
	t.Logf("%d requests; median %v at the beginning, %v at the end; most %v", len(spent), early, late, slices.Max(spent))
	if late > time.Millisecond {
		t.Errorf("a request takes %v at the end of the run", late)
	}
}
