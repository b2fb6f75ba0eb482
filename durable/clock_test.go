package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A process that resumes a run with records from the future reports that its clock is behind, and
// continues the run. A small difference, and a clock that is ahead, are not reported.
func TestSkewIsReported(t *testing.T) {
	for _, test := range []struct {
		name string
		skew time.Duration // of the clock of the second process
		want bool
	}{
		{"the same clock", 0, false},
		{"half a second behind", -500 * time.Millisecond, false},
		{"two seconds behind", -2 * time.Second, true},
		{"forty seconds behind", -40 * time.Second, true},
		{"an hour ahead", time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
			journal := new(store.MemoryJournal)
			agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("Done."))}
			first := &durable.Engine{Journal: journal}
			first.SetClock(func() time.Time { return start })
			if err := first.Runner("r", agent).Enqueue(t.Context(), llm.User("Begin.")); err != nil {
				t.Fatal(err)
			}

			var reports []error
			second := &durable.Engine{
				Journal: journal,
				Report:  func(_ string, err error) { reports = append(reports, err) },
			}
			second.SetClock(func() time.Time { return start.Add(test.skew) })
			res, err := second.Runner("r", agent).Run(context.Background())
			if err != nil || res.Text() != "Done." {
				t.Fatalf("the run ended with %+v, %v", res, err)
			}
			err = errors.Join(reports...)
			if got := errors.Is(err, durable.ErrClock); got != test.want || !got && err != nil {
				t.Errorf("reported: %v, want a difference of clocks: %t", err, test.want)
			}
		})
	}
}
