package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// When a model panics, its run releases its reservation, and concurrent runs that wait for room
// continue.
func TestAModelThatPanicsHoldsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		child := &pawl.Agent{Name: "child", Model: modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				if asked.Add(1) == 1 {
					time.Sleep(time.Second)
					panic("the model's own fault")
				}
				if yield(llm.Delta{Part: text("well"), Done: true}, nil) {
					yield(llm.Delta{Finish: llm.FinishReasonStop, Usage: &llm.Usage{Input: 1, Output: 1}}, nil)
				}
			}
		})}
		one := func(n int) script.Turn { return script.Call("child", fmt.Sprintf(`{"task":"%d"}`, n)) }
		a := &pawl.Agent{Model: script.New(script.Together(one(1), one(2), one(3)), script.Say("done")),
			Tools: []pawl.Toolset{child.Tool("")}, Limits: pawl.Limits{Tokens: 10_000}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		res, err := a.Run(ctx, llm.User("go"))
		if took := time.Since(begin); err != nil || took != time.Second || asked.Load() != 3 {
			t.Fatalf("got %v after %v and %d requests", err, took, asked.Load())
		}
		count := map[pawl.Outcome]int{}
		for _, o := range outcomes(res) {
			count[o]++
		}
		if count[pawl.OutcomeError] != 1 || count[pawl.OutcomeOK] != 2 {
			t.Errorf("got %v", count)
		}
	})
}

// When a model panics, the run ends with an error. When an observer panics, the panic reaches the
// caller. In both cases calls that started early have ended, and the run accepts no more messages.
func TestARunThatPanicsLeavesNothing(t *testing.T) {
	for _, who := range []string{"model", "watcher"} {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			look := does("look", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				<-ctx.Done()
				ended = true
				return llm.ToolResult{}, ctx.Err()
			})
			look.Effect = pawl.EffectRead
			m := modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					yield(llm.Delta{Part: call("a", "look", "{}"), Done: true}, nil)
					time.Sleep(time.Second)
					if who == "model" {
						panic(who)
					}
					yield(llm.Delta{Index: 1, Part: text("x")}, nil)
				}
			})
			var s pawl.Steering
			heard := func() (v any) {
				defer func() {
					if p := recover(); p != nil {
						v = p
					}
				}()
				a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{look}}
				ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &s})
				for e, err := range a.Stream(ctx, llm.User("go")) {
					if e.Kind == pawl.EventText {
						panic(who)
					}
					v = err
				}
				return v
			}()
			err, failed := heard.(error)
			reported := failed && strings.Contains(err.Error(), "the model panicked: model")
			if heard != who && !reported || reported != (who == "model") || !ended {
				t.Errorf("%s: heard %v, the call ended: %t", who, heard, ended)
			}
			if err := s.Steer(t.Context(), llm.User("hello?")); !errors.Is(err, pawl.ErrRunEnded) {
				t.Errorf("%s: a message to a run that is no more: %v", who, err)
			}
		})
	}
}

// A middleware may make calls only after the reply of its own call is complete, also when that call
// started early. Such calls may have effects beyond reading.
func TestAnEarlyCallMakesNoOthersBeforeItsReplyIsWhole(t *testing.T) {
	for _, finish := range []llm.FinishReason{llm.FinishReasonToolCalls, llm.FinishReasonLength} {
		synctest.Test(t, func(t *testing.T) {
			begin, wrote := time.Now(), time.Duration(0)
			write := does("write", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				wrote = time.Since(begin)
				return llm.TextResult("written"), nil
			})
			look := says("look", "seen")
			look.Effect = pawl.EffectRead
			audit := pawl.Before(func(ctx context.Context, c llm.ToolCall) (llm.ToolCall, error) {
				if c.Name == "look" {
					_, err := pawl.InvocationFrom(ctx).Do(ctx, call("", "write", "{}"))
					return c, err
				}
				return c, nil
			})
			a := &pawl.Agent{Model: slowly(written{Parts: []llm.Part{call("a", "look", "{}")},
				After: []time.Duration{0, time.Second}, Finish: finish}),
				Tools: []pawl.Toolset{write, look}, Middleware: []pawl.Middleware{audit}}
			_, res, err := collect(a.Stream(t.Context(), llm.User("go")))
			want := time.Second
			if finish == llm.FinishReasonLength {
				want = 0
			}
			if err != nil || wrote != want {
				t.Errorf("%s: wrote after %v, want %v; %v, %v", finish, wrote, want, outcomes(res), err)
			}
		})
	}
}

// A reply with a negative cost does not increase the run's budget.
func TestUsageThatCannotBe(t *testing.T) {
	for name, u := range map[string]llm.Usage{
		"less than nothing": {Input: -1_000_000, Output: 60, Cost: -5},
		"too much":          {Input: math.MaxInt, Output: math.MaxInt, Cost: math.Inf(1)},
		"no number":         {Input: 60, Output: math.MinInt, Cost: math.NaN()},
	} {
		turn := script.Call("f", `{}`)
		turn.Usage = &u
		m := script.New(script.Loop(turn))
		res, err := runtest.Ended((&pawl.Agent{Model: m, Tools: []pawl.Toolset{says("f", "x")},
			Limits: pawl.Limits{Tokens: 100, LoopThreshold: -1}}).Run(t.Context(), llm.User("go")))
		if err != nil || res.Stop != pawl.StopLimit || len(m.Requests()) > 3 {
			t.Errorf("%s: got %v, %s after %d requests, spent %+v", name, err, res.Stop, len(m.Requests()), res.Spent)
		}
		if _, err := json.Marshal(res); err != nil {
			t.Errorf("%s: it cannot be stored: %v", name, err)
		}
	}
}

// An Invocation that is used after its call has ended has no effect and causes no data race. Run
// with -race.
func TestInvocationsUsedTooLate(t *testing.T) {
	var late *pawl.Invocation
	done := make(chan struct{})
	stop := make(chan struct{})
	tool := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		late = pawl.InvocationFrom(ctx)
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					late.FromCache()
					late.Emit("still here", nil)
					_ = late.Set("a", 1)
				}
			}
		}()
		return llm.TextResult("x"), nil
	})
	a := &pawl.Agent{Model: together(named("f")...), Tools: []pawl.Toolset{tool}}
	for e, err := range a.Stream(t.Context(), llm.User("go")) {
		if err != nil {
			t.Error(err)
		}
		if e.Kind == pawl.EventStep && e.Step == 2 {
			if err := late.Set("b", 2); err == nil {
				t.Error("a value is set by a call that has ended")
			}
		}
	}
	close(stop)
	<-done
}
