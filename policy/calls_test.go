package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(name string) *pawl.Tool {
			return does(name, pawl.EffectWrite, func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				<-ctx.Done()
				return llm.ToolResult{}, ctx.Err()
			})
		}
		limits := policy.Timeouts{"http_get": time.Second, "http_*": 2 * time.Second, "*": 4 * time.Second, "effect:pure": -1}
		set := limits.Over(hangs("http_get"), hangs("http_post"), hangs("other"))
		for name, want := range map[string]time.Duration{"http_get": time.Second, "http_post": 2 * time.Second, "other": 4 * time.Second} {
			// A policy that takes its time: the clock starts after it.
			slow := pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
				time.Sleep(time.Hour)
				return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
			})
			x := runs(t, []pawl.Toolset{set}, []pawl.Middleware{slow}, script.Call(name, nil))[0]
			if took := x.Ended.Sub(x.Started) - time.Hour; x.Outcome != pawl.OutcomeTimeout || took != want {
				t.Errorf("%s: got %s after %v, want a timeout after %v", name, x.Outcome, took, want)
			}
		}
		first, _ := set.Tools(t.Context())
		again, _ := set.Tools(t.Context())
		if first[0] != again[0] {
			t.Error("the tools are others at each run, and compile their schemas again")
		}
		if _, err := (policy.Timeouts{"htp_get": 1}).Over(set).Tools(t.Context()); err == nil ||
			!strings.Contains(err.Error(), `did you mean "http_get"`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		tool := does("search", pawl.EffectRead, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			at = append(at, time.Since(begun))
			return llm.TextResult("found"), nil
		})
		w := policy.Rate{Every: time.Second, Burst: 2, Tools: []string{"search"}}.Middleware()
		calls := []script.Turn{script.Call("search", nil), script.Call("search", nil), script.Call("search", nil), script.Call("other", nil)}
		xs := runs(t, []pawl.Toolset{tool, says("other", pawl.EffectRead)}, []pawl.Middleware{w}, calls...)
		if len(at) != 2 || xs[2].Outcome != pawl.OutcomeBlocked || xs[2].Attempts != 0 ||
			xs[3].Outcome != pawl.OutcomeOK {
			t.Fatalf("got %v, %+v", at, xs[2])
		}
		if got, want := xs[2].Result.Text(), "Blocked: search was called too often (2 at once, one more each 1s). Try again in 1s, or go on without it."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		// The bucket fills up again, one call each second, and holds no more than two.
		time.Sleep(time.Minute)
		if xs := runs(t, []pawl.Toolset{tool, says("other", pawl.EffectRead)}, []pawl.Middleware{w},
			calls...); xs[1].Outcome != pawl.OutcomeOK || xs[2].Outcome != pawl.OutcomeBlocked {
			t.Errorf("after a minute: got %s, %s", xs[1].Outcome, xs[2].Outcome)
		}

		// With Wait a call takes its turn.
		begun, at = time.Now(), nil
		w = policy.Rate{Every: time.Second, Wait: 2 * time.Second}.Middleware()
		together := script.Together(script.Call("search", nil), script.Call("search", nil), script.Call("search", nil), script.Call("search", nil))
		xs = runs(t, []pawl.Toolset{tool}, []pawl.Middleware{w}, together)
		blocked := 0
		for _, x := range xs {
			if x.Outcome == pawl.OutcomeBlocked {
				blocked++
			}
		}
		if fmt.Sprint(at) != "[0s 1s 2s]" || blocked != 1 {
			t.Errorf("got calls at %v, and %d blocked, want 3 a second apart and 1", at, blocked)
		}
	})
}

func TestRateByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := policy.Rate{Every: time.Hour,
			Key: func(_ context.Context, c llm.ToolCall) string { return string(c.Args) }}.Middleware()
		tools := []pawl.Toolset{says("a", pawl.EffectRead), says("b", pawl.EffectRead)}
		xs := runs(t, tools, []pawl.Middleware{w}, script.Call("a", `{"u":1}`), script.Call("a", `{"u":2}`), script.Call("b", `{"u":1}`))
		if got := fmt.Sprintf("%s %s %s", xs[0].Outcome, xs[1].Outcome, xs[2].Outcome); got != "ok ok blocked" {
			t.Errorf("got %s", got)
		}
	})
}

// A wait ends with the run, and the turn goes to the next.
func TestRateWaitsNoLongerThanTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		tool := does("f", pawl.EffectWrite, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran++
			return llm.TextResult(""), nil
		})
		w := policy.Rate{Every: time.Minute, Wait: time.Hour}.Middleware()
		a := &pawl.Agent{Model: script.New(script.Call("f", nil), script.Call("f", nil)),
			Tools: []pawl.Toolset{tool}, Middleware: []pawl.Middleware{w}}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("shut down")) })
		begun := time.Now()
		res, err := runtest.Ended(a.Run(ctx, llm.User("go")))
		if err == nil || ran != 1 || time.Since(begun) != time.Second || len(res.Calls()) != 1 {
			t.Fatalf("got %v after %v, ran %d times", err, time.Since(begun), ran)
		}
		if _, err = a.Resume(t.Context(), res); ran != 2 || time.Since(begun) != time.Minute {
			t.Errorf("resumed: got %v after %v, ran %d times, want the second turn", err, time.Since(begun), ran)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		var fault error
		tool := does("lookup", pawl.EffectWrite, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran++
			return llm.TextResult("found"), fault
		})
		w := policy.Breaker{Failures: 3, Pause: time.Minute}.Middleware()
		call := func() pawl.Execution { t.Helper(); return once(t, tool, `{}`, w) }
		down := pawl.RetryableError(errors.New("connection refused"))

		fault = errors.New("no such customer") // it is there, and says so
		for range 5 {
			call()
		}
		fault = down
		call()
		call()
		fault = nil
		call() // the count begins anew
		fault = down
		for range 3 {
			if x := call(); x.Outcome != pawl.OutcomeError {
				t.Fatalf("got %s", x.Outcome)
			}
		}
		time.Sleep(20 * time.Second)
		before := ran
		x := call()
		if want := "Blocked: lookup failed 3 times in a row and is not called for now. Try again in 40s, or go on without it. It was not sent."; ran != before || x.Outcome != pawl.OutcomeBlocked || x.Result.Text() != want {
			t.Errorf("open: got %s, %q, want %q", x.Outcome, x.Result.Text(), want)
		}
		time.Sleep(40 * time.Second) // one may try, and fails
		if x := call(); x.Outcome != pawl.OutcomeError || ran != before+1 {
			t.Errorf("half open: got %s", x.Outcome)
		}
		if x := call(); x.Outcome != pawl.OutcomeBlocked {
			t.Errorf("open again: got %s", x.Outcome)
		}
		time.Sleep(time.Minute)
		fault = nil
		for range 2 {
			if x := call(); x.Outcome != pawl.OutcomeOK {
				t.Errorf("closed: got %s", x.Outcome)
			}
		}
	})
}

// While one call tries whether a tool is back, the others are blocked. A try that did not start has
// no outcome.
// A call that was refused here says nothing about its service, also not the call after the pause.
func TestBreakerIgnoresRefusalsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault error
		tool := does("lookup", pawl.EffectWrite, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult("found"), fault
		})
		w := policy.Breaker{Failures: 3, Pause: time.Minute}.Middleware()
		down := pawl.RetryableError(errors.New("connection refused"))
		noCaller := delivery.NewError(delivery.NotSent, "there is no caller with a token", nil)
		for _, fault = range []error{down, noCaller, down, noCaller, down} {
			once(t, tool, `{}`, w)
		}
		if x := once(t, tool, `{}`, w); x.Outcome != pawl.OutcomeBlocked {
			t.Errorf("after three failures with others between them: %s", x.Outcome)
		}

		time.Sleep(time.Minute)
		for _, fault = range []error{noCaller, down} {
			if x := once(t, tool, `{}`, w); x.Outcome != pawl.OutcomeError {
				t.Errorf("after the pause: %s", x.Outcome)
			}
		}
		if x := once(t, tool, `{}`, w); x.Outcome != pawl.OutcomeBlocked {
			t.Errorf("the service is still down: %s", x.Outcome)
		}
	})
}

func TestBreakerLetsOneTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		tool := does("lookup", pawl.EffectWrite, func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			if down {
				return llm.ToolResult{}, pawl.RetryableError(errors.New("down"))
			}
			time.Sleep(time.Second)
			return llm.TextResult("found"), nil
		})
		tool.Concurrent = true
		refuse := true
		inner := pawl.Middleware{Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				if refuse && !down {
					return llm.ToolResult{}, pawl.BlockError("not now")
				}
				return next(ctx, c)
			}
		}}
		ws := []pawl.Middleware{policy.Breaker{Failures: 1, Pause: time.Minute}.Middleware(), inner}
		once(t, tool, `{}`, ws...)
		down = false
		time.Sleep(time.Minute)
		if x := once(t, tool, `{}`, ws...); x.Result.Text() != "Blocked: not now" {
			t.Errorf("got %q", x.Result.Text())
		}
		refuse = false
		outcomes := map[pawl.Outcome]int{}
		for _, x := range runs(t, []pawl.Toolset{tool}, ws,
			script.Together(script.Call("lookup", nil), script.Call("lookup", nil), script.Call("lookup", nil))) {
			outcomes[x.Outcome]++
		}
		if outcomes[pawl.OutcomeOK] != 1 || outcomes[pawl.OutcomeBlocked] != 2 {
			t.Errorf("got %v, want one that tries", outcomes)
		}
		if x := once(t, tool, `{}`, ws...); x.Outcome != pawl.OutcomeOK {
			t.Errorf("afterwards: got %s", x.Outcome)
		}
	})
}

// sum is a pure tool, and how often it ran.
func sum() (*pawl.Tool, *atomic.Int64) {
	n := new(atomic.Int64)
	return does("sum", pawl.EffectPure, func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		switch n.Add(1); {
		case strings.Contains(string(c.Args), "fail"):
			return llm.ToolResult{}, errors.New("overflow")
		case strings.Contains(string(c.Args), "told"):
			return llm.ErrorResult("overflow"), nil
		}
		return llm.TextResult("sum of " + string(c.Args)), nil
	}), n
}

func TestCache(t *testing.T) {
	tool, ran := sum()
	w := policy.Cache{}.Middleware()
	for _, test := range []struct {
		args   string
		cached bool
	}{
		{`{"a":1,"b":2}`, false}, {`{ "b":2, "a":1 }`, true}, {`{"a":1,"b":2.0}`, false}, {`{"a":1}`, false}, {`{"a":1}`, true},
		{`{"fail":1}`, false}, {`{"fail":1}`, false}, {`{"told":1}`, false}, {`{"told":1}`, false},
	} {
		before := ran.Load()
		x := once(t, tool, test.args, w)
		if x.Cached != test.cached || (ran.Load() == before) != test.cached || test.cached != (x.Attempts == 0) {
			t.Errorf("%s: cached %t, ran %d times, %d attempts; want cached %t", test.args, x.Cached, ran.Load()-before, x.Attempts, test.cached)
		}
		if x.Outcome == pawl.OutcomeOK && !strings.HasPrefix(x.Result.Text(), "sum of {") || x.Result.CallID == "" {
			t.Errorf("%s: got %+v", test.args, x.Result)
		}
	}
	// Another schema is another tool; results of other effects are never stored.
	other, _ := sum()
	other.Input = []byte(`{"type":"object","properties":{"a":{"type":"integer"}}}`)
	if x := once(t, other, `{"a":1}`, w); x.Cached {
		t.Error("a tool with another schema got the result of this one")
	}
	for e := pawl.EffectWrite; e <= pawl.EffectCompose; e++ {
		tool, _ := sum()
		tool.Effect = e
		fresh := policy.Cache{}.Middleware()
		once(t, tool, `{}`, fresh)
		if x := once(t, tool, `{}`, fresh); x.Cached != (e == pawl.EffectPure) {
			t.Errorf("%s: cached %t", e, x.Cached)
		}
	}
	// A cached call can still be denied.
	if x := once(t, tool, `{"a":1}`, w,
		policy.Rules{Deny: []string{"sum"}}.Middleware()); x.Outcome != pawl.OutcomeDenied || x.Cached {
		t.Errorf("denied: got %s", x.Outcome)
	}
	// A stored result cannot be changed by its readers.
	spoil := pawl.After(func(_ context.Context, _ llm.ToolCall, res llm.ToolResult, err error) (llm.ToolResult, error) {
		res.Parts[0] = llm.Text{Text: "spoilt"}
		return res, err
	})
	once(t, tool, `{"c":1}`, spoil, w)
	once(t, tool, `{"c":1}`, spoil, w)
	if x := once(t, tool, `{"c":1}`, w); !x.Cached || x.Result.Text() != `sum of {"c":1}` {
		t.Errorf("got %q", x.Result.Text())
	}
}

func TestCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool, ran := sum()
		w := policy.Cache{Bytes: 1000, Age: time.Minute}.Middleware() // three of these
		call := func(n int) bool { t.Helper(); return once(t, tool, fmt.Sprintf(`{"n":%d}`, n), w).Cached }
		call(1)
		call(2)
		call(1) // 2 is unused for longest now
		if call(3); !call(1) || call(4) || call(2) || !call(4) {
			t.Error("what was unused for longest is to go first")
		}
		for n := range 100 {
			call(n)
		}
		if got := ran.Load(); got < 100 {
			t.Errorf("ran %d times", got)
		}
		time.Sleep(2 * time.Minute)
		if call(99) || !call(99) {
			t.Error("what is too old is to be asked again")
		}
		large := does("sum", pawl.EffectPure, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult(strings.Repeat("x", 2000)), nil
		})
		once(t, large, `{"large":1}`, w)
		if once(t, large, `{"large":1}`, w).Cached || !call(99) {
			t.Error("what is larger than the cache is not to be kept, and drives nothing out")
		}
	})
}

// Equal calls at the same time run once. A call that is cancelled from outside, or fails, does not
// answer the others.
func TestCacheCollapsesEqualCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		var fail atomic.Bool
		tool := does("slow", pawl.EffectPure, func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			n := ran.Add(1)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return llm.ToolResult{}, ctx.Err()
			}
			if fail.Load() {
				return llm.ErrorResult("bad"), nil
			}
			return llm.TextResult(fmt.Sprint("result ", n)), nil
		})
		w := policy.Cache{}.Middleware()
		many := make([]script.Turn, 8)
		for i := range many {
			many[i] = script.Call("slow", `{"x":1}`)
		}
		begun := time.Now()
		cached := 0
		for _, x := range runs(t, []pawl.Toolset{tool}, []pawl.Middleware{w}, script.Together(many...)) {
			if x.Cached {
				cached++
			}
			if x.Outcome != pawl.OutcomeOK || x.Result.Text() != "result 1" {
				t.Errorf("got %s, %q", x.Outcome, x.Result.Text())
			}
		}
		if ran.Load() != 1 || cached != 7 || time.Since(begun) != time.Second {
			t.Errorf("ran %d times, %d cached, in %v", ran.Load(), cached, time.Since(begun))
		}

		// The run of the first is cancelled; the second has its answer all the same.
		ran.Store(0)
		agent := func() *pawl.Agent {
			return &pawl.Agent{Model: script.New(script.Call("slow", `{"x":2}`), script.Say("done")),
				Tools: []pawl.Toolset{tool}, Middleware: []pawl.Middleware{w}}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		first := make(chan *pawl.Result)
		go func() { res, _ := runtest.Ended(agent().Run(ctx, llm.User("go"))); first <- res }()
		synctest.Wait()
		second := make(chan *pawl.Result)
		go func() { res, _ := agent().Run(t.Context(), llm.User("go")); second <- res }()
		synctest.Wait()
		if ran.Load() != 1 {
			t.Errorf("ran %d times before the first was cancelled", ran.Load())
		}
		cancel(pawl.ErrCancelled)
		if res := <-first; res.Stop != pawl.StopCancelled {
			t.Errorf("first: got %s", res.Stop)
		}
		if res := <-second; res.Stop != pawl.StopAnswer || res.Steps[0].Executions[0].Result.Text() != "result 2" {
			t.Errorf("second: got %s, %+v", res.Stop, res.Steps[0].Executions[0])
		}

		// What fails is no answer: the others try themselves, together.
		fail.Store(true)
		ran.Store(0)
		begun = time.Now()
		for i := range many {
			many[i] = script.Call("slow", `{"x":3}`)
		}
		runs(t, []pawl.Toolset{tool}, []pawl.Middleware{w}, script.Together(many...))
		if ran.Load() != 8 || time.Since(begun) != 2*time.Second {
			t.Errorf("ran %d times in %v", ran.Load(), time.Since(begun))
		}
	})
}
