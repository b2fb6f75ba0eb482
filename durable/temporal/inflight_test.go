package temporal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// Two composing tools with many calls that wait leave room for the answers: the cluster accepts ten
// updates of a run at once.
func TestAnswersToManyNestedCalls(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	eng, err := dial(addr, "nested-"+t.TempDir(), new(memory))
	if err != nil {
		t.Fatal(err)
	}
	pay := pawl.Func("pay", "pays", func(context.Context, struct{ N int }) (string, error) { return "paid", nil })
	pay.Concurrent = true
	all := pawl.Func("all", "pays seven times", func(ctx context.Context, _ struct{}) (string, error) {
		var calls []llm.ToolCall
		for n := range 7 {
			calls = append(calls, llm.ToolCall{Name: "pay", Args: fmt.Appendf(nil, `{"N":%d}`, n)})
		}
		done, err := pawl.InvocationFrom(ctx).Do(ctx, calls...)
		return fmt.Sprint(len(done)), err
	})
	all.Effect = pawl.EffectCompose
	a := &pawl.Agent{Model: script.New(script.Together(script.Call("all", nil), script.Call("all", nil)), script.Say("done")),
		Tools: []pawl.Toolset{pay, all}, Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	inProcess(t, eng, a, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := eng.Runner(eng.TaskQueue, "agent")
	t0 := time.Now()
	msgs, answered := ask, 0
	for {
		res, err := runtest.Ended(run.Run(ctx, msgs...))
		t.Log(time.Since(t0), answered, err, res)
		if err != nil {
			t.Fatal(err)
		}
		if res.Stop == pawl.StopAnswer {
			break
		}
		msgs = nil
		for _, w := range res.Pending {
			msgs = append(msgs, llm.DecisionMessage(w.Approve("me")))
			answered++
		}
	}
	if answered != 14 {
		t.Errorf("%d questions", answered)
	}
}
