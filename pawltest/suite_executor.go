package pawltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// TestExecutor runs the suite that every Executor must pass: a step has one completed execution for
// each call, results are in call order, failures of tools are results, a pending call has its
// question, nested calls end before the call around them, and all calls have ended when a cancelled
// run has. open returns the Executor of one run.
func TestExecutor[TT T[TT]](t TT, open func(t TT) pawl.Executor) {
	for name, c := range executorCases() {
		t.Run(name, func(t TT) {
			agent := clerk(nil, c.turn, script.Say("done"))
			agent.Tools = append(agent.Tools, executorTools()...)
			agent.Executor = open(t)
			agent.Middleware = nil
			if c.asks {
				agent.Middleware = clerk(nil).Middleware
			}

			completed := map[llm.Key]int{}
			res, err := pawl.Collect(agent.Stream(t.Context(), llm.User("Go.")), func(e pawl.Event) {
				if e.Execution != nil {
					completed[e.Execution.Key]++
				}
			})
			var fault *pawl.ExecutorError
			if errors.As(err, &fault) {
				t.Fatalf("the run refuses the executor: %v", fault)
			}
			if res == nil {
				t.Fatalf("the run has no result: %v", err)
			}
			if got := outcomesOf(res); got != c.outcomes {
				t.Errorf("the outcomes are %s, want %s", got, c.outcomes)
			}
			for key, n := range completed {
				if n != 1 {
					t.Errorf("call %s is completed %d times", key, n)
				}
			}
		})
	}
	t.Run("cancelled", func(t TT) { testExecutorCancelled(t, open(t)) })
}

type executorCase struct {
	turn     script.Turn
	outcomes string // of the calls, in call order
	asks     bool   // payments need an approval
}

func executorCases() map[string]executorCase {
	look, pay := script.Call("look", `{"at":"a"}`), script.Call("pay", `{"at":"7"}`)
	return map[string]executorCase{
		"one call":     {look, "ok", false},
		"many reads":   {script.Together(look, look, look, look), "ok ok ok ok", false},
		"writes":       {script.Together(pay, look, pay), "ok ok ok", false},
		"failures":     {script.Together(script.Call("breaks", `{}`), look, script.Call("panics", `{}`)), "error ok panicked", false},
		"wrong calls":  {script.Together(script.Call("nobody", `{}`), script.Call("look", `{"at":5}`), look), "unknown_tool invalid ok", false},
		"questions":    {script.Together(look, pay), "ok pending", true},
		"nested calls": {script.Together(script.Call("both", `{}`), look), "ok ok", false},
	}
}

// executorTools are tools that fail, and a tool that calls two others.
func executorTools() []pawl.Toolset {
	breaks := pawl.Func("breaks", "Fails.", func(context.Context, struct{}) (string, error) { return "", errors.New("no") })
	panics := pawl.Func("panics", "Panics.", func(context.Context, struct{}) (string, error) { panic("no") })
	both := pawl.Func("both", "Looks twice.", func(ctx context.Context, _ struct{}) (string, error) {
		look := llm.ToolCall{Name: "look", Args: []byte(`{"at":"a"}`)}
		done, err := pawl.InvocationFrom(ctx).Do(ctx, look, look)
		return fmt.Sprint(len(done)), err
	})
	both.Effect = pawl.EffectCompose
	return []pawl.Toolset{breaks, panics, both}
}

func outcomesOf(res *pawl.Result) string {
	var all []string
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			all = append(all, string(x.Outcome))
		}
	}
	return strings.Join(all, " ")
}

// testExecutorCancelled cancels a run during a call. The run ends soon, and has a result for the
// call.
func testExecutorCancelled[TT T[TT]](t TT, executor pawl.Executor) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	agent := clerk(make(chan struct{}), script.Together(script.Call("wait", `{}`), script.Call("look", `{"at":"a"}`)))
	agent.Executor = executor
	res, err := pawl.Collect(agent.Stream(ctx, llm.User("Go.")), func(e pawl.Event) {
		if e.Kind == pawl.EventCallStarted && e.Call.Name == "wait" {
			cancel(pawl.ErrCancelled)
		}
	})
	if res == nil || res.Stop != pawl.StopCancelled || len(res.Calls()) > 0 {
		t.Errorf("got %+v, %v; want a cancelled run without open calls", res, err)
	}
}
