package pawl_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// inTurn is a custom executor that starts calls as Parallel does and executes them one after
// another.
type inTurn struct{ pawl.Parallel }

func (inTurn) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return func(yield func(pawl.Event) bool) {
		more := true
		emit := func(e pawl.Event) { more = more && yield(e) }
		for _, t := range tasks {
			emit(t.Completed(t.Do(ctx, emit)))
		}
	}
}

// A call that started early and waits for its reply holds a slot that earlier calls may need. It
// must continue as soon as the reply is complete, before any earlier call has ended.
func TestEarlyCallsThatWaitHoldNothingUp(t *testing.T) {
	waits := map[string]func(v *pawl.Invocation){
		"for the conversation": func(v *pawl.Invocation) { v.Messages() },
		"to be certain":        func(v *pawl.Invocation) { v.WaitForReply() },
		"to tell more": func(v *pawl.Invocation) {
			for i := range 150 {
				v.Emit(fmt.Sprint(i), nil)
			}
		},
	}
	executors := map[string]pawl.Executor{"one": pawl.Parallel{Limit: 1}, "two": pawl.Parallel{Limit: 2},
		"in turn": inTurn{pawl.Parallel{Limit: 10}}}
	for how, wait := range waits {
		for with, executor := range executors {
			synctest.Test(t, func(t *testing.T) {
				pure := does("pure", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
					wait(pawl.InvocationFrom(ctx))
					return llm.TextResult("seen"), nil
				})
				pure.Effect, pure.Timeout = pawl.EffectPure, -1
				var parts []llm.Part
				for i := range 10 {
					parts = append(parts, call(fmt.Sprint("w", i), "write", "{}"))
				}
				for i := range 10 {
					parts = append(parts, call(fmt.Sprint("p", i), "pure", fmt.Sprintf(`{"n":%d}`, i)))
				}
				after := append(slices.Repeat([]time.Duration{ms}, len(parts)), time.Second)
				a := &pawl.Agent{Model: slowly(written{Parts: parts, After: after}),
					Tools: []pawl.Toolset{says("write", "done"), pure}, Executor: executor}
				begin := time.Now()
				events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
				if took := time.Since(begin); err != nil || took != time.Second+20*ms {
					t.Fatalf("%s, %s: got %v after %v", how, with, err, took)
				}
				told := map[llm.Key]int{}
				for _, e := range events {
					if e.Kind == pawl.EventProgress {
						if e.Text != fmt.Sprint(told[e.Path]) {
							t.Errorf("%s, %s: %s told %q as its word %d", how, with, e.Path, e.Text, told[e.Path])
						}
						told[e.Path]++
					}
				}
				for key, n := range told {
					if n != 150 {
						t.Errorf("%s, %s: %d words of %s", how, with, n, key)
					}
				}
				for _, o := range outcomes(res) {
					if o != pawl.OutcomeOK {
						t.Errorf("%s, %s: outcomes %v", how, with, outcomes(res))
					}
				}
			})
		}
	}
}
