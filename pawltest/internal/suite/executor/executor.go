// Package executor is the suite of package pawltest for implementations of pawl.Executor.
package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// Opener returns the Executor of one run of the agent, whose tools count what they do.
type Opener[TT any] = func(t TT, a *pawl.Agent) pawl.Executor

// Test runs the suite. lacks names the parts that do not apply.
func Test[TT mutant.T[TT]](t TT, open Opener[TT], lacks []string) {
	t.Helper()
	suite.Run(t, parts(open), lacks)
}

func parts[TT mutant.T[TT]](open Opener[TT]) []suite.Part[TT] {
	runs := suite.Each("", cases.ExecutorRuns(), func(t TT, make func(*cases.World) *pawl.Agent) {
		testExecutions(t, open, make)
	})
	return append(runs,
		suite.Part[TT]{Name: "interrupted", Test: func(t TT) { testInterrupted(t, open) }},
		suite.Part[TT]{Name: "together", Test: func(t TT) { testCallsTogether(t, open) }},
		suite.Part[TT]{Name: "events/live", Test: func(t TT) { testLiveEvents(t, open) }},
		suite.Part[TT]{Name: "cancelled", Test: func(t TT) { testCallCancelled(t, open) }},
	)
}

// testExecutions compares the run of an agent by the Executor with its run without one.
func testExecutions[TT mutant.T[TT]](t TT, open Opener[TT], make func(*cases.World) *pawl.Agent) {
	var here, there cases.World
	want := executed(t, suite.InMemory(make(&here), nil), llm.User("Go."))
	a := make(&there)
	a.Executor = open(t, make(&there))
	compareExecuted(t, executed(t, suite.InMemory(a, nil), llm.User("Go.")), want, &there, &here)
}

func compareExecuted[TT mutant.T[TT]](t TT, got, want string, there, here *cases.World) {
	t.Helper()
	if got != want {
		t.Errorf("by the Executor:\n%s\nwithout it:\n%s", got, want)
	}
	if is, was := fmt.Sprint(there.Done()), fmt.Sprint(here.Done()); is != was {
		t.Errorf("the tools did %s, want %s", is, was)
	}
}

// testInterrupted compares how a write goes on that was interrupted, and whose execution a person
// then approves again.
func testInterrupted[TT mutant.T[TT]](t TT, open Opener[TT]) {
	make := func(w *cases.World) *pawl.Agent {
		return w.Agent(script.Together(script.Call("bill", `{"at":"7"}`), script.Call("look", `{"at":"a"}`)), script.Say("done"))
	}
	var here, there cases.World
	again := func(w *cases.World, by func(*pawl.Agent) pawl.Executor) string {
		a := make(w)
		a.Executor = cases.Lost{}
		first, _ := a.Run(t.Context(), llm.User("Go.")) // it asks whether the call took effect
		a.Executor = by(make(w))
		return executed(t, suite.InMemory(a, first), llm.DecisionMessage(cases.Answers(first)...))
	}
	want := again(&here, func(*pawl.Agent) pawl.Executor { return nil })
	got := again(&there, func(a *pawl.Agent) pawl.Executor { return open(t, a) })
	compareExecuted(t, got, want, &there, &here)
}

// executed runs r, answers its questions until it ends, and returns its executions, results and
// events in a form that does not depend on time.
func executed[TT mutant.T[TT]](t TT, r pawl.Runner, msgs ...llm.Message) string {
	t.Helper()
	var b strings.Builder
	for range 4 {
		events := map[llm.Key][]string{}
		ctx, cancel := context.WithTimeout(t.Context(), suite.Patience(t))
		res, err := pawl.Collect(r.Stream(ctx, msgs...), func(e pawl.Event) {
			if ofCall(&e) {
				said := fmt.Sprintf("%s %s %d %d %s %s", e.Kind, e.Run, e.Step, e.Attempt, e.Text, e.Data)
				events[e.Path] = append(events[e.Path], said)
			}
		})
		cancel()
		if res == nil {
			t.Fatalf("the run has no result: %v", err)
		}
		fmt.Fprintf(&b, "%s %v\n%s\n%s\n", res.Stop, err, wire.Marshal(res.Messages), wire.Marshal(res.Values))
		for _, step := range res.Steps {
			for _, x := range step.Executions {
				x.Started, x.Ended = time.Time{}, time.Time{}
				fmt.Fprintf(&b, "%s\n", wire.Marshal(x))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(events)) {
			fmt.Fprintf(&b, "%s: %s\n", key, strings.Join(events[key], "; "))
		}
		fmt.Fprintf(&b, "%d calls\n", res.Spent.Calls)
		if res.Stop != pawl.StopPending {
			return b.String()
		}
		msgs = []llm.Message{llm.DecisionMessage(cases.Answers(res)...)}
	}
	return b.String()
}

// ofCall reports whether e is an event of a call.
func ofCall(e *pawl.Event) bool {
	switch e.Kind {
	case pawl.EventCallStarted, pawl.EventProgress, pawl.EventNotice, pawl.EventCallCompleted:
		return e.Path != "" && e.Code != "effect_unstated"
	}
	return false
}

// testCallsTogether makes two calls that each wait for the other.
func testCallsTogether[TT mutant.T[TT]](t TT, open Opener[TT]) {
	var w cases.World
	var meet sync.WaitGroup
	meet.Add(2)
	make := func() *pawl.Agent {
		a := w.Agent(script.Together(script.Call("meet", `{}`), script.Call("meet", `{}`)), script.Say("done"))
		a.Tools = append(a.Tools, cases.Meet(&meet))
		return a
	}
	a := make()
	a.Executor = open(t, make())
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience(t))
	defer cancel()
	if res, err := a.Run(ctx, llm.User("Go.")); err != nil {
		t.Errorf("two reads are not executed together: %v, %+v", err, res)
	}
}

// testLiveEvents makes a call that waits until its event has arrived.
func testLiveEvents[TT mutant.T[TT]](t TT, open Opener[TT]) {
	var w cases.World
	seen := make(chan struct{})
	agent := func() *pawl.Agent {
		a := w.Agent(script.Call("half", `{}`), script.Say("done"))
		a.Tools = append(a.Tools, cases.Half(seen))
		return a
	}
	a := agent()
	a.Executor = open(t, agent())
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience(t))
	defer cancel()
	res, err := pawl.Collect(a.Stream(ctx, llm.User("Go.")), func(e pawl.Event) {
		if e.Kind == pawl.EventProgress {
			close(seen)
		}
	})
	if err != nil {
		t.Errorf("an event of a call does not arrive before the call ends: %v, %+v", err, res)
	}
}

// testCallCancelled cancels a run during a call. The run ends when the call has, and has a result
// for each call.
func testCallCancelled[TT mutant.T[TT]](t TT, open Opener[TT]) {
	var w cases.World
	agent := func() *pawl.Agent {
		a := w.Agent(script.Together(script.Call("linger", `{}`), script.Call("look", `{"at":"a"}`)))
		a.Tools = append(a.Tools, w.Linger(suite.Patience(t)))
		return a
	}
	a := agent()
	a.Executor = open(t, agent())
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)

	type end struct {
		res *pawl.Result
		err error
	}
	ended := make(chan end, 1)
	go func() {
		res, err := pawl.Collect(a.Stream(ctx, llm.User("Go.")), func(e pawl.Event) {
			if e.Kind == pawl.EventCallStarted && e.Call.Name == "linger" {
				cancel(pawl.ErrCancelled)
			}
		})
		ended <- end{res, err}
	}()
	select {
	case e := <-ended:
		switch {
		case e.res == nil || e.res.Stop != pawl.StopCancelled || len(e.res.Calls()) > 0:
			t.Errorf("got %+v, %v; want a cancelled run without open calls", e.res, e.err)
		case !slices.Contains(w.Done(), "ended"):
			t.Errorf("the run has ended, and a call has not")
		}
	case <-time.After(suite.Patience(t)):
		t.Errorf("a cancelled run does not end")
	}
}
