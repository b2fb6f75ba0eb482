package durable_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A timeline has the start and end of each request and call, also in a nested agent, and the time
// that a person took. The timeline of a fork marks the copied part.
func TestTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := time.Now()
		slow := func(name string, takes time.Duration) *pawl.Tool {
			tool := pawl.Func(name, "Takes its time.",
				func(context.Context, struct{}) (string, error) { time.Sleep(takes); return "done", nil })
			tool.Effect = pawl.EffectRead
			return tool
		}
		ask := &pawl.Tool{Name: "ask", Description: "Asks.", Input: json.RawMessage(`{"type":"object"}`), Passive: true}
		inner := &pawl.Agent{Name: "inner", Model: script.New(script.Call("one", `{}`), script.Say("ok")),
			Tools: []pawl.Toolset{slow("one", time.Second)}}
		a := &pawl.Agent{Name: "outer", Tools: []pawl.Toolset{slow("two", 2*time.Second), inner.Tool("Does one thing."), ask},
			Model: script.New(script.Together(script.Call("two", `{}`), script.Call("inner", `{"task":"go"}`)), script.Call("ask", `{}`), script.Say("all done"))}
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("Do it.")))
		if err != nil || res.Stop != pawl.StopPending {
			t.Fatal(res, err)
		}
		time.Sleep(time.Hour)
		if err := eng.Decide(t.Context(), "r", res.Pending[0].Answer("ann", llm.TextResult("yes"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := eng.Runner("r", a).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		tl, err := eng.Timeline(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		s := func(n float64) time.Time { return zero.Add(time.Duration(n * float64(time.Second))) }
		want := &journal.Timeline{Began: s(0), Ended: s(3662), Taken: []time.Time{s(0), s(3662)}, Spans: []journal.Span{
			{Key: "run/0/model", What: "request", Started: s(0), Ended: s(0)},
			{Key: "run/1/0", What: "call", Started: s(0), Ended: s(2)},
			{Key: "run/1/1", What: "call", Started: s(0), Ended: s(1)},
			{Key: "run/1/1/inner/0/model", What: "request", Started: s(0), Ended: s(0)},
			{Key: "run/1/1/inner/1/0", What: "call", Started: s(0), Ended: s(1)},
			{Key: "run/1/1/inner/1/model", What: "request", Started: s(1), Ended: s(1)},
			{Key: "run/1/model", What: "request", Started: s(2), Ended: s(2)},
			{Key: "run/2/0", What: "call", Started: s(2), Ended: s(3662),
				Waits: []journal.Wait{{Asked: s(2), Answered: s(3602), By: "ann"}}},
			{Key: "run/2/model", What: "request", Started: s(3662), Ended: s(3662)},
		}}
		if diff := cmp.Diff(tl, want); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "f", Steps: 1}); err != nil {
			t.Fatal(err)
		}
		if tl, err = eng.Timeline(t.Context(), "f"); err != nil {
			t.Fatal(err)
		}
		for _, span := range tl.Spans {
			if !span.Copied {
				t.Errorf("%s is not said to be copied", span.Key)
			}
		}
		if len(tl.Spans) == 0 || !tl.Ended.IsZero() {
			t.Errorf("the fork: %+v", tl)
		}
	})
}
