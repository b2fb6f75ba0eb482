package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// The context of a call behaves as any other context: derived contexts end with it and with its
// cause, and it is cancelled when the call has ended.
func TestTheContextOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		outer := context.WithValue(t.Context(), key{}, "value")
		var kept context.Context
		tool := does("f", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			kept = ctx
			if ctx.Value(key{}) != "value" || ctx.Err() != nil {
				t.Errorf("got %v, %v", ctx.Value(key{}), ctx.Err())
			}
			child, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if d, ok := child.Deadline(); !ok || time.Until(d) != time.Second {
				t.Errorf("the derived deadline is in %v", time.Until(d))
			}
			ended := make(chan error, 1)
			stop := context.AfterFunc(ctx, func() { ended <- ctx.Err() })
			defer stop()
			if pawl.InvocationFrom(child) == nil || pawl.InvocationFrom(child).Call.Name != "f" {
				t.Error("a derived context has no invocation")
			}
			if string(c.Args) == `{"quick":true}` {
				return llm.TextResult(""), nil
			}
			<-child.Done()
			if !errors.Is(child.Err(), context.DeadlineExceeded) || context.Cause(child) == nil ||
				context.Cause(child) != context.Cause(ctx) {
				t.Errorf("got %v because of %v", child.Err(), context.Cause(child))
			}
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("AfterFunc saw %v", err)
			}
			return llm.ToolResult{}, child.Err()
		})
		tool.Timeout = time.Second
		if x := (pawl.Toolsets{tool}).Execute(outer, call("", "f", "{}")); x.Outcome != pawl.OutcomeTimeout {
			t.Errorf("got %s", x.Outcome)
		}
		if x := (pawl.Toolsets{tool}).Execute(outer, call("", "f", `{"quick":true}`)); x.Outcome != pawl.OutcomeOK {
			t.Errorf("got %s", x.Outcome)
		}
		select {
		case <-kept.Done():
		default:
			t.Error("the context outlives the call")
		}
		if kept.Err() == nil {
			t.Error("the context has no error after the call")
		}
	})
}
