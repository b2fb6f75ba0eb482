package pawltest_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
)

func TestParallelPassesTheSuite(t *testing.T) {
	for name, p := range map[string]pawl.Parallel{"default": {}, "one at a time": {Limit: 1}, "not early": {NoEarly: true}} {
		t.Run(name, func(t *testing.T) {
			pawltest.TestExecutor(t, func(*testing.T) pawl.Executor { return p })
		})
	}
}

// executorFunc is an Executor.
type executorFunc func(context.Context, []pawl.Task) iter.Seq[pawl.Event]

func (f executorFunc) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return f(ctx, tasks)
}

// The negative control: an executor with a fault does not pass.
func TestFaultyExecutorsFailTheSuite(t *testing.T) {
	type yielder = func(pawl.Event) bool
	change := func(edit func(*pawl.Execution)) func(pawl.Event, yielder) bool {
		return func(e pawl.Event, yield yielder) bool {
			x := *e.Execution
			edit(&x)
			e.Execution = &x
			return yield(e)
		}
	}
	twice := func(e pawl.Event, yield yielder) bool {
		if !yield(e) {
			return false
		}
		return yield(e)
	}
	for name, test := range map[string]struct {
		completed func(pawl.Event, yielder) bool
		want      string
	}{
		"completes nothing":    {func(pawl.Event, yielder) bool { return true }, "was not completed"},
		"completes twice":      {twice, "completed twice"},
		"has another key":      {change(func(x *pawl.Execution) { x.Key = "run/9/9" }), "no task has its key"},
		"has another call":     {change(func(x *pawl.Execution) { x.Call.ID = "other" }), `"other"`},
		"invents an outcome":   {change(func(x *pawl.Execution) { x.Outcome = "fine" }), `"fine"`},
		"loses the question":   {change(func(x *pawl.Execution) { x.Pending = nil }), "want ok pending"},
		"hides failures":       {change(func(x *pawl.Execution) { x.Outcome = pawl.OutcomeOK }), "the outcomes are"},
		"leaves writes behind": {change(func(x *pawl.Execution) { x.Outcome = pawl.OutcomeUnknown }), "the outcomes are"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			pawltest.TestExecutor(r, func(recorder) pawl.Executor {
				return executorFunc(func(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
					return func(yield func(pawl.Event) bool) {
						for e := range (pawl.Parallel{}).Execute(ctx, tasks) {
							var more bool
							if e.Kind == pawl.EventCallCompleted {
								more = test.completed(e, yield)
							} else {
								more = yield(e)
							}
							if !more {
								return
							}
						}
					}
				})
			})
			if all := strings.Join(*r.log, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("the suite says nothing of %q:\n%s", test.want, all)
			}
		})
	}
}
