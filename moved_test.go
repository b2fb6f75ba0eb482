package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// An executor that knows how some of the calls ended gives only the others on, which are then not at the place that their Index says. A run that is watched
// ends all the same.
func TestSomeOfTheCallsAreGivenOn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	fan := both("fan", func() [][]pawl.ToolCall { return [][]pawl.ToolCall{{inner("a"), inner("a"), inner("pay"), inner("pay")}} })
	a := &pawl.Agent{Model: script.New(script.Call("fan", `{}`), script.Say("done")), Executor: new(pawltest.Kept), Tools: []pawl.Toolset{fan, says("a", "a"), says("pay", "paid")},
		Middleware: []pawl.Middleware{asksFor("pay")}}
	_, res, err := collect(a.Stream(ctx, pawl.User("go")))
	for err == nil && res.Stop == pawl.StopPending {
		var yes []pawl.Decision
		for _, w := range res.Pending {
			yes = append(yes, w.Approve("ann"))
		}
		_, res, err = collect(a.ResumeStream(ctx, res, pawl.Decide(yes...)))
	}
	if err != nil || res.Stop != pawl.StopAnswer || say(res.Messages[2:3]) != "tool: call_1_0 = a,a,paid,paid\n" {
		t.Errorf("got %v, %+v", err, res)
	}
}
