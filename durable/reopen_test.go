package durable_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A failed run that is opened again is resumed by Recover. A run in another state is not opened.
func TestReopen(t *testing.T) {
	j := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: j, Outage: -1}
	model := &runtest.InTurn{Turns: []script.Turn{outage(llm.CodeServer, true), script.Say("Done.")}}
	agent := &pawl.Agent{Name: "clerk", Model: model}
	find := func(store.JournalRun) (pawl.Runner, error) { return agent, nil }
	if _, err := eng.Runner("r", agent).Run(t.Context(), llm.User("go")); err == nil {
		t.Fatal("the run has not failed")
	}
	if n, err := eng.Recover(t.Context(), 0, find); n != 0 || err != nil {
		t.Fatalf("control: a failed run was resumed: %d, %v", n, err)
	}

	if err := eng.Reopen(t.Context(), "r", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := eng.Reopen(t.Context(), "r", "ann"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an open run: %v", err)
	}
	if n, err := eng.Recover(t.Context(), 0, find); n != 1 || err != nil {
		t.Errorf("%d runs were resumed, %v", n, err)
	}
	if head, _ := summaryOf(t, j, "r"); head.State != store.JournalOver {
		t.Errorf("the run is %s", head.State)
	}
	if err := eng.Reopen(t.Context(), "r", "ann"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a run that is over: %v", err)
	}
	if err := eng.Reopen(t.Context(), "none", "ann"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that is not there: %v", err)
	}
	if v, err := eng.Verify(t.Context(), "r", nil); err != nil || !v.Sealed {
		t.Errorf("%+v, %v", v, err)
	}
}
