package pawltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// TestRunner runs the suite that every Runner of agents must pass: an agent itself, durable runs,
// runs of a server or a cluster. open returns a new run of the agent, which has the name "clerk".
// The first Stream starts the run with messages, and each later one resumes it with Decisions and
// results when it is pending. Each Runner is used by one goroutine at a time, and several Runners
// concurrently.
//
//	pawltest.TestRunner(t, func(t *testing.T, a *pawl.Agent) pawl.Runner {
//		return engine.Runner(rand.Text(), a)
//	})
//
// The suite tests the guarantees for observers: the order and number of events, the agent's own
// Result, errors after the end that belong to it, and the effects of a cancellation and of a break.
func TestRunner[TT T[TT]](t TT, open func(t TT, a *pawl.Agent) pawl.Runner) {
	for name, c := range runs() {
		t.Run("run/"+name, func(t TT) { testRun(t, open, c) })
	}
	t.Run("denied", func(t TT) { testDenied(t, open) })
	t.Run("passive", func(t TT) { testPassive(t, open) })
	t.Run("failed", func(t TT) { testFailed(t, open) })
	t.Run("cancelled", func(t TT) { testCancelled(t, open) })
	t.Run("left", func(t TT) { testLeft(t, open) })
	t.Run("together", func(t TT) { testTogether(t, open) })
}

// runs are agents that need only an approval. They are made again for each run.
func runs() map[string]func() *pawl.Agent {
	limited := func(l pawl.Limits) func() *pawl.Agent {
		return func() *pawl.Agent {
			a := clerk(nil, script.Call("look", `{"at":"1"}`), script.Call("look", `{"at":"2"}`), script.Say("Enough."))
			a.Limits = l
			return a
		}
	}
	return map[string]func() *pawl.Agent{
		"text":   func() *pawl.Agent { return clerk(nil, script.Say("Grüße, 世界. A text that comes in pieces.")) },
		"a call": func() *pawl.Agent { return clerk(nil, script.Call("look", `{"at":"the sky"}`), script.Say("Seen.")) },
		"several calls": func() *pawl.Agent {
			return clerk(nil, script.Together(script.Say("I look."), script.Call("look", `{"at":"a"}`), script.Call("look", `{"at":"b"}`), script.Call("look", `{"at":"c"}`)),
				script.Say("Seen."))
		},
		"wrong calls": func() *pawl.Agent {
			return clerk(nil, script.Together(script.Call("nobody", `{}`), script.Call("look", `{"at":5}`)), script.Say("Sorry."))
		},
		"a yes": func() *pawl.Agent { return clerk(nil, script.Call("pay", `{"at":"7"}`), script.Say("Paid.")) },
		"yes and reads": func() *pawl.Agent {
			return clerk(nil, script.Together(script.Call("look", `{"at":"a"}`), script.Call("pay", `{"at":"7"}`)), script.Call("pay", `{"at":"8"}`), script.Say("Paid."))
		},
		"an agent inside": func() *pawl.Agent {
			a := clerk(nil, script.Call("inner", `{"task":"look"}`), script.Say("Done."))
			in := clerk(nil, script.Call("look", `{"at":"inside"}`), script.Say("It is dark."))
			in.Name = "inner"
			a.Tools = append(a.Tools, in.Tool("Looks inside."))
			return a
		},
		"stalled": func() *pawl.Agent {
			return clerk(nil, script.Loop(script.Call("look", `{"at":"1"}`)))
		},
		"tokens passed": func() *pawl.Agent {
			a := clerk(nil, script.Say("Too long."))
			a.Limits.Tokens = 1
			return a
		},
		"ended by a tool": func() *pawl.Agent { return clerk(nil, script.Call("submit", `{"at":"the desk"}`)) },
		"ended by a tool after words": func() *pawl.Agent {
			return clerk(nil, script.Together(script.Say("I submit."), script.Call("submit", `{"at":"the desk"}`)))
		},
		"ended by a tool over a limit": func() *pawl.Agent {
			turn := script.Call("submit", `{"at":"the desk"}`)
			turn.Usage = &llm.Usage{Input: 5, Output: 5}
			a := clerk(nil, turn)
			a.Limits.Tokens = 1
			return a
		},
		"an answer with a schema": func() *pawl.Agent {
			a := clerk(nil, script.Say(`{"at":"home"}`))
			a.Tools = nil
			a.Output = pawl.SchemaFor[place]()
			return a
		},
		"no rounds left": limited(pawl.Limits{Rounds: 1}),
		"handed back":    limited(pawl.Limits{Rounds: 1, AtLimit: pawl.AtLimitReturn}),
	}
}

type place struct {
	At string `json:"at"`
}

// clerk is an agent that looks, waits at gate, asks the caller, and pays after an approval. Its
// tool submit ends the run.
func clerk(gate <-chan struct{}, turns ...script.Turn) *pawl.Agent {
	look := pawl.Func("look", "Looks.", func(_ context.Context, in place) (string, error) { return "saw " + in.At, nil })
	look.Effect = pawl.EffectRead
	pay := pawl.Func("pay", "Pays.", func(_ context.Context, in place) (string, error) { return "paid " + in.At, nil })
	wait := pawl.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	wait.Effect = pawl.EffectRead
	ask := &pawl.Tool{Name: "ask", Description: "Asks.", Input: json.RawMessage(`{"type":"object"}`), Passive: true}
	submit := pawl.Func("submit", "Submits.", func(_ context.Context, in place) (string, error) {
		return "", pawl.FinishError(llm.TextResult("submitted at " + in.At))
	})
	submit.Effect = pawl.EffectRead
	return &pawl.Agent{Name: "clerk", Model: script.New(turns...), Tools: []pawl.Toolset{look, pay, wait, ask, submit},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
}

// attempt is the events of one Stream.
type attempt struct {
	events []pawl.Event
	result *pawl.Result
	err    error
	before int // attempts
}

// follow ranges over one Stream, and checks the order of its events.
func follow[TT T[TT]](t TT, ctx context.Context, r pawl.Runner, see func(pawl.Event),
	msgs ...llm.Message) (out attempt) {
	t.Helper()
	var seq int64
	started := 0
	ready := map[string]int{}
	done := map[llm.Key]int{}
	for e, err := range r.Stream(ctx, msgs...) {
		if err != nil {
			out.err = err
			continue
		}
		if out.err != nil {
			t.Errorf("%s came after the error %v", e.Kind, out.err)
		}
		if out.result != nil {
			t.Errorf("%s came after run_ended", e.Kind)
		}
		out.events = append(out.events, e)
		if e.Code != "attempt" && e.Kind != pawl.EventGap { // of the runner, not of the run
			if e.Seq <= seq {
				t.Errorf("%s has the place %d after %d", e.Kind, e.Seq, seq)
			}
			seq = e.Seq
			if started == 0 && e.Kind != pawl.EventRunStarted {
				t.Errorf("%s came before run_started", e.Kind)
			}
		}
		switch e.Kind {
		case pawl.EventRunStarted:
			if e.Run == "run" {
				started++
			}
		case pawl.EventCallReady:
			ready[fmt.Sprint(e.Run, e.Step)]++
		case pawl.EventResponseReceived:
			if n := ready[fmt.Sprint(e.Run, e.Step)]; n != len(e.Response.Message.Calls()) {
				t.Errorf("step %d of %s: %d of %d calls were emitted", e.Step, e.Run, n, len(e.Response.Message.Calls()))
			}
		case pawl.EventCallCompleted:
			done[e.Path]++
			if done[e.Path] > 1 {
				t.Errorf("call %s ended twice", e.Path)
			}
		case pawl.EventRunEnded:
			if e.Run == "run" {
				out.result = e.Result
			}
		}
		if see != nil {
			see(e)
		}
	}
	if started != 1 {
		t.Errorf("run_started came %d times", started)
	}
	if out.result != nil && out.result.Stop != pawl.StopFailed {
		out.err = stopped(t, out.result, out.err)
	}
	return out
}

// stopped checks that a run has an error if and only if it ended without a plain answer. It returns
// the cause that interrupted the run.
func stopped[TT T[TT]](t TT, res *pawl.Result, err error) error {
	t.Helper()
	var stop *pawl.StopError
	switch {
	case !errors.As(err, &stop):
		if want := res.Err(); err == nil && want != nil {
			t.Errorf("the error of a run that stopped with %s is nil, want %T", res.Stop, want)
		}
		return err
	case res.Err() == nil || stop.Reason != res.Stop || stop.Result == nil ||
		len(stop.Result.Pending) != len(res.Pending):
		t.Errorf("a run that stopped with %s has the error %v of %+v", res.Stop, stop, stop.Result)
	}
	return stop.Err
}

// finish resumes a run until nothing is pending, with an approval for each question.
func finish[TT T[TT]](t TT, r pawl.Runner, msgs ...llm.Message) attempt {
	t.Helper()
	for before := range 10 {
		out := follow(t, t.Context(), r, nil, msgs...)
		out.before = before
		if out.err != nil || out.result == nil || out.result.Stop != pawl.StopPending {
			return out
		}
		var ds []llm.Decision
		for _, w := range out.result.Pending {
			ds = append(ds, w.Approve("suite"))
		}
		msgs = []llm.Message{llm.DecisionMessage(ds...)}
	}
	t.Fatalf("it asks for ever")
	return attempt{}
}

// testRun compares a run with the run of the agent in memory.
func testRun[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner, make func() *pawl.Agent) {
	want := finish(t, &inMemory{agent: make()}, llm.User("Go."))
	got := finish(t, open(t, make()), llm.User("Go."))
	if got.err != nil || got.result == nil {
		t.Fatalf("got %+v, %v", got.result, got.err)
	}
	if is, was := sketch(got.result), sketch(want.result); is != was {
		t.Errorf("the result is\n%s\nwant\n%s", is, was)
	}
	// Durable runs repeat all events, other runners yield the remaining ones.
	if is, was := retold(got.events), retold(want.events); is != was && got.before == 0 {
		t.Errorf("it emits\n%s\nwant\n%s", is, was)
	}
}

// sketch is the part of a Result that is the same for all Runners.
func sketch(res *pawl.Result) string {
	msgs := marshal(res.Messages)
	return fmt.Sprintf("%s: %s %s\nrequests %d, calls %d, rounds %d\n%s", res.Stop, res.Text(), marshal(res.Answer),
		res.Spent.Requests, res.Spent.Calls, res.Spent.Rounds, msgs)
}

// retold formats the texts and steps of events, without details that depend on timing.
func retold(events []pawl.Event) string {
	var b strings.Builder
	gaps := false
	for _, e := range events {
		switch e.Kind {
		case pawl.EventGap:
			gaps = true
		case pawl.EventText:
			if e.Run == "run" {
				b.WriteString(e.Text)
			}
		}
	}
	if gaps { // fragments may be missing if that is reported
		b.Reset()
	}
	for _, e := range events {
		if e.Kind == pawl.EventResponseReceived && e.Run == "run" {
			fmt.Fprintf(&b, "\n%d: %s", e.Step, e.Response.Message.Text())
		}
	}
	steps := 0
	for _, e := range events {
		if e.Kind == pawl.EventStep && e.Run == "run" {
			steps++
		}
	}
	fmt.Fprintf(&b, "\n%d steps", steps)
	return b.String()
}

func testDenied[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner) {
	r := open(t, clerk(nil, script.Call("pay", `{"at":"7"}`), script.Say("So be it.")))
	first := follow(t, t.Context(), r, nil, llm.User("Pay."))
	if first.err != nil || first.result == nil || len(first.result.Pending) != 1 {
		t.Fatalf("got %+v, %v", first.result, first.err)
	}
	out := follow(t, t.Context(), r, nil, llm.DecisionMessage(first.result.Pending[0].Deny("suite", "too dear")))
	if out.err != nil || out.result == nil || out.result.Text() != "So be it." ||
		!strings.Contains(string(marshal(out.result.Messages)), "too dear") {
		t.Errorf("got %+v, %v", out.result, out.err)
	}
}

func testPassive[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner) {
	r := open(t, clerk(nil, script.Call("ask", `{}`), script.Say("Thanks.")))
	first := follow(t, t.Context(), r, nil, llm.User("Ask."))
	if first.err != nil || first.result == nil || len(first.result.Pending) != 1 || !first.result.Pending[0].Passive {
		t.Fatalf("got %+v, %v", first.result, first.err)
	}
	w := first.result.Pending[0]
	out := follow(t, t.Context(), r, nil, llm.DecisionMessage(w.Answer("suite", llm.TextResult("blue"))))
	if out.err != nil || out.result == nil || out.result.Text() != "Thanks." ||
		!strings.Contains(string(marshal(out.result.Messages)), "blue") {
		t.Errorf("got %+v, %v", out.result, out.err)
	}
}

func testFailed[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner) {
	out := follow(t, t.Context(),
		open(t, clerk(nil, script.Call("look", `{"at":"a"}`),
			script.Fail(&llm.ProviderError{Provider: "suite", Code: llm.CodeServer, Message: "no"}))), nil, llm.User("Go."))
	if out.err == nil || out.result == nil || out.result.Stop != pawl.StopFailed {
		t.Fatalf("got %+v, %v", out.result, out.err)
	}
	if !strings.Contains(string(marshal(out.result.Messages)), "saw a") {
		t.Errorf("what was done is not in the transcript: %s", marshal(out.result.Messages))
	}
}

// testCancelled cancels a run during a call: its events continue to the end, and every call has a
// result.
func testCancelled[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner) {
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	r := open(t, clerk(make(chan struct{}), script.Call("wait", `{}`), script.Say("never")))
	out := follow(t, ctx, r, func(e pawl.Event) {
		if e.Kind == pawl.EventCallStarted {
			stop(pawl.ErrCancelled)
		}
	}, llm.User("Wait."))
	if out.err != nil && !errors.Is(out.err, pawl.ErrCancelled) {
		t.Errorf("got the error %v", out.err)
	}
	if out.result == nil || out.result.Stop != pawl.StopCancelled {
		t.Fatalf("got %+v", out.result)
	}
	for i, m := range out.result.Messages {
		if m.HasCalls() && (i+1 == len(out.result.Messages) || len(out.result.Messages[i+1].Parts) != len(m.Calls())) {
			t.Errorf("a call has no result: %s", marshal(out.result.Messages))
		}
	}
}

// testLeft breaks out of the range, which must not hang, and ends the context with another cause,
// which must be the error.
func testLeft[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner) {
	within := time.AfterFunc(patience(t), func() { panic("pawltest: the caller that stops ranging over a run waits for it") })
	for range open(t, clerk(nil, script.Say("A text."))).Stream(t.Context(), llm.User("Go.")) {
		break
	}
	within.Stop()
	cause := errors.New("the program ends")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	gate := make(chan struct{})
	defer close(gate) // a run in progress ends
	var last error
	for e, err := range open(t, clerk(gate, script.Call("wait", `{}`), script.Say("done"))).Stream(ctx, llm.User("Wait.")) {
		last = err
		if e.Kind == pawl.EventCallStarted {
			stop(cause)
		}
	}
	if !errors.Is(last, cause) {
		t.Errorf("left for %v, and emitted %v", cause, last)
	}
}

// testTogether executes runs concurrently, each with only its own events.
func testTogether[TT T[TT]](t TT, open func(TT, *pawl.Agent) pawl.Runner) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 8 {
		at := fmt.Sprintf("place-%d", i)
		r := open(t, clerk(nil, script.Call("look", `{"at":"`+at+`"}`), script.Say("Done at "+at)))
		wg.Go(func() {
			var text string
			for e, err := range r.Stream(t.Context(), llm.User("Go to "+at)) {
				switch {
				case err != nil:
					text = err.Error()
				case e.Kind == pawl.EventRunEnded && e.Run == "run":
					text = e.Result.Text() + " " + string(marshal(e.Result.Messages))
				}
			}
			mu.Lock()
			if !strings.HasPrefix(text, "Done at "+at) || strings.Count(text, "place-") != strings.Count(text, at) {
				t.Errorf("run %d: %s", i, text)
			}
			mu.Unlock()
		})
	}
	wg.Wait()
}

// inMemory is the agent itself, resumed from its last Result.
type inMemory struct {
	agent *pawl.Agent
	last  *pawl.Result
}

// InMemory returns a Runner of one run of a in this process, which resumes with Decisions as
// durable runs do. TestRunner compares other Runners with it.
func InMemory(a *pawl.Agent) pawl.Runner { return &inMemory{agent: a} }

// Stream starts or resumes the run.
func (r *inMemory) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		events := r.agent.Stream(ctx, msgs...)
		if r.last != nil {
			events = r.agent.ResumeStream(ctx, r.last, msgs...)
		}
		for e, err := range events {
			if e.Kind == pawl.EventRunEnded && e.Run == "run" {
				r.last = e.Result
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
