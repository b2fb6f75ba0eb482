// Package runner is the suite of package pawltest for implementations of pawl.Runner.
package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// Opener returns a new run of the agent, which has the name "clerk".
type Opener[TT any] = func(t TT, a *pawl.Agent) pawl.Runner

// Test runs the suite. lacks names the parts that do not apply.
func Test[TT mutant.T[TT]](t TT, open Opener[TT], lacks []string) {
	t.Helper()
	parts := suite.Each("run/", cases.Runs(), func(t TT, make func() *pawl.Agent) { testRun(t, open, make) })
	parts = append(parts,
		suite.Part[TT]{Name: "denied", Test: func(t TT) { testDenied(t, open) }},
		suite.Part[TT]{Name: "passive", Test: func(t TT) { testPassive(t, open) }},
		suite.Part[TT]{Name: "failed", Test: func(t TT) { testFailed(t, open) }},
		suite.Part[TT]{Name: "cancelled", Test: func(t TT) { testCancelled(t, open) }},
		suite.Part[TT]{Name: "left", Test: func(t TT) { testLeft(t, open) }},
		suite.Part[TT]{Name: "together", Test: func(t TT) { testTogether(t, open) }},
	)
	suite.Run(t, parts, lacks)
}

// attempt is the events of one Stream.
type attempt struct {
	events []pawl.Event
	result *pawl.Result
	err    error
	before int // attempts
}

// follow ranges over one Stream, and checks the order of its events.
func follow[TT mutant.T[TT]](t TT, ctx context.Context, r pawl.Runner, see func(pawl.Event),
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
func stopped[TT mutant.T[TT]](t TT, res *pawl.Result, err error) error {
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
func finish[TT mutant.T[TT]](t TT, r pawl.Runner, msgs ...llm.Message) attempt {
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
func testRun[TT mutant.T[TT]](t TT, open Opener[TT], make func() *pawl.Agent) {
	want := finish(t, suite.InMemory(make(), nil), llm.User("Go."))
	got := finish(t, open(t, make()), llm.User("Go."))
	if got.err != nil || got.result == nil {
		t.Fatalf("got %+v, %v", got.result, got.err)
	}
	if is, was := cases.Sketch(got.result), cases.Sketch(want.result); is != was {
		t.Errorf("the result is\n%s\nwant\n%s", is, was)
	}
	// Durable runs repeat all events, other runners yield the remaining ones.
	if is, was := cases.Retold(got.events), cases.Retold(want.events); is != was && got.before == 0 {
		t.Errorf("it emits\n%s\nwant\n%s", is, was)
	}
}

func testDenied[TT mutant.T[TT]](t TT, open Opener[TT]) {
	r := open(t, cases.Clerk(nil, script.Call("pay", `{"at":"7"}`), script.Say("So be it.")))
	first := follow(t, t.Context(), r, nil, llm.User("Pay."))
	if first.err != nil || first.result == nil || len(first.result.Pending) != 1 {
		t.Fatalf("got %+v, %v", first.result, first.err)
	}
	out := follow(t, t.Context(), r, nil, llm.DecisionMessage(first.result.Pending[0].Deny("suite", "too dear")))
	if out.err != nil || out.result == nil || out.result.Text() != "So be it." ||
		!strings.Contains(string(wire.Marshal(out.result.Messages)), "too dear") {
		t.Errorf("got %+v, %v", out.result, out.err)
	}
}

func testPassive[TT mutant.T[TT]](t TT, open Opener[TT]) {
	r := open(t, cases.Clerk(nil, script.Call("ask", `{}`), script.Say("Thanks.")))
	first := follow(t, t.Context(), r, nil, llm.User("Ask."))
	if first.err != nil || first.result == nil || len(first.result.Pending) != 1 || !first.result.Pending[0].Passive {
		t.Fatalf("got %+v, %v", first.result, first.err)
	}
	w := first.result.Pending[0]
	out := follow(t, t.Context(), r, nil, llm.DecisionMessage(w.Answer("suite", llm.TextResult("blue"))))
	if out.err != nil || out.result == nil || out.result.Text() != "Thanks." ||
		!strings.Contains(string(wire.Marshal(out.result.Messages)), "blue") {
		t.Errorf("got %+v, %v", out.result, out.err)
	}
}

func testFailed[TT mutant.T[TT]](t TT, open Opener[TT]) {
	out := follow(t, t.Context(),
		open(t, cases.Clerk(nil, script.Call("look", `{"at":"a"}`),
			script.Fail(&llm.ProviderError{Provider: "suite", Code: llm.CodeServer, Message: "no"}))), nil, llm.User("Go."))
	if out.err == nil || out.result == nil || out.result.Stop != pawl.StopFailed {
		t.Fatalf("got %+v, %v", out.result, out.err)
	}
	if !strings.Contains(string(wire.Marshal(out.result.Messages)), "saw a") {
		t.Errorf("what was done is not in the transcript: %s", wire.Marshal(out.result.Messages))
	}
}

// testCancelled cancels a run during a call: its events continue to the end, and every call has a
// result.
func testCancelled[TT mutant.T[TT]](t TT, open Opener[TT]) {
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) }) // a run that was not cancelled ends
	r := open(t, cases.Clerk(gate, script.Call("wait", `{}`), script.Say("never")))
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
			t.Errorf("a call has no result: %s", wire.Marshal(out.result.Messages))
		}
	}
}

// testLeft breaks out of the range, which must not hang, and ends the context with another cause,
// which must be the error.
func testLeft[TT mutant.T[TT]](t TT, open Opener[TT]) {
	for range open(t, cases.Clerk(nil, script.Say("A text."))).Stream(t.Context(), llm.User("Go.")) {
		break // it must not wait for the run: see inTime
	}
	cause := errors.New("the program ends")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	gate := make(chan struct{})
	defer close(gate) // a run in progress ends
	var last error
	for e, err := range open(t, cases.Clerk(gate, script.Call("wait", `{}`), script.Say("done"))).Stream(ctx, llm.User("Wait.")) {
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
func testTogether[TT mutant.T[TT]](t TT, open Opener[TT]) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 8 {
		at := fmt.Sprintf("place-%d", i)
		r := open(t, cases.Clerk(nil, script.Call("look", `{"at":"`+at+`"}`), script.Say("Done at "+at)))
		wg.Go(func() {
			var text string
			for e, err := range r.Stream(t.Context(), llm.User("Go to "+at)) {
				switch {
				case err != nil:
					text = err.Error()
				case e.Kind == pawl.EventRunEnded && e.Run == "run":
					text = e.Result.Text() + " " + string(wire.Marshal(e.Result.Messages))
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
