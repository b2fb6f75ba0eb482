package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestResultsStandInCallOrder(t *testing.T) {
	const n = 30
	turn := make([]chan struct{}, n+1) // the calls end in reverse order
	for i := range turn {
		turn[i] = make(chan struct{})
	}
	close(turn[n])
	tool := pawl.Func("f", "", func(_ context.Context, in struct {
		I int `json:"i"`
	}) (string, error) {
		<-turn[in.I+1]
		close(turn[in.I])
		return fmt.Sprint("r", in.I), nil
	})
	tool.Effect = pawl.EffectRead
	var calls []llm.ToolCall
	for i := range n {
		calls = append(calls, llm.ToolCall{Name: "f", Args: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i))})
	}
	res, err := step(t, t.Context(), &pawl.Agent{Model: together(calls...), Tools: []pawl.Toolset{tool},
		Parallel: pawl.Parallel{Limit: n}})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range res.Messages[2].Parts {
		if r := p.(llm.ToolResult); r.CallID != fmt.Sprint("c", i) || r.Text() != fmt.Sprint("r", i) ||
			r.Key != llm.Key(fmt.Sprint("run/1/", i)) {
			t.Errorf("result %d: got %+v", i, r)
		}
	}
}

// gauge counts concurrent calls.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() func() {
	n := g.now.Add(1)
	for {
		m := g.most.Load()
		if n <= m || g.most.CompareAndSwap(m, n) {
			break
		}
	}
	return func() { g.now.Add(-1) }
}

// A run executes at most Limit tools at a time. Ten plans of ten calls of one millisecond are a
// hundred calls that share ten slots.
func TestTenPlansOfTenShareTenSlots(t *testing.T) {
	for _, limit := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var g gauge
			leaf := does("leaf", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				defer g.enter()()
				time.Sleep(time.Millisecond)
				return llm.TextResult("ok"), nil
			})
			leaf.Effect = pawl.EffectRead
			plan := does("plan", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				calls := make([]llm.ToolCall, 10)
				for i := range calls {
					calls[i] = call("", "leaf", "{}")
				}
				xs, err := pawl.InvocationFrom(ctx).Do(ctx, calls...)
				for i, x := range xs {
					if x.Outcome != pawl.OutcomeOK || x.Index != i || x.Call.ID != fmt.Sprint("s", i) {
						t.Errorf("inner call %d: %+v", i, x)
					}
				}
				return llm.TextResult(strconv.Itoa(len(xs))), err
			})
			plan.Effect = pawl.EffectCompose
			plans := make([]llm.ToolCall, 10)
			for i := range plans {
				plans[i] = llm.ToolCall{Name: "plan", Args: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i))}
			}
			begin := time.Now()
			res, err := step(t, t.Context(), &pawl.Agent{Model: together(plans...),
				Tools: []pawl.Toolset{leaf, plan}, Parallel: pawl.Parallel{Limit: limit}})
			if err != nil || res.Stop != pawl.StopAnswer {
				t.Fatalf("got %s, %v", res.Stop, err)
			}
			want := int64(limit)
			if limit == 0 {
				want = 10
			}
			if g.most.Load() != want {
				t.Errorf("limit %d: %d at once, want %d", limit, g.most.Load(), want)
			}
			if took := time.Since(begin); took != time.Duration(100/want+min(1, 100%want))*time.Millisecond {
				t.Errorf("limit %d: took %v", limit, took)
			}
			if res.Spent.Calls != 110 {
				t.Errorf("%d calls are counted, want 110", res.Spent.Calls)
			}
		})
	}
}

func goroutine() string {
	b := make([]byte, 64)
	return strings.Fields(string(b[:runtime.Stack(b, false)]))[1]
}

// A call that only computes and is alone in its step runs on the caller's goroutine. Any other call
// has a goroutine of its own, so that it can be abandoned.
func TestASingleCallRunsOnTheCallersGoroutine(t *testing.T) {
	var ran []string
	var mu sync.Mutex
	tool := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, goroutine())
		return llm.TextResult(""), nil
	})
	tool.Effect = pawl.EffectPure
	if _, err := (&pawl.Agent{Model: together(named("f")...), Tools: []pawl.Toolset{tool}}).Run(t.Context(),
		llm.User("go")); err != nil {
		t.Fatal(err)
	}
	if ran[0] != goroutine() {
		t.Error("a single call ran on another goroutine")
	}
	if _, err := (&pawl.Agent{Model: together(named("f", "f")...), Tools: []pawl.Toolset{tool}}).Run(t.Context(),
		llm.User("go")); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(ran[1:], goroutine()) {
		t.Error("of two calls one ran on the caller's goroutine, so it could hold the run")
	}
}

func TestSerialKeysRunOneAfterAnotherInCallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		inside := map[string]*gauge{"a": {}, "b": {}}
		tool := pawl.Func("f", "", func(_ context.Context, in struct {
			Key string `json:"key"`
			I   int    `json:"i"`
		}) (string, error) {
			if g := inside[in.Key]; g != nil {
				defer g.enter()()
			}
			time.Sleep(time.Duration(20-in.I) * time.Millisecond) // later calls end first
			mu.Lock()
			defer mu.Unlock()
			order = append(order, in.Key+strconv.Itoa(in.I))
			return "", nil
		})
		tool.Concurrent = true
		tool.Serial = func(args json.RawMessage) string {
			var in struct{ Key string }
			if err := json.Unmarshal(args, &in); err != nil {
				panic(err) // a call with unchecked arguments may have any effect
			}
			return in.Key
		}
		var calls []llm.ToolCall
		for i, k := range []string{"a", "b", "", "a", "a", "b", "", "a"} {
			calls = append(calls, llm.ToolCall{Name: "f", Args: json.RawMessage(fmt.Sprintf(`{"key":%q,"i":%d}`, k, i))})
		}
		calls = append(calls, llm.ToolCall{Name: "f", Args: json.RawMessage(`{"key":`)})
		res, err := step(t, t.Context(), &pawl.Agent{Model: together(calls...), Tools: []pawl.Toolset{tool}})
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range map[string][]string{"a": {"a0", "a3", "a4", "a7"}, "b": {"b1", "b5"}} {
			got := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return !strings.HasPrefix(s, k) })
			if diff := cmp.Diff(got, want); diff != "" || inside[k].most.Load() != 1 {
				t.Errorf("key %s, %d at once: %s", k, inside[k].most.Load(), diff)
			}
		}
		if order[0] != "6" { // it sleeps least and waits for no key
			t.Errorf("the call without a key waited: %v", order)
		}
		if got := outcomes(res); got[8] != pawl.OutcomeInvalid {
			t.Errorf("got %v", got)
		}
	})
}

// Breaking out of the events cancels the running calls and waits for them, also if the consumer
// panics. No goroutine remains.
func TestConsumersThatBreakOff(t *testing.T) {
	for _, how := range []string{"break", "panic"} {
		for _, n := range []int{1, 5} {
			var began, ended atomic.Int64
			slow := does("slow", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				began.Add(1)
				for range 100 {
					v.Emit("tick", nil)
				}
				<-ctx.Done()
				for range 100 {
					v.Emit("tock", nil)
				}
				ended.Add(1)
				return llm.ToolResult{}, ctx.Err()
			})
			a := &pawl.Agent{Model: together(named(slices.Repeat([]string{"slow"}, n)...)...), Tools: []pawl.Toolset{slow}}
			func() {
				defer func() { _ = recover() }()
				for e, err := range a.Stream(t.Context(), llm.User("go")) {
					if err != nil {
						t.Error(err)
					}
					if e.Kind == pawl.EventProgress {
						if how == "panic" {
							panic("the consumer's own fault")
						}
						break
					}
				}
			}()
			if how == "break" && (began.Load() == 0 || ended.Load() != began.Load()) {
				t.Errorf("%s: of %d calls that were begun %d had ended", how, began.Load(), ended.Load())
			}
		}
	}
}

// An executor yields its events in a consistent order for any concurrency.
func TestEventsOfACallStandInOrder(t *testing.T) {
	talks := does("talks", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { v.Emit("word", json.RawMessage(`1`)) })
		}
		wg.Wait()
		return llm.TextResult(""), nil
	})
	for _, n := range []int{1, 20} {
		got := map[llm.Key]string{}
		seq := int64(0)
		for e, err := range (&pawl.Agent{Model: together(named(slices.Repeat([]string{"talks"}, n)...)...),
			Tools: []pawl.Toolset{talks}}).Stream(t.Context(), llm.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; e.Seq != seq {
				t.Errorf("event %d has number %d", seq, e.Seq)
			}
			switch e.Kind {
			case pawl.EventCallStarted, pawl.EventProgress, pawl.EventCallCompleted:
				got[e.Path] += string(e.Kind)[:6] + " "
			}
		}
		if len(got) != n {
			t.Errorf("%d calls told of themselves, want %d", len(got), n)
		}
		for k, v := range got {
			if v != "call_s progre progre progre progre progre call_c " {
				t.Errorf("%s: %s", k, v)
			}
		}
	}
}

// A custom executor gets tasks that are plain data, and may execute them in any way.
func TestAnExecutorOfOnesOwn(t *testing.T) {
	var seen []string
	a := &pawl.Agent{Name: "ann", Model: together(named("a", "b")...), Parallel: pawl.Parallel{Limit: 1},
		Tools: []pawl.Toolset{says("a", "1"), says("b", "2")},
		Executor: by(func(ctx context.Context, task pawl.Task, emit emitter) (pawl.Execution, error) {
			var back pawl.Task
			if err := json.Unmarshal([]byte(jsonOf(t, task)), &back); err != nil {
				t.Error(err)
			}
			seen = append(seen, fmt.Sprint(back.Agent, " ", back.Run, " ", back.Step, " ", back.Key, " ",
				back.Index, " ", back.Call.Name))
			if x := back.Do(t.Context(), func(pawl.Event) {}); x.Outcome != pawl.OutcomeError || x.Result.Text() == "" {
				t.Errorf("a task away from its run: got %+v", x)
			}
			return task.Do(ctx, emit), nil
		})}
	res, err := step(t, t.Context(), a)
	if err != nil || res.Stop != pawl.StopAnswer {
		t.Errorf("got %s, %v", res.Stop, err)
	}
	if diff := cmp.Diff(seen, []string{"ann run 1 run/1/0 0 a", "ann run 1 run/1/1 1 b"}); diff != "" {
		t.Error(diff)
	}
	if got := say(res.Messages[2:3]); got != "tool: c0 = 1\ntool: c1 = 2\n" {
		t.Errorf("got %s", got)
	}
}

// Concurrent calls share no unguarded state. Run with -race.
func TestManyRunsOfOneAgentAtOnce(t *testing.T) {
	tool := does("f", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		if err := v.Set(c.ID, c.ID); err != nil {
			return llm.ToolResult{}, err
		}
		v.Emit(c.ID, nil)
		_, err := v.Get("c0", new(string))
		return llm.TextResult(fmt.Sprint(len(v.Messages()), len(v.Tools()), v.Agent, v.Key)), err
	})
	parts := make([]llm.Part, 12)
	for i := range parts {
		parts[i] = call(fmt.Sprint("c", i), "f", "{}")
	}
	m := script.New(script.Turn{Parts: parts}, script.Turn{Parts: parts}, script.Say("done"))
	var set pawl.Registry
	if err := set.Add(tool); err != nil {
		t.Fatal(err)
	}
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{&set}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			res, err := a.Run(t.Context(), llm.User("go"))
			if err != nil || res.Text() != "done" || len(res.Values) != 12 {
				t.Errorf("got %q, %d values, %v", res.Text(), len(res.Values), err)
			}
		})
		wg.Go(func() {
			if err := set.Replace(tool); err != nil || set.Lookup("f") == nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
