package durable_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// Two runs are compared by their keys: a run and its fork differ from the fork on.
func TestDiff(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var world durabletest.Memory
	c := durabletest.ForEffect("post")
	if _, err := durabletest.Drive(t.Context(), eng, "a", c, &world); err != nil {
		t.Fatal(err)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "a", ID: "b", Steps: 3}); err != nil {
		t.Fatal(err)
	}
	other := c.Agent(&world)
	other.Model = script.New(script.Say(""), script.Say(""), script.Say(""), script.Say("that is enough"))
	if _, err := eng.Runner("b", other).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, errA := eng.Export(t.Context(), "a")
	b, errB := eng.Export(t.Context(), "b")
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if same, err := journal.Diff(a, a, nil); err != nil || len(same) > 0 {
		t.Errorf("a run differs from itself: %v, %v", same, err)
	}
	ds, err := journal.Diff(a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range ds {
		side := "both"
		if d.First == nil || d.Second == nil {
			side = map[bool]string{true: "b", false: "a"}[d.First == nil]
		}
		got = append(got, fmt.Sprintf("%s %s %s", d.Key, d.What, side))
	}
	want := "run/3/model reply both; run/4/0 call a; run/4/0/clerk/0/model reply a; run/4/0/clerk/1/0 call a; run/4/0/clerk/1/1 call a; run/4/0/clerk/1/model reply a; run/4/1 call a; run/4/model reply a;  end both"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}
