package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// lines returns events without fragments, in the form in which a replay of events must repeat them.
func lines(t *testing.T, e pawl.Event, all *[]string) {
	t.Helper()
	switch e.Kind {
	case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventCallReady, pawl.EventCallStarted,
		pawl.EventNotice:
		return // fragments, and events of calls that are not executed again
	}
	line := string(e.Kind) + " " + string(e.Path)
	if e.Execution != nil {
		line += " " + string(e.Execution.Outcome) + " " + e.Execution.Result.Text() + asJSON(e.Execution.Pending)
	}
	if e.Kind == pawl.EventRunEnded {
		res := *e.Result
		res.Steps = nil // the times of pending calls are not stored
		line += " " + e.Error + " " + asJSON(res)
	}
	*all = append(*all, line)
}

// A replay of events repeats the original events of a run that is pending, also with nested calls,
// that has failed or that has ended. It has no effects.
func TestStory(t *testing.T) {
	var paid []string
	inner := paying(&paid, time.Hour)
	inner.Name = "clerk"
	failing := &pawl.Agent{Model: script.New(script.Call("look", `{}`),
		script.Fail(&llm.ProviderError{Provider: "p", Code: llm.CodeServer, Message: "broken"}))}
	look := pawl.Func("look", "looks", func(context.Context, none) (string, error) { return "seen", nil })
	look.Effect = pawl.EffectRead
	failing.Tools = []pawl.Toolset{look}
	for name, a := range map[string]*pawl.Agent{
		"waiting":        paying(&paid, time.Hour),
		"waiting inside": {Model: script.New(script.Call("clerk", `{"task":"pay"}`), script.Say("done")), Tools: []pawl.Toolset{inner.Tool("pays")}},
		"failed":         failing,
		"over":           {Model: script.New(script.Call("look", `{}`), script.Say("done")), Tools: []pawl.Toolset{look}},
	} {
		t.Run(name, func(t *testing.T) {
			j := new(store.MemoryJournal)
			eng := &durable.Engine{Journal: j}
			var want, got []string
			var failed error
			for e, err := range eng.Runner("r", a).Stream(t.Context(), llm.User("pay")) {
				if failed = err; err == nil && (e.Run == "run" || e.Kind == pawl.EventRunEnded && e.Run == "run") {
					lines(t, e, &want)
				}
			}
			before, err := j.JournalRun(t.Context(), store.Scope{}, "r")
			if err != nil {
				t.Fatal(err)
			}
			first := true
			for e, err := range eng.ReplayEvents("r", a).Stream(t.Context()) {
				if err != nil {
					if failed == nil || err.Error() != failed.Error() {
						t.Errorf("got %v, want %v", err, failed)
					}
					failed = nil
					continue
				}
				if first != (e.Code == "attempt") {
					t.Errorf("%+v", e)
				}
				if first = false; e.Run == "run" {
					lines(t, e, &got)
				}
			}
			if failed != nil {
				t.Errorf("nobody is told %v", failed)
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("got -, want +\n%s", diff)
			}
			after, err := j.JournalRun(t.Context(), store.Scope{}, "r")
			if diff := cmp.Diff(after, before); err != nil || diff != "" || len(paid) != 0 {
				t.Errorf("it left something: %v, paid %v\n%s", err, paid, diff)
			}
		})
	}
}

// An active run is replayed up to its last record, without an end. With another agent it is
// rejected.
func TestStoryOfARunAtWork(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	begun, gate := make(chan struct{}), make(chan struct{})
	wait := pawl.Func("wait", "waits", func(context.Context, none) (string, error) { close(begun); <-gate; return "waited", nil })
	wait.Effect = pawl.EffectWrite
	a := &pawl.Agent{Instructions: "Wait.", Model: script.New(script.Call("wait", `{}`), script.Say("done")), Tools: []pawl.Toolset{wait}}
	done := make(chan error)
	go func() {
		_, err := eng.Runner("r", a).Run(context.WithoutCancel(t.Context()), llm.User("go"))
		done <- err
	}()
	<-begun
	var told []pawl.EventKind
	for e, err := range eng.ReplayEvents("r", a).Stream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, e.Kind)
	}
	if diff := cmp.Diff(told, []pawl.EventKind{"notice", "run_started", "step_started", "request_started", "call_delta", "call_ready", "response_received"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	other := *a
	other.Tools = nil
	var changed error
	for _, changed = range eng.ReplayEvents("r", &other).Stream(t.Context()) {
	}
	if !errors.Is(changed, durable.ErrChanged) {
		t.Errorf("got %v", changed)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	var missing error
	for _, missing = range eng.ReplayEvents("nobody", a).Stream(t.Context()) {
	}
	if !errors.Is(missing, store.ErrNotFound) {
		t.Errorf("got %v", missing)
	}
}

// A recorded cancellation that no process has read yet ends no replay: the records end before it
// takes effect. When the run was resumed, the replays end as the run did.
func TestReplayBeforeCancellation(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	a := paying(&paid, -1)
	pending(t, eng, a)
	if err := eng.Cancel(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}

	ended := func() (stop pawl.StopReason) {
		for e, err := range eng.ReplayEvents("r", a).Stream(t.Context()) {
			if err != nil {
				if _, ok := errors.AsType[*pawl.StopError](err); !ok {
					t.Errorf("the replay of events ends with %v", err)
				}
				continue
			}
			if e.Kind == pawl.EventRunEnded {
				stop = e.Result.Stop
			}
		}
		return stop
	}
	if p, err := eng.Replay(t.Context(), "r", a); err != nil || p.Requests != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if stop := ended(); stop != "" {
		t.Errorf("the events end with %s before a process has read the cancellation", stop)
	}

	if res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context())); err != nil || res.Stop != pawl.StopCancelled {
		t.Fatalf("%+v, %v", res, err)
	}
	if p, err := eng.Replay(t.Context(), "r", a); err != nil || p.Result == nil || p.Result.Stop != pawl.StopCancelled {
		t.Errorf("%+v, %v", p, err)
	}
	if stop := ended(); stop != pawl.StopCancelled {
		t.Errorf("the events end with %q, want cancelled", stop)
	}
}
