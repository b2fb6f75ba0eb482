package pawltest_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

func TestAgentsPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(_ *testing.T, a *pawl.Agent) pawl.Runner { return pawltest.InMemory(a) })
}

// The negative control: a runner with a fault does not pass.
func TestFaultyRunnersFailTheSuite(t *testing.T) {
	type yielder = func(pawl.Event, error) bool
	drop := func(kind pawl.EventKind) func(yielder) yielder {
		return func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool { return err == nil && e.Kind == kind || yield(e, err) }
		}
	}
	for name, test := range map[string]struct {
		change func(yield yielder) yielder
		want   string
	}{
		"tells of no beginning": {drop(pawl.EventRunStarted), "run_started came 0 times"},
		"tells of no end":       {drop(pawl.EventRunEnded), "got <nil>"},
		"tells of a step less":  {drop(pawl.EventStep), "0 steps"},
		"tells of no calls":     {drop(pawl.EventCallReady), "0 of 1 calls were emitted"},
		"loses text in silence": {drop(pawl.EventText), "it emits"},
		"tells of one end twice": {func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool {
				if err == nil && e.Kind == pawl.EventCallCompleted && !yield(e, err) {
					return false
				}
				return yield(e, err)
			}
		}, "ended twice"},
		"goes on after the end": {func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool {
				if !yield(e, err) {
					return false
				}
				if err == nil && e.Kind == pawl.EventRunEnded && e.Run == "run" {
					e.Kind, e.Seq = pawl.EventNotice, e.Seq+1
					return yield(e, nil)
				}
				return true
			}
		}, "came after run_ended"},
		"swallows errors": {func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool { return err != nil || yield(e, err) }
		}, "<nil>"},
		"hides a limit": {func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool {
				var stop *pawl.StopError
				return errors.As(err, &stop) || yield(e, err)
			}
		}, "the error of a run that stopped with limit is nil"},
		"loses the answer": {func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool {
				if e.Result != nil {
					res := *e.Result
					res.Answer = nil
					e.Result = &res
				}
				return yield(e, err)
			}
		}, "the result is"},
		"has another answer": {func(yield yielder) yielder {
			return func(e pawl.Event, err error) bool {
				if e.Result != nil {
					res := *e.Result
					res.Messages = res.Messages[:1]
					e.Result = &res
				}
				return yield(e, err)
			}
		}, "the result is"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			pawltest.TestRunner(r,
				func(_ recorder, a *pawl.Agent) pawl.Runner { return changed{pawltest.InMemory(a), test.change} })
			if all := strings.Join(*r.log, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("the suite says nothing of %q:\n%s", test.want, all)
			}
		})
	}
}

// changed is a runner whose events go through change.
type changed struct {
	pawl.Runner
	change func(func(pawl.Event, error) bool) func(pawl.Event, error) bool
}

// Stream yields the events that change lets through.
func (c changed) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) { c.Runner.Stream(ctx, msgs...)(c.change(yield)) }
}
