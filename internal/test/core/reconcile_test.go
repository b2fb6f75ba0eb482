package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// The tool decides about an interrupted Write if it can. If the write happened, it is not repeated.
// If it did not happen, it is executed once more after an approval. If the outcome is unknown, a
// person is asked.
func TestReconcile(t *testing.T) {
	for _, row := range []struct {
		name      string
		reconcile func(ctx context.Context, c llm.ToolCall) (*llm.ToolResult, error)
		ask       bool
		stop      pawl.StopReason
		ran       int
		told      string
	}{
		{"it happened", func(context.Context, llm.ToolCall) (*llm.ToolResult, error) {
			r := llm.TextResult("it was paid")
			return &r, nil
		}, false, pawl.StopAnswer, 1, "it was paid"},
		{"it did not", func(context.Context, llm.ToolCall) (*llm.ToolResult, error) { return nil, nil }, false,
			pawl.StopAnswer, 2, "paid"},
		{"it did not, and wants approval", func(context.Context, llm.ToolCall) (*llm.ToolResult,
			error) {
			return nil, nil
		}, true, pawl.StopPending, 1, "pending"},
		{"it cannot say", func(context.Context, llm.ToolCall) (*llm.ToolResult, error) {
			return nil,
				errors.New("no line")
		}, false, pawl.StopPending, 1, "no line"},
		{"it panics", func(context.Context, llm.ToolCall) (*llm.ToolResult, error) { panic("oh") }, false, pawl.StopPending, 1, "oh"},
		{"it has none", nil, false, pawl.StopPending, 1, "unknown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ran, key := 0, ""
			pay := does("pay", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				if ran++; ran == 1 {
					key = pawl.InvocationFrom(ctx).IdempotencyKey()
					cancel()
					return llm.ToolResult{}, context.Canceled
				}
				return llm.TextResult("paid"), nil
			})
			pay.Effect = pawl.EffectWrite
			if row.reconcile != nil {
				pay.Reconcile = func(ctx context.Context, c llm.ToolCall) (*llm.ToolResult, error) {
					if got := pawl.InvocationFrom(ctx).IdempotencyKey(); got != key || c.Name != "pay" {
						t.Errorf("it is asked about %s with key %s, want %s", c.Name, got, key)
					}
					return row.reconcile(ctx, c)
				}
			}
			a := &pawl.Agent{Model: script.New(script.Call("pay", `{}`), script.Say("done")), Tools: []pawl.Toolset{pay}}
			res, err := runtest.Ended(a.Run(ctx, llm.User("pay")))
			if !errors.Is(err, context.Canceled) || len(res.Pending) != 1 ||
				res.Pending[0].Outcome != pawl.OutcomeUnknown {
				t.Fatalf("%+v, %v", res, err)
			}
			if row.ask {
				a.Middleware = []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}
			}
			res, err = runtest.Ended(a.Resume(t.Context(), res))
			if err != nil || res.Stop != row.stop || ran != row.ran {
				t.Errorf("%+v, %v; ran %d times, want %d", res, err, ran, row.ran)
			}
			told := ""
			for _, w := range res.Pending {
				told += string(w.Outcome) + " " + w.Why
			}
			for _, m := range res.Messages {
				for _, p := range m.Parts {
					if r, ok := p.(llm.ToolResult); ok {
						told += r.Text()
					}
				}
			}
			if !strings.Contains(told, row.told) {
				t.Errorf("%q does not hold %q", told, row.told)
			}
		})
	}
}
