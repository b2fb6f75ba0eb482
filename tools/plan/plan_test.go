package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type query struct {
	Query string `json:"query"`
}

// add returns a tool that counts its calls.
func add(name string, effect pawl.Effect, fn func(in string) (string, error)) *pawl.Tool {
	t := pawl.Func(name, name+" does it.", func(_ context.Context, in query) (string, error) { return fn(in.Query) })
	t.Effect = effect
	return t
}

func echo() *pawl.Tool {
	return add("echo", pawl.EffectRead, func(s string) (string, error) {
		if s == "bad" {
			return "", errors.New("timeout")
		}
		return "you said " + s, nil
	})
}

// carry executes one call of execute_plan with the given tools and returns its execution.
func carry(t testing.TB, opts *plan.Options, args string, tools ...pawl.Toolset) pawl.Execution {
	t.Helper()
	a := &pawl.Agent{Model: script.New(script.Call("execute_plan", json.RawMessage(args)), script.Say("done")),
		Tools: append([]pawl.Toolset{plan.New(opts)}, tools...)}
	res, err := a.Run(context.Background(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	return res.Steps[0].Executions[0]
}

// The example of the documentation gives the documented result.
func TestPlan(t *testing.T) {
	for _, flow := range []bool{false, true} {
		if p := plan.New(&plan.Options{DataFlow: flow}); p.Effect != pawl.EffectCompose || !p.Inline {
			t.Errorf("with data flow %v: an engine cannot carry it out within the run: %+v", flow, p)
		}
	}
	search := add("web_search", pawl.EffectRead, func(q string) (string, error) {
		if strings.Contains(q, "testing") {
			return "", errors.New("timeout")
		}
		return q + ": found", nil
	})
	x := carry(t, nil, `{"steps": [
		{"tool": "web_search", "args": {"query": "Go error handling"}},
		{"tool": "web_search", "args": {"query": "Go concurrency patterns"}},
		{"tool": "web_search", "args": {"query": "Go testing best practices"}}]}`, search)
	want := `[{"step":0,"tool":"web_search","status":"ok","result":"Go error handling: found"},` +
		`{"step":1,"tool":"web_search","status":"ok","result":"Go concurrency patterns: found"},` +
		`{"step":2,"tool":"web_search","status":"error","error":"timeout"}]`
	if x.Outcome != pawl.OutcomeOK || x.Result.Text() != want || string(x.Result.Data) != want {
		t.Errorf("%s:\n%s\nwant\n%s", x.Outcome, x.Result.Text(), want)
	}
	if x.Spent.Calls != 3 {
		t.Errorf("%d calls were counted, want 3", x.Spent.Calls)
	}
}

// Data is part of a step's entry for programs. The model gets the text alone. Parts that are not
// text follow the array.
func TestPlanKeepsDataAndMedia(t *testing.T) {
	look := &pawl.Tool{Name: "look", Effect: pawl.EffectRead,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: "a cat"},
				llm.Media{MIME: "image/png", Data: []byte("x")}}, Data: json.RawMessage(`{"n":1}`)}, nil
		}}
	x := carry(t, nil, `{"steps":[{"tool":"look","args":{}}]}`, look)
	if got, want := string(x.Result.Data), `[{"step":0,"tool":"look","status":"ok","result":"a cat","data":{"n":1}}]`; got != want {
		t.Errorf("data %s, want %s", got, want)
	}
	if got, want := x.Result.Text(), `[{"step":0,"tool":"look","status":"ok","result":"a cat"}]`; got != want || len(x.Result.Parts) != 2 {
		t.Errorf("text %s, want %s; %d parts", got, want, len(x.Result.Parts))
	}
}

// Fifty long results are shortened to JSON of a limited size for the model. Short results stay
// whole.
func TestPlanBoundsItsResult(t *testing.T) {
	long := add("long", pawl.EffectRead, func(s string) (string, error) {
		if s == "short" {
			return "short and whole", nil
		}
		return strings.Repeat("é", 10_000), nil
	})
	steps := []string{`{"tool":"long","args":{"query":"short"}}`}
	for range 49 {
		steps = append(steps, `{"tool":"long","args":{"query":"long"}}`)
	}
	x := carry(t, nil, `{"steps":[`+strings.Join(steps, ",")+`]}`, long)
	var got []struct{ Result string }
	if err := json.Unmarshal([]byte(x.Result.Text()), &got); err != nil || len(got) != 50 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	if n := len(x.Result.Text()); n > 40<<10 || got[0].Result != "short and whole" ||
		!strings.Contains(got[1].Result, "bytes left out") || !strings.HasPrefix(got[1].Result, "ééé") {
		t.Errorf("%d bytes; %q, %.60q", n, got[0].Result, got[1].Result)
	}
}

// A plan that cannot be executed is refused with a sentence, and nothing runs. Each row names what
// its sentence must contain.
func TestHostilePlans(t *testing.T) {
	many := func(n int) string {
		return `{"steps":[` + strings.TrimSuffix(strings.Repeat(`{"tool":"echo","args":{"query":"x"}},`, n), ",") + `]}`
	}
	for _, test := range []struct{ name, args, want string }{
		{"no steps", `{"steps":[]}`, "The plan has no steps: give 1 to 50."},
		{"51 steps", many(51), "The plan has 51 steps, and at most 50 are executed in one. Nothing was run: send it in parts."},
		{"nested", `{"steps":[{"tool":"echo","args":{"query":"x"}},{"tool":"execute_plan","args":{"steps":[]}}]}`, "Step 1 is a plan itself, and a plan cannot contain a plan. Nothing was run: put its steps into this one."},
		{"steps missing", `{}`, `missing required field "steps"`},
		{"steps of another kind", `{"steps":"echo"}`, "steps"},
		{"a step without a tool", `{"steps":[{"args":{"query":"x"}}]}`, `missing required field "tool"`},
		{"args of another kind", `{"steps":[{"tool":"echo","args":7}]}`, "args"},
		{"no JSON", `{"steps":[{"tool":"echo"`, "not valid JSON"},
	} {
		for _, opts := range []*plan.Options{nil, {DataFlow: true}} {
			ran := 0
			count := add("echo", pawl.EffectRead, func(string) (string, error) { ran++; return "", nil })
			x := carry(t, opts, test.args, count)
			if text := x.Result.Text(); !x.Result.IsError || !strings.Contains(text, test.want) || ran > 0 {
				t.Errorf("%s: ran %d, %q, want %q in it", test.name, ran, text, test.want)
			}
		}
	}
	// A faulty step fails alone. The valid step next to it runs.
	for _, test := range []struct{ name, step, want string }{
		{"unknown tool", `{"tool":"ecko","args":{}}`, `Unknown tool \"ecko\". Available tools: execute_plan, echo. Did you mean \"echo\"?`},
		{"args that break the schema", `{"tool":"echo","args":{"quer":1}}`, `unknown field \"quer\"`},
		{"args that are missing", `{"tool":"echo","args":{}}`, `missing required field \"query\"`},
		{"an error", `{"tool":"echo","args":{"query":"bad"}}`, `"error":"timeout"`},
	} {
		x := carry(t, nil, `{"steps":[`+test.step+`,{"tool":"echo","args":{"query":"x"}}]}`, echo())
		if text := x.Result.Text(); x.Outcome != pawl.OutcomeOK || !strings.Contains(text, test.want) ||
			!strings.Contains(text, `{"step":1,"tool":"echo","status":"ok","result":"you said x"}`) {
			t.Errorf("%s: %s, want %s in it", test.name, text, test.want)
		}
	}
}

// Ten plans of ten steps in one reply never run more calls together than the run allows. They
// finish even if the run allows one. The clock stands still until every call that can start has
// started, so the measured maximum is exact.
func TestPlansShareTheRunsSlots(t *testing.T) {
	for _, limit := range []int{1, 3, 10} {
		for _, opts := range []*plan.Options{nil, {DataFlow: true}} {
			synctest.Test(t, func(t *testing.T) {
				var now, peak, all atomic.Int64
				work := add("work", pawl.EffectWrite, func(string) (string, error) {
					n := now.Add(1)
					for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
					}
					time.Sleep(time.Second)
					now.Add(-1)
					all.Add(1)
					return "ok", nil
				})
				steps := `{"steps":[` + strings.TrimSuffix(strings.Repeat(`{"tool":"work","args":{"query":"x"}},`, 10), ",") + `]}`
				var turns []script.Turn
				for range 10 {
					turns = append(turns, script.Call("execute_plan", json.RawMessage(steps)))
				}
				a := &pawl.Agent{Model: script.New(script.Together(turns...), script.Say("done")),
					Tools: []pawl.Toolset{plan.New(opts), work}, Parallel: pawl.Parallel{Limit: limit}}
				began := time.Now()
				res, err := a.Run(t.Context(), llm.User("go"))
				if err != nil || res.Spent.Calls != 110 || all.Load() != 100 {
					t.Fatalf("limit %d: %d calls, %d ran, %v", limit, res.Spent.Calls, all.Load(), err)
				}
				if got := peak.Load(); got != int64(limit) {
					t.Errorf("limit %d: %d ran together", limit, got)
				}
				if took, want := time.Since(began), time.Duration((100+limit-1)/limit)*time.Second; took > want*2 {
					t.Errorf("limit %d: it took %v, want about %v", limit, took, want)
				}
			})
		}
	}
}

// storing returns the context of runs of a whose executor, a *pawltest.Kept, stores their calls.
func storing(ctx context.Context, a *pawl.Agent) context.Context {
	return pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: a.Executor.(*pawltest.Kept).Engine()})
}

// A pending step makes the plan pending. The other steps have run, their results are stored, and
// after the decision each step has run once. Without an engine the step is refused.
func TestAStepThatWaits(t *testing.T) {
	ask := pawl.Approve(func(_ context.Context, _ llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
		if tool.Name == "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it costs"}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	for _, opts := range []*plan.Options{nil, {DataFlow: true}} {
		var mu sync.Mutex
		ran := map[string]int{}
		count := func(name string) *pawl.Tool {
			return add(name, pawl.EffectWrite, func(string) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				ran[name]++
				return name, nil
			})
		}
		b := count("b")
		b.Concurrent = true // otherwise it waits for the answer, too
		a := &pawl.Agent{Model: script.New(script.Call("execute_plan", json.RawMessage(`{"steps":[{"tool":"a","args":{"query":"x"}},{"tool":"pay","args":{"query":"x"}},{"tool":"b","args":{"query":"x"}}]}`)), script.Say("done")),
			Tools: []pawl.Toolset{plan.New(opts), count("a"), b, count("pay")}, Middleware: []pawl.Middleware{ask}}
		res, err := a.Run(t.Context(), llm.User("go"))
		if err != nil || !strings.Contains(res.Steps[0].Executions[0].Result.Text(),
			`"status":"error","error":"Not run: pay needs an answer from outside`) || ran["pay"] != 0 || ran["a"] != 1 || ran["b"] != 1 {
			t.Fatalf("in memory: %v %v", ran, err)
		}
		clear(ran)
		a.Executor = new(pawltest.Kept)
		res, err = runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
		if err != nil || res.Stop != pawl.StopPending || len(res.Pending) != 1 ||
			res.Pending[0].Key != "run/1/0/s1" || res.Pending[0].Why != "it costs" || ran["a"] != 1 || ran["b"] != 1 {
			t.Fatalf("%+v, %v, ran %v", res, err, ran)
		}
		res, err = a.Resume(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Approve("tom")))
		want := `[{"step":0,"tool":"a","status":"ok","result":"a"},{"step":1,"tool":"pay","status":"ok","result":"pay"},{"step":2,"tool":"b","status":"ok","result":"b"}]`
		if err != nil || res.Steps[0].Executions[0].Result.Text() != want || len(ran) != 3 || ran["a"]+ran["b"]+ran["pay"] != 3 {
			t.Errorf("%v, %v, %s", err, ran, res.Steps[0].Executions[0].Result.Text())
		}
	}
}

// A plan of independent steps has the same results and effects as the single calls.
func TestAPlanIsItsCalls(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var effects []string
		var mu sync.Mutex
		tools := pawl.Toolsets{
			add("put", pawl.EffectWrite, func(s string) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				effects = append(effects, s)
				return "put " + s, nil
			}),
			echo(),
			add("panics", pawl.EffectRead, func(string) (string, error) { panic("x") }),
		}
		type planned struct {
			Tool string          `json:"tool"`
			Args json.RawMessage `json:"args"`
		}
		var steps []planned
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			steps = append(steps, planned{rapid.SampledFrom([]string{"put", "echo", "panics", "nothing"}).Draw(r, "tool"),
				json.RawMessage(rapid.SampledFrom([]string{`{"query":"a"}`, `{"query":"b"}`, `{"query":"bad"}`, `{"query":7,"x":1}`, `{}`}).Draw(r, "args"))})
		}
		args, err := json.Marshal(map[string]any{"steps": steps})
		if err != nil {
			r.Fatal(err)
		}
		opts := &plan.Options{DataFlow: rapid.Bool().Draw(r, "flow")}
		for i := range steps {
			if opts.DataFlow && steps[i].Tool == "nothing" {
				return // it is refused as a whole
			}
		}
		x := carry(t, opts, string(args), tools)
		var got []struct{ Status, Result, Error string }
		if err := json.Unmarshal(x.Result.Data, &got); err != nil || len(got) != len(steps) {
			r.Fatalf("%v: %s", err, x.Result.Text())
		}
		together := count(effects)
		effects = nil
		all := pawl.Toolsets{plan.New(nil), tools} // so that error texts name the same tools
		for i, s := range steps {
			one := pawl.Toolsets{all}.Execute(context.Background(), llm.ToolCall{ID: "c", Name: s.Tool, Args: s.Args})
			text := one.Result.Text()
			if one.Outcome == pawl.OutcomeOK != (got[i].Status == "ok") || text != got[i].Result+got[i].Error {
				r.Errorf("step %d: %+v, alone %s %q", i, got[i], one.Outcome, text)
			}
		}
		if diff := cmp.Diff(together, count(effects)); diff != "" {
			r.Errorf("effects of the plan -, one by one +\n%s", diff)
		}
	})
}

func count(words []string) map[string]int {
	out := map[string]int{}
	for _, w := range words {
		out[w]++
	}
	return out
}

// A plan of three steps compared with three rounds, where a request to the model takes 2 s and a
// call 500 ms: number of requests and time on the wall clock of the bubble.
func TestAPlanSavesRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const thinks, works = 2 * time.Second, 500 * time.Millisecond
		search := add("web_search", pawl.EffectRead, func(q string) (string, error) {
			time.Sleep(works)
			return q, nil
		})
		one := func(q string) script.Turn { return script.Call("web_search", query{q}) }
		slow := pawl.Middleware{Model: func(m llm.Model) llm.Model { return slowModel{m, thinks} }}
		run := func(turns ...script.Turn) (int, time.Duration) {
			a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...),
				Tools: []pawl.Toolset{plan.New(nil), search}, Middleware: []pawl.Middleware{slow}}
			began := time.Now()
			res, err := a.Run(t.Context(), llm.User("go"))
			if err != nil {
				t.Fatal(err)
			}
			return res.Spent.Requests, time.Since(began)
		}
		requests, wall := run(one("a"), one("b"), one("c"))
		planned, quick := run(script.Call("execute_plan", json.RawMessage(`{"steps":[{"tool":"web_search","args":{"query":"a"}},{"tool":"web_search","args":{"query":"b"}},{"tool":"web_search","args":{"query":"c"}}]}`)))
		t.Logf("three rounds: %d requests, %v; a plan of three: %d requests, %v", requests, wall, planned, quick)
		if requests != 4 || planned != 2 || wall != 4*thinks+3*works || quick != 2*thinks+works {
			t.Errorf("a plan of three took %d requests and %v, three rounds %d and %v", planned, quick, requests, wall)
		}
	})
}

// The cost of three rounds and of a plan of three steps in this process. Model and tools take no
// time.
func BenchmarkPlanOfThree(b *testing.B) {
	search := add("web_search", pawl.EffectRead, func(q string) (string, error) { return q, nil })
	one := func(q string) script.Turn { return script.Call("web_search", query{q}) }
	for name, turns := range map[string][]script.Turn{
		"rounds": {one("a"), one("b"), one("c")},
		"plan":   {script.Call("execute_plan", json.RawMessage(`{"steps":[{"tool":"web_search","args":{"query":"a"}},{"tool":"web_search","args":{"query":"b"}},{"tool":"web_search","args":{"query":"c"}}]}`))},
	} {
		b.Run(name, func(b *testing.B) {
			a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...),
				Tools: []pawl.Toolset{plan.New(nil), search}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Run(b.Context(), llm.User("go")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// For any input of a model, a plan returns a result, makes at most 50 calls, and answers with JSON
// or a refusal.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{`{"steps":[{"tool":"echo","args":{"query":"x"}}]}`,
		`{"steps":[{"tool":"echo","args":{"query":"[1,2]"}},{"tool":"echo","each":{"$from":"0"},"when":{"$from":"item","equals":1},"args":{"query":{"$from":"index"}}}]}`,
		`{"steps":[{"tool":"echo","args":{"$from":"0/~1/"}}]}`, `{"steps":[{"tool":"echo","args":{"query":{"$from":"1"}}},{"tool":"echo","args":{"query":{"$from":"0"}}}]}`} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, args string, flow bool) {
		var ran atomic.Int64
		tool := add("echo", pawl.EffectRead, func(s string) (string, error) { ran.Add(1); return s, nil })
		x := pawl.Toolsets{plan.New(&plan.Options{DataFlow: flow}), tool}.Execute(t.Context(),
			llm.ToolCall{ID: "c", Name: "execute_plan", Args: json.RawMessage(args)})
		if x.Outcome == pawl.OutcomePanicked || x.Outcome == pawl.OutcomeOK && !json.Valid([]byte(x.Result.Text())) ||
			ran.Load() > 50 {
			t.Errorf("%s %s: %s", x.Outcome, x.Error, x.Result.Text())
		}
	})
}

func ExampleNew() {
	double := pawl.Func("double", "Doubles a number.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprint(2 * in.N), nil
	})
	agent := &pawl.Agent{Tools: []pawl.Toolset{double, plan.New(nil)}, Model: script.New(
		script.Call("execute_plan", json.RawMessage(`{"steps":[{"tool":"double","args":{"n":2}},{"tool":"double","args":{"n":21}}]}`)),
		script.Say("4 and 42"))}
	res, err := agent.Run(context.Background(), llm.User("Double 2 and 21."))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Steps[0].Executions[0].Result.Text())
	// Output:
	// [{"step":0,"tool":"double","status":"ok","result":"4"},{"step":1,"tool":"double","status":"ok","result":"42"}]
}
