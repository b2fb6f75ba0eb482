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
