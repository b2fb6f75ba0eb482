package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

const ms = time.Millisecond

// Two calls are sealed 300 ms apart in a reply that takes 600 ms, and each takes 300 ms. With early
// start the step ends with the reply; without it the calls add their time.
func TestEarlyStart(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			began := new(runtest.Starts)
			a := &pawl.Agent{Model: slowly(written{Parts: []llm.Part{call("a", "look", "{}"),
				call("b", "look", "{}")}, After: []time.Duration{0, 300 * ms, 300 * ms}}),
				Tools:    []pawl.Toolset{lasting("look", pawl.EffectRead, 300*ms, began)},
				Parallel: pawl.Parallel{NoEarly: !early}}
			begin := time.Now()
			events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
			took[early] = time.Since(begin)
			if err != nil || res.Text() != "done" || res.Spent.Calls != 2 {
				t.Fatalf("got %v, %+v", err, res)
			}
			wantBegan := map[string]time.Duration{"a": 600 * ms, "b": 600 * ms}
			if early {
				wantBegan = map[string]time.Duration{"a": 0, "b": 300 * ms}
			}
			if diff := cmp.Diff(began.After(), wantBegan); diff != "" {
				t.Error(diff)
			}
			var kinds []string
			for _, e := range events {
				if e.Path != "" {
					kinds = append(kinds, string(e.Kind)+" "+string(e.Path))
				}
			}
			want := []string{"request_started run/0/model", "response_received run/0/model", "call_started run/1/0"}
			// calls that started early are emitted in call order
			if diff := cmp.Diff(kinds[:3], want); diff != "" && early {
				t.Error(diff)
			}
		})
	}
	t.Logf("with early start %v, without %v", took[true], took[false])
	if took[true] != 600*ms || took[false] != 900*ms {
		t.Errorf("took %v with early start and %v without, want 600ms and 900ms", took[true], took[false])
	}
}

// The rows state which calls may start early.
func TestWhatBeginsEarly(t *testing.T) {
	write, read, pure := call("w", "write", "{}"), call("r", "read", "{}"), call("p", "pure", "{}")
	serial := func(id string) llm.ToolCall { return call(id, "serial", `{}`) }
	const late = time.Second // the reply is complete
	for _, test := range []struct {
		name   string
		calls  []llm.Part
		change func(*pawl.Agent)
		want   map[string]time.Duration
	}{
		{"looks", []llm.Part{read, pure}, nil, map[string]time.Duration{"r": 0, "p": 0}},
		{"a write does not, nor a read behind it", []llm.Part{write, read, pure}, nil, map[string]time.Duration{"w": late, "r": late, "p": 0}},
		{"a read before a write does", []llm.Part{read, write}, nil, map[string]time.Duration{"r": 0, "w": late}},
		{"words are passed over", []llm.Part{text("let me see"), read}, nil, map[string]time.Duration{"r": 0}},
		{"one Serial key", []llm.Part{serial("s"), serial("t"), read}, nil, map[string]time.Duration{"s": 0, "t": late, "r": 0}},
		{"a call that waits outside is no barrier", []llm.Part{call("q", "person", "{}"), read}, nil, map[string]time.Duration{"r": 0}},
		{"no round is left", []llm.Part{read}, func(a *pawl.Agent) { a.Limits.Rounds = pawl.NoRounds }, map[string]time.Duration{}},
		{"calls of one reply", []llm.Part{read, pure}, func(a *pawl.Agent) { a.Limits.CallsPerStep = 1 }, map[string]time.Duration{"r": 0}},
		{"calls that may not suffice", []llm.Part{write, pure},
			func(a *pawl.Agent) {
				a.Limits.Calls = 1
				a.Parallel = pawl.Parallel{Limit: 1}
			}, map[string]time.Duration{"w": late}},
		{"no more than run at once", []llm.Part{serial("s"), pure},
			func(a *pawl.Agent) { a.Parallel = pawl.Parallel{Limit: 1} }, map[string]time.Duration{"s": 0, "p": late}},
		{"off", []llm.Part{read}, func(a *pawl.Agent) { a.Parallel = pawl.Parallel{NoEarly: true} },
			map[string]time.Duration{"r": late}},
		{"FailFast", []llm.Part{read}, func(a *pawl.Agent) { a.Parallel = pawl.Parallel{FailFast: true} },
			map[string]time.Duration{"r": late}},
		{"StopOnBlock", []llm.Part{read}, func(a *pawl.Agent) { a.Parallel = pawl.Parallel{StopOnBlock: true} },
			map[string]time.Duration{"r": late}},
		{"an executor", []llm.Part{read},
			func(a *pawl.Agent) {
				a.Executor = here
			}, map[string]time.Duration{"r": late}},
		{"what is not approved", []llm.Part{read, pure}, func(a *pawl.Agent) {
			a.Middleware = []pawl.Middleware{denies(func(c llm.ToolCall) bool { return c.ID == "r" })}
		}, map[string]time.Duration{"p": 0}},
		{"what a middleware made a write", []llm.Part{read, pure}, func(a *pawl.Agent) {
			a.Middleware = []pawl.Middleware{pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
				if c.Name == "read" {
					c.Name = "write"
				}
				return c, nil
			})}
		}, map[string]time.Duration{"r": late, "p": 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := new(runtest.Starts)
			one := lasting("serial", pawl.EffectRead, 10*ms, began)
			one.Serial = func(json.RawMessage) string { return "k" }
			after := make([]time.Duration, len(test.calls)+1)
			after[len(test.calls)] = late
			a := &pawl.Agent{Model: slowly(written{Parts: test.calls, After: after}),
				Tools: []pawl.Toolset{lasting("write", pawl.EffectWrite, 0, began), lasting("read", pawl.EffectRead, 0, began),
					lasting("pure", pawl.EffectPure, 0, began), one, passive("person")}}
			if test.change != nil {
				test.change(a)
			}
			if _, _, err := collect(a.Stream(t.Context(), llm.User("go"))); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			starts := began.After()
			for id, at := range starts { // a call after another call in the same step
				if at > late {
					starts[id] = late
				}
			}
			if diff := cmp.Diff(starts, test.want); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}
		})
	}
}

// denies returns a policy that denies the calls that which selects and allows the rest.
func denies(which func(llm.ToolCall) bool) pawl.Middleware {
	return pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if which(c) {
			return pawl.Approval{Verdict: pawl.VerdictDeny}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
}

// emitter receives the events of a call.
type emitter = func(pawl.Event)

// by is an Executor.
type by func(context.Context, pawl.Task, emitter) (pawl.Execution, error)

func (f by) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	return f(ctx, t, emit)
}

// here is an Executor that executes each call in this process.
var here by = func(ctx context.Context, t pawl.Task, emit emitter) (pawl.Execution, error) {
	return t.Do(ctx, emit), nil
}

// If a reply fails, the calls that it had started are cancelled and awaited, and leave no trace.
func TestWhatWasBegunEarlyIsDropped(t *testing.T) {
	lost := errors.New("connection lost")
	for _, test := range []struct {
		name  string
		reply written
		deaf  bool
		took  time.Duration
		stop  pawl.StopReason
	}{
		{"cut", written{Finish: llm.FinishReasonLength}, false, time.Second, pawl.StopAnswer},
		{"cut, and deaf", written{Finish: llm.FinishReasonLength}, true, 6 * time.Second, pawl.StopAnswer},
		{"lost", written{Err: lost}, false, time.Second, pawl.StopFailed},
		{"lost, and deaf", written{Err: lost}, true, 6 * time.Second, pawl.StopFailed},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, ended := 0, 0
			release := make(chan struct{})
			look := does("look", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				began++
				v := pawl.InvocationFrom(ctx)
				v.Emit("looking", nil)
				<-ctx.Done()
				if v.Messages() != nil {
					t.Error("there is no reply, and yet a conversation with it")
				}
				if test.deaf {
					<-release
				}
				ended++
				return llm.TextResult("x"), nil
			})
			look.Effect, look.Timeout = pawl.EffectRead, -1
			reply := test.reply
			reply.Parts, reply.After = []llm.Part{call("a", "look", "{}")}, []time.Duration{0, time.Second}
			a := &pawl.Agent{Model: slowly(reply), Tools: []pawl.Toolset{look}, Limits: pawl.Limits{Calls: 1}}
			begin := time.Now()
			events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
			if took := time.Since(begin); took != test.took || res.Stop != test.stop ||
				(err != nil) != (test.stop == pawl.StopFailed) || began != 1 {
				t.Errorf("%s: %v, %s, %v, begun %d times", test.name, took, res.Stop, err, began)
			}
			if !test.deaf && ended != 1 {
				t.Errorf("%s: the run ended before the call that it had begun", test.name)
			}
			if res.Spent.Calls != 0 {
				t.Errorf("%s: spent %+v", test.name, res.Spent)
			}
			for _, e := range events {
				if e.Kind == pawl.EventCallStarted || e.Kind == pawl.EventProgress {
					t.Errorf("%s: %s of a call that was dropped", test.name, e.Kind)
				}
			}
			close(release)
			synctest.Wait()
		})
	}
}

// Events of a call that started early are emitted after its reply is complete. A tool may then read
// the conversation with that reply.
func TestEventsOfAnEarlyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := does("look", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			for i := range 150 { // more than the buffer holds
				v.Emit(fmt.Sprint(i), nil)
			}
			return llm.TextResult(say(v.Messages())), nil
		})
		look.Effect = pawl.EffectRead
		a := &pawl.Agent{Model: slowly(written{Parts: []llm.Part{call("a", "look", "{}"), text("behind")},
			After: []time.Duration{0, 0, time.Second}}), Tools: []pawl.Toolset{look}}
		events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Steps[0].Executions[0].Result.Text(); got != "user: go\nassistant: a look {}\nassistant: behind\n" {
			t.Errorf("the tool saw\n%s", got)
		}
		n, whole := 0, false
		for _, e := range events {
			whole = whole || e.Kind == pawl.EventResponseReceived
			if e.Kind == pawl.EventProgress {
				if e.Text != fmt.Sprint(n) || !whole {
					t.Errorf("progress %q at place %d, the reply whole: %t", e.Text, n, whole)
				}
				n++
			}
		}
		if n != 150 {
			t.Errorf("%d words of 150", n)
		}
	})
}

// For every schedule, a run with early start has the same transcript and the same executions as a
// run without it.
func TestEarlyStartChangesNothingButTheTime(t *testing.T) {
	type outcome struct {
		transcript string
		execs      []pawl.Execution
		spent      pawl.Spent
		stop       pawl.StopReason
		err        string
	}
	sooner, saved := 0, time.Duration(0)
	for seed := range uint64(100) {
		var got [2]outcome
		var took [2]time.Duration
		for i, early := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				pause := func() time.Duration { return time.Duration(rnd.IntN(40)) * ms }
				var mu sync.Mutex
				store := map[string]string{}
				tool := func(name string, effect pawl.Effect, d time.Duration,
					run func(c llm.ToolCall) string) *pawl.Tool {
					tl := does(name, func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
						pawl.InvocationFrom(ctx).Emit("at it", nil)
						select {
						case <-time.After(d):
						case <-ctx.Done():
							return llm.ToolResult{}, ctx.Err()
						}
						mu.Lock()
						defer mu.Unlock()
						return llm.TextResult(run(c)), nil
					})
					tl.Effect = effect
					return tl
				}
				keyed := func(tl *pawl.Tool) *pawl.Tool {
					tl.Serial = func(json.RawMessage) string { return "store" }
					return tl
				}
				tools := []pawl.Toolset{
					tool("pure", pawl.EffectPure, pause(), func(c llm.ToolCall) string { return "pure " + string(c.Args) }),
					tool("read", pawl.EffectRead, pause(), func(c llm.ToolCall) string { return "read " + string(c.Args) }),
					keyed(tool("get", pawl.EffectRead, pause(), func(llm.ToolCall) string { return store["x"] })),
					keyed(tool("set", pawl.EffectWrite, pause(), func(c llm.ToolCall) string { store["x"] += c.ID; return "set" })),
					tool("denied", pawl.EffectRead, pause(), func(llm.ToolCall) string { return "never" }),
					&pawl.Tool{Name: "strict", Effect: pawl.EffectPure, Input: json.RawMessage(`{"type":"object","required":["n"]}`), Run: says("", "never").Run},
				}
				names := []string{"pure", "read", "get", "set", "denied", "strict", "unknown"}
				var replies []written
				for range 1 + rnd.IntN(3) {
					var w written
					for range 1 + rnd.IntN(5) {
						if rnd.IntN(4) == 0 {
							w.Parts = append(w.Parts, text("well"))
						} else {
							w.Parts = append(w.Parts, call(fmt.Sprint("c", len(replies), "_", len(w.Parts)),
								names[rnd.IntN(len(names))], fmt.Sprintf(`{"k":%d}`, rnd.IntN(5))))
						}
						w.After = append(w.After, pause())
					}
					w.After = append(w.After, pause())
					switch rnd.IntN(12) {
					case 0:
						w.Finish = llm.FinishReasonLength
					case 1:
						w.Err = errors.New("lost")
					}
					replies = append(replies, w)
				}
				limits := pawl.Limits{CallsPerStep: rnd.IntN(5), Rounds: 1 + rnd.IntN(4)}
				ex := pawl.Parallel{Limit: 1 + rnd.IntN(4), NoEarly: !early}
				if ex.Limit == 1 {
					limits.Calls = rnd.IntN(6)
				}
				a := &pawl.Agent{Model: slowly(replies...), Tools: tools, Limits: limits, Parallel: ex,
					Middleware: []pawl.Middleware{denies(func(c llm.ToolCall) bool { return c.Name == "denied" })}}
				begin := time.Now()
				events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
				took[i] = time.Since(begin)
				b, _ := json.Marshal(res.Messages)
				got[i] = outcome{transcript: string(b), spent: res.Spent, stop: res.Stop, err: fmt.Sprint(err)}
				for _, s := range res.Steps {
					got[i].execs = append(got[i].execs, s.Executions...)
				}
				if err := valid(res.Messages); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				begun := map[llm.Key]bool{}
				for _, e := range events {
					switch e.Kind {
					case pawl.EventCallStarted:
						if !slices.ContainsFunc(events, func(r pawl.Event) bool {
							return r.Kind == pawl.EventResponseReceived && r.Seq < e.Seq && r.Step == e.Step
						}) {
							t.Errorf("seed %d: %s was started before its reply was told", seed, e.Path)
						}
						begun[e.Path] = true
					case pawl.EventProgress:
						if !begun[e.Path] {
							t.Errorf("seed %d: %s had something to tell before it was started", seed, e.Path)
						}
					}
				}
			})
		}
		if diff := cmp.Diff(got[0], got[1], cmp.AllowUnexported(outcome{}),
			cmpopts.IgnoreUnexported(pawl.Execution{}), cmpopts.IgnoreFields(pawl.Execution{}, "Started", "Ended")); diff != "" {
			t.Errorf("seed %d: with early start (-) and without (+):\n%s", seed, diff)
		}
		if took[0] > took[1] {
			t.Errorf("seed %d: %v with early start, %v without", seed, took[0], took[1])
		}
		if saved += took[1] - took[0]; took[0] < took[1] {
			sooner++
		}
	}
	t.Logf("%d of 100 schedules were sooner, by %v in all", sooner, saved)
	if sooner < 20 {
		t.Errorf("only %d of 100 schedules were sooner: the test shows nothing", sooner)
	}
}

// A run without streaming starts no call early.
func TestWholeRepliesBeginNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := new(runtest.Starts)
		a := &pawl.Agent{Model: slowly(written{Parts: []llm.Part{call("a", "look", "{}")},
			After: []time.Duration{0, time.Second}}), Tools: []pawl.Toolset{lasting("look", pawl.EffectRead, 0, began)}}
		res, err := a.Run(t.Context(), llm.User("go"))
		at := began.After()["a"]
		if err != nil || at != time.Second || !strings.HasPrefix(res.Text(), "done") {
			t.Errorf("got %v, begun after %v", err, at)
		}
	})
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
	executors := map[string]pawl.Parallel{"one": {Limit: 1}, "two": {Limit: 2}}
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
					Tools: []pawl.Toolset{says("write", "done"), pure}, Parallel: executor}
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
