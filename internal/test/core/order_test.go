package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// An approved Write does not overtake an earlier Write that waits for its answer. It keeps its
// approval. Questions are asked together, and a Read runs at once.
func TestAWriteDoesNotOvertakeAPendingWrite(t *testing.T) {
	var ran []string
	tool := func(name string, effect pawl.Effect) *pawl.Tool {
		f := does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran = append(ran, name)
			return llm.TextResult(name), nil
		})
		f.Effect = effect
		return f
	}
	newAgent := func() *pawl.Agent {
		return &pawl.Agent{Model: together(named("pay", "send", "denied", "look", "file")...),
			Tools: []pawl.Toolset{tool("pay", pawl.EffectWrite), tool("send", pawl.EffectWrite), tool("denied", pawl.EffectWrite),
				tool("look", pawl.EffectRead), tool("file", pawl.EffectIdempotent)},
			Middleware: []pawl.Middleware{asksFor("pay"), asksFor("send"), pawl.Approve(func(_ context.Context,
				c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
				if c.Name == "denied" {
					return pawl.Approval{Verdict: pawl.VerdictDeny}, nil
				}
				return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
			})}}
	}
	pending := func(res *pawl.Result) (names []string) {
		for _, w := range res.Pending {
			names = append(names, w.Call.Name)
		}
		return names
	}
	first, err := step(t, t.Context(), newAgent())
	if err != nil || !slices.Equal(pending(first), []string{"pay", "send"}) || !slices.Equal(ran, []string{"look"}) {
		t.Fatalf("%v, pending %v, ran %v", err, pending(first), ran)
	}
	held := first.Steps[0].Executions[4]
	if held.Outcome != pawl.OutcomePending || len(held.Pending) != 0 || held.Result.Parts != nil ||
		held.Error != "Not run yet: the call before it, pay, waits for an answer." {
		t.Errorf("got %+v", held)
	}
	second, err := runtest.Ended(newAgent().Resume(t.Context(), roundTrip(t, first),
		llm.DecisionMessage(first.Pending[1].Approve("ann"))))
	if err != nil || !slices.Equal(pending(second), []string{"pay", "send"}) || len(ran) != 1 {
		t.Fatalf("%v, pending %v, ran %v", err, pending(second), ran)
	}
	third, err := runtest.Ended(newAgent().Resume(t.Context(), roundTrip(t, second),
		llm.DecisionMessage(second.Pending[0].Approve("ann"))))
	if err != nil || third.Stop != pawl.StopAnswer || third.Spent.Rounds != 1 || third.Spent.Calls != 4 {
		t.Errorf("%v, %s, spent %+v", err, third.Stop, third.Spent)
	}
	if diff := cmp.Diff(ran, []string{"look", "pay", "send", "file"}); diff != "" {
		t.Error(diff)
	}
	// If the run is given up, the held call gets a result, too.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(pawl.ErrCancelled)
	given, err := runtest.Ended(newAgent().Resume(ctx, roundTrip(t, first)))
	if err != nil || len(given.Calls()) != 0 || len(ran) != 4 {
		t.Errorf("%v, open %v, ran %v", err, given.Calls(), ran)
	}
}

// chaos draws a tool: any effect, and any way to end.
func chaos(rnd *rand.Rand, name string, release <-chan struct{}) *pawl.Tool {
	way, took := rnd.IntN(9), time.Duration(rnd.IntN(4))*time.Second
	t := does(name, func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		select {
		case <-time.After(took):
		case <-ctx.Done():
		}
		switch way {
		case 0:
			panic("chaos")
		case 1:
			runtime.Goexit()
		case 2:
			<-release // it ignores the end of its context
		case 3:
			return llm.ToolResult{}, errors.New("it fails")
		}
		if v := pawl.InvocationFrom(ctx); v.Tool().Effect == pawl.EffectCompose && len(c.Args) > 2 {
			var plan struct{ Calls []llm.ToolCall }
			if err := json.Unmarshal(c.Args, &plan); err != nil {
				return llm.ToolResult{}, err
			}
			if _, err := v.Do(ctx, plan.Calls...); err != nil {
				return llm.ToolResult{}, err
			}
		}
		return llm.TextResult("fine"), ctx.Err()
	})
	t.Effect = pawl.Effect(rnd.IntN(6))
	t.Concurrent, t.Timeout = rnd.IntN(6) == 0, 10*time.Second
	if rnd.IntN(4) == 0 {
		key := fmt.Sprint("key", rnd.IntN(2))
		t.Serial = func(json.RawMessage) string { return key }
	}
	return t
}

// waits reports whether a call of b waits for an earlier call of a.
func waits(b, a *pawl.Tool) bool {
	free := func(t *pawl.Tool) bool { return t.Concurrent || t.Effect == pawl.EffectPure }
	writes := func(t *pawl.Tool) bool { return t.Effect == pawl.EffectWrite || t.Effect == pawl.EffectIdempotent }
	same := a.Serial != nil && b.Serial != nil && a.Serial(nil) == b.Serial(nil)
	return same || !free(a) && !free(b) && (writes(a) || writes(b))
}

// For random batches, limits, tools that panic, fail, end their goroutine or ignore their context,
// and cancellations: every call ends once, and starts after the calls that it waits for have ended.
func TestOrderOfRandomBatches(t *testing.T) {
	outcome := map[pawl.Outcome]int{}
	for seed := range soak.N[uint64](400, 10_000) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			release := make(chan struct{})
			defer synctest.Wait()
			defer close(release)
			tools := make([]*pawl.Tool, 6)
			a := &pawl.Agent{Parallel: pawl.Parallel{Limit: 1 + rnd.IntN(4), FailFast: rnd.IntN(5) == 0,
				StopOnBlock: rnd.IntN(5) == 0}}
			for i := range tools {
				tools[i] = chaos(rnd, fmt.Sprint("t", i), release)
				a.Tools = append(a.Tools, tools[i])
			}
			if rnd.IntN(3) == 0 {
				a.Middleware = []pawl.Middleware{asksFor("t0"), pawl.Before(func(_ context.Context,
					c llm.ToolCall) (llm.ToolCall, error) {
					if c.Name == "t1" {
						return c, pawl.BlockError("chaos")
					}
					return c, nil
				})}
			}
			draw := func(args func() json.RawMessage) (calls []llm.ToolCall) {
				for range 1 + rnd.IntN(8) {
					calls = append(calls, llm.ToolCall{Name: fmt.Sprint("t", rnd.IntN(len(tools))), Args: args()})
				}
				return calls
			}
			a.Model = together(draw(func() json.RawMessage {
				b, err := json.Marshal(map[string]any{"calls": draw(func() json.RawMessage { return json.RawMessage("{}") })})
				if err != nil {
					t.Fatal(err)
				}
				return b
			})...)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if rnd.IntN(3) == 0 {
				time.AfterFunc(time.Duration(1+rnd.IntN(8))*time.Second, func() { cancel(pawl.ErrCancelled) })
			}
			events, res, _ := collect(a.Stream(ctx, llm.User("go")))
			if res == nil {
				t.Fatalf("seed %d: no result", seed)
			}
			started, ended := map[llm.Key]int{}, map[llm.Key]int{}
			batches := map[string][]llm.Key{} // by the call around them
			called := map[llm.Key]*pawl.Tool{}
			for at, e := range events {
				switch e.Kind {
				case pawl.EventCallStarted:
					if started[e.Path] == 0 {
						started[e.Path] = at
					}
				case pawl.EventCallCompleted:
					if ended[e.Path] != 0 {
						t.Errorf("seed %d: %s ended twice", seed, e.Path)
					}
					ended[e.Path] = at
					outcome[e.Execution.Outcome]++
					outer := e.Path[:strings.LastIndexByte(string(e.Path), '/')]
					batches[string(outer)] = append(batches[string(outer)], e.Path)
					for _, tool := range tools {
						if tool.Name == e.Execution.Call.Name {
							called[e.Path] = tool
						}
					}
				}
			}
			for _, batch := range batches {
				slices.Sort(batch) // at most ten calls
				for j := range batch {
					for i := range j {
						a, b := batch[i], batch[j]
						if started[b] != 0 && waits(called[b], called[a]) && ended[a] > started[b] {
							t.Errorf("seed %d: %s (%s) started before %s (%s) had ended", seed, b, called[b].Effect, a, called[a].Effect)
						}
					}
				}
			}
			if n := len(res.Steps[0].Executions); res.Steps[0].Executions[n-1].Key != llm.Key(fmt.Sprintf("run/1/%d", n-1)) {
				t.Errorf("seed %d: got %+v", seed, res.Steps[0].Executions)
			}
		})
	}
	t.Log(outcome)
	for _, o := range []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeError, pawl.OutcomePanicked, pawl.OutcomeTimeout,
		pawl.OutcomeCancelled, pawl.OutcomeSkipped, pawl.OutcomeBlocked, pawl.OutcomePending} {
		if outcome[o] < 10 {
			t.Errorf("%s: %d calls; the batches are too tame", o, outcome[o])
		}
	}
}
