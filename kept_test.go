package pawl_test

import (
	"context"
	"iter"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
)

// keeping is a Model that keeps the number of its requests between them.
type keeping struct {
	pawl.Model
	seen []any
}

func (k *keeping) Stream(ctx context.Context, req *pawl.Request) iter.Seq2[pawl.Delta, error] {
	got := pawl.Kept(ctx, k)
	k.seen = append(k.seen, got, pawl.Kept(ctx, k), pawl.Kept(ctx, k.Model))
	n, _ := got.(int)
	if !pawl.Keep(ctx, k, -1) || !pawl.Keep(ctx, k, n+1) {
		k.seen = append(k.seen, "not kept")
	}
	return k.Model.Stream(ctx, req)
}

// What a Model keeps is there for its next request of the same run, once, and for nobody else.
func TestKept(t *testing.T) {
	for range 2 { // another run knows nothing of it
		k := &keeping{Model: script.New(script.Call("look", nil), script.Call("look", nil), script.Say("done"))}
		agent := &pawl.Agent{Model: k, Tools: []pawl.Toolset{&pawl.Tool{Name: "look", Run: func(ctx context.Context, _ pawl.ToolCall) (pawl.ToolResult, error) {
			return pawl.TextResult("seen"), nil
		}}}}
		if _, err := agent.Run(t.Context(), pawl.User("go")); err != nil {
			t.Fatal(err)
		}
		want := []any{nil, nil, nil, 1, nil, nil, 2, nil, nil}
		if len(k.seen) != len(want) {
			t.Fatalf("got %v", k.seen)
		}
		for i := range want {
			if k.seen[i] != want[i] {
				t.Errorf("look %d: got %v, want %v", i, k.seen[i], want[i])
			}
		}
	}
	if pawl.Keep(t.Context(), t, 1) || pawl.Kept(t.Context(), t) != nil {
		t.Error("something is kept outside of a run")
	}
}

// released counts how often it was told that the run is over.
type released struct{ times int }

func (r *released) Release() { r.times++ }

// What is kept when a run ends is told so, once; what was taken is not: somebody has it.
func TestKeptIsReleased(t *testing.T) {
	kept, taken := new(released), new(released)
	m := &releasing{Model: script.New(script.Say("done")), kept: kept, taken: taken}
	agent := &pawl.Agent{Model: m}
	if _, err := agent.Run(t.Context(), pawl.User("go")); err != nil {
		t.Fatal(err)
	}
	if m.early || kept.times != 1 || taken.times != 0 {
		t.Errorf("before the end: %t; kept: told %d times; taken: %d times", m.early, kept.times, taken.times)
	}
}

type releasing struct {
	pawl.Model
	kept, taken *released
	early       bool
}

func (m *releasing) Stream(ctx context.Context, req *pawl.Request) iter.Seq2[pawl.Delta, error] {
	pawl.Keep(ctx, m.taken, m.taken)
	pawl.Keep(ctx, m.kept, m.kept)
	m.early = pawl.Kept(ctx, m.taken) != m.taken || m.kept.times > 0
	return m.Model.Stream(ctx, req)
}
