package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
)

func TestApproval(t *testing.T) {
	ran := 0
	tool := &pawl.Tool{Name: "write", Input: json.RawMessage(`{"type":"object"}`),
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran++
			return llm.TextResult("written"), nil
		}}
	read := says("read", "fine")
	read.Effect = pawl.EffectRead
	newAgent := func() *pawl.Agent {
		return &pawl.Agent{Tools: []pawl.Toolset{tool, read}, Middleware: policies(policy.AskBeforeWrites),
			Model: together(call("w", "write", `{"b": 1, "a": 2}`), call("r", "read", `{}`))}
	}
	a := newAgent()
	pending, err := step(t, t.Context(), a)
	if err != nil || pending.Stop != pawl.StopPending || ran != 0 || len(pending.Pending) != 1 {
		t.Fatalf("got %+v, %v", pending, err)
	}
	w := pending.Pending[0]
	if w.Key != "run/1/0" || w.Call.ID != "w" || w.Outcome != pawl.OutcomePending ||
		w.Why != "it may change the world" || w.Digest == "" || w.Passive || w.Attempt != 0 {
		t.Errorf("got %+v", w)
	}
	if got := say(pending.Messages[2:]); got != "tool: r = fine\n" {
		t.Errorf("the call that needs no approval is to run: got %s", got)
	}
	settle := func(d llm.Decision) (*pawl.Result, []pawl.Event) {
		t.Helper()
		ran = 0
		from := *pending // a Result is resumed once
		events, res, err := collect(a.ResumeStream(t.Context(), &from, llm.DecisionMessage(d)))
		if err != nil {
			t.Fatal(err)
		}
		mustBeValid(t, res)
		return res, events
	}
	if res, _ := settle(w.Approve("ann")); res.Stop != pawl.StopAnswer || ran != 1 ||
		res.Steps[0].Executions[0].Decision.By != "ann" {
		t.Errorf("approved: got %s, ran %d times", res.Stop, ran)
	} else if got := say(res.Messages[2:3]); got != "tool: w = written\ntool: r = fine\n" {
		t.Errorf("approved: got %s", got)
	}
	if res, _ := settle(w.Deny("ann", "not today")); res.Stop != pawl.StopAnswer || ran != 0 ||
		res.Steps[0].Executions[0].Outcome != pawl.OutcomeDenied {
		t.Errorf("denied: got %s, ran %d times", res.Stop, ran)
	} else if got := say(res.Messages[2:3]); got != "tool: w = error: Denied: not today\ntool: r = fine\n" {
		t.Errorf("denied: got %s", got)
	}
	if res, _ := settle(w.Answer("ann", llm.TextResult("by hand"))); ran != 0 ||
		res.Steps[0].Executions[0].Outcome != pawl.OutcomeOK {
		t.Errorf("answered: ran %d times, %+v", ran, res.Steps[0].Executions[0])
	} else if got := say(res.Messages[2:3]); got != "tool: w = by hand\ntool: r = fine\n" {
		t.Errorf("answered: got %s", got)
	}
	wrong := w.Approve("eve")
	wrong.Digest = strings.Repeat("0", len(w.Digest))
	res, events := settle(wrong)
	if res.Stop != pawl.StopPending || ran != 0 || res.Pending[0].Digest != w.Digest {
		t.Errorf("wrong digest: got %s, ran %d times", res.Stop, ran)
	}
	if !slices.ContainsFunc(events, func(e pawl.Event) bool { return e.Kind == pawl.EventNotice && e.Code == "decision_refused" }) {
		t.Error("wrong digest: nobody was told")
	}
	// The digest covers the arguments in canonical form, the tool's schema and the place of the
	// call.
	a.Model = together(call("w", "write", `{"a":2,"b":1}`), call("r", "read", `{}`))
	if same, _ := step(t, t.Context(), a); same.Pending[0].Digest != w.Digest {
		t.Error("the same arguments in another order have another digest")
	}
	a.Model = together(call("w", "write", `{"a":2,"b":1.0}`), call("r", "read", `{}`))
	if other, _ := step(t, t.Context(), a); other.Pending[0].Digest == w.Digest {
		t.Error("other arguments have the same digest")
	}
	a.Model = together(call("r", "read", `{}`), call("w", "write", `{"a":2,"b":1}`))
	if other, _ := step(t, t.Context(), a); other.Pending[0].Digest == w.Digest {
		t.Error("another place has the same digest")
	}
	a = newAgent()
	changed := tool.Clone()
	changed.Input = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)
	a.Tools[0] = changed
	if res, _ := settle(w.Approve("ann")); res.Stop != pawl.StopPending || ran != 0 {
		t.Errorf("another schema: got %s, ran %d times", res.Stop, ran)
	}
	// A call that a middleware changes after its approval needs a new approval.
	a = newAgent()
	a.Middleware = []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites),
		pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
			c.Args = json.RawMessage(`{"changed":true}`)
			return c, nil
		})}
	res, _ = settle(w.Approve("ann"))
	if res.Stop != pawl.StopPending || ran != 0 || string(res.Pending[0].Call.Args) != `{"changed":true}` {
		t.Errorf("changed: got %s, ran %d times, %+v", res.Stop, ran, res.Pending)
	}
}

// An approver that returns because the run ends has denied nothing.
func TestAnApproverWhoseRunEndsDecidesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	a := &pawl.Agent{Tools: []pawl.Toolset{says("f", "")}, Middleware: policies(func(ctx context.Context,
		_ llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		cancel(errors.New("shut down"))
		<-ctx.Done()
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "nobody is there"}, nil
	})}
	x, res, err := one(t, ctx, a, call("", "f", "{}"))
	if err == nil || x.Outcome != pawl.OutcomeCancelled || len(res.Calls()) != 1 {
		t.Errorf("got %s, %v, transcript\n%s", x.Outcome, err, say(res.Messages))
	}
}

// If a middleware gives up because the run ends, its call stays open as if it had not started.
func TestAMiddlewareWhoseRunEndsLeavesItsCallOpen(t *testing.T) {
	for _, cause := range []error{errors.New("shut down"), pawl.ErrCancelled} {
		ctx, cancel := context.WithCancelCause(t.Context())
		limiter := pawl.Before(func(ctx context.Context, c llm.ToolCall) (llm.ToolCall, error) {
			cancel(cause)
			<-ctx.Done()
			return c, fmt.Errorf("wait for a turn: %w", ctx.Err())
		})
		x, res, _ := one(t, ctx, &pawl.Agent{Tools: []pawl.Toolset{says("f", "")},
			Middleware: []pawl.Middleware{limiter}}, call("", "f", "{}"))
		if open := len(res.Calls()); x.Outcome != pawl.OutcomeCancelled || (open == 1) != (cause != pawl.ErrCancelled) {
			t.Errorf("%v: got %s, open %d, transcript\n%s", cause, x.Outcome, open, say(res.Messages))
		}
	}
}
