package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Answers on a cluster have the outcomes of the table. A worker begins a call as soon as the run
// has its approval.
func TestAnswerTable(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	answertest.Play(t, "Temporal", func(t *testing.T, n int, within time.Duration) (all []*answertest.Run) {
		queue := "answers-" + t.TempDir()
		eng, err := dial(addr, queue, new(memory))
		if err != nil {
			t.Fatal(err)
		}
		w := inProcess(t, eng, nil, nil)
		for i := range n {
			till, id := answertest.NewTill(t), fmt.Sprint(queue, i)
			if err := w.Add(t.Context(), id, till.Agent(5+i, within)); err != nil {
				t.Fatal(err)
			}
			ctx, run := context.Background(), eng.Runner(id, id)
			open := func(msgs ...llm.Message) int {
				res, err := runtest.Ended(run.Run(ctx, msgs...))
				if err != nil {
					t.Error(err)
					return -1
				}
				return len(res.Pending)
			}
			if n := open(llm.User("pay")); n != 1 {
				t.Fatalf("%d questions", n)
			}
			s, err := eng.State(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &answertest.Run{Question: s.Pending[0], Till: till,
				Answer: func(to answertest.To, d llm.Decision) string {
					if to.Lost {
						return answertest.Word(eng.Decide(ctx, id+"-lost", d))
					}
					return answertest.Word(eng.Decide(ctx, id, d))
				},
				Begin: func() { <-till.Begun },
				End:   sync.OnceValue(func() int { till.Let(); return open() })})
		}
		return all
	})
}

// The error of a run on a cluster whose answer does not fit is a *pawl.OutputError with the faults,
// as in one process.
func TestUnfitAnswerOnCluster(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	queue := "unfit-" + t.TempDir()
	eng, err := dial(addr, queue, new(memory))
	if err != nil {
		t.Fatal(err)
	}
	w := inProcess(t, eng, nil, nil)
	a := &pawl.Agent{
		Name:   "counter",
		Model:  script.New(script.Loop(script.Say(`{"n":"many"}`))),
		Output: pawl.SchemaFor[struct{ N int }](),
		Limits: pawl.Limits{Corrections: -1},
	}
	if err := w.Add(t.Context(), "counter", a); err != nil {
		t.Fatal(err)
	}

	_, local := pawl.Run(t.Context(), a, llm.User("go"))
	var want, got *pawl.OutputError
	if !errors.As(local, &want) {
		t.Fatalf("in one process: %v", local)
	}
	res, err := pawl.Run(t.Context(), eng.Runner(queue, "counter"), llm.User("go"))
	if !errors.As(err, &got) || got.Text != want.Text || !slices.Equal(got.Faults, want.Faults) ||
		err.Error() != local.Error() {
		t.Errorf("%v, %+v; want %+v", err, got, want)
	}
	if res == nil || !errors.As(res.Err(), &got) {
		t.Errorf("the Result has the error %v", res.Err())
	}
}
