package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

func TestMiddlewareChangesCallsAndResults(t *testing.T) {
	var got []string
	tool := &pawl.Tool{Name: "f", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`),
		Run: func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			got = append(got, fmt.Sprintf("%s %s %s, invocation %s %s %s", c.ID, c.Name, c.Args, v.Call.ID, v.Call.Name, v.Call.Args))
			return llm.TextResult("one"), nil
		}}
	before := func(change func(llm.ToolCall) llm.ToolCall) pawl.Middleware {
		return pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) { return change(c), nil })
	}
	after := pawl.After(func(_ context.Context, c llm.ToolCall, r llm.ToolResult, err error) (llm.ToolResult, error) {
		return llm.TextResult(r.Text() + ", seen"), err
	})
	run := func(ms ...pawl.Middleware) pawl.Execution {
		t.Helper()
		got = nil
		x, _, err := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{tool, says("g", "from g")}, Middleware: ms}, call("", "f", `{"a":1}`))
		if err != nil {
			t.Error(err)
		}
		return x
	}
	x := run(before(func(c llm.ToolCall) llm.ToolCall { c.Args = json.RawMessage(`{"a":2}`); return c }), after)
	if x.Outcome != pawl.OutcomeOK || string(x.Call.Args) != `{"a":2}` || x.Result.Text() != "one, seen" || x.Result.CallID != "c0" {
		t.Errorf("changed: got %+v", x)
	}
	if diff := cmp.Diff(got, []string{`c0 f {"a":2}, invocation c0 f {"a":2}`}); diff != "" {
		t.Error(diff)
	}
	x = run(before(func(c llm.ToolCall) llm.ToolCall { c.Args = json.RawMessage(`{"a":"x"}`); return c }), after)
	if x.Outcome != pawl.OutcomeInvalid || got != nil {
		t.Errorf("changed to what does not fit: got %s, ran %v", x.Outcome, got)
	}
	if x = run(before(func(c llm.ToolCall) llm.ToolCall {
		c.Name = "g"
		return c
	})); x.Outcome != pawl.OutcomeInvalid && x.Result.Text() != "from g" {
		t.Errorf("changed to another tool: got %+v", x)
	}
	if x = run(before(func(c llm.ToolCall) llm.ToolCall {
		c.Name = "none"
		return c
	})); x.Outcome != pawl.OutcomeUnknownTool {
		t.Errorf("changed to no tool: got %+v", x)
	}
	// A call keeps its ID in spite of any change by a middleware.
	x = run(before(func(c llm.ToolCall) llm.ToolCall { return llm.ToolCall{Name: "f", Args: json.RawMessage(`{"a":3}`)} }))
	if x.Outcome != pawl.OutcomeOK || x.Call.ID != "c0" || got[0] != `c0 f {"a":3}, invocation c0 f {"a":3}` {
		t.Errorf("replaced: got %+v, %q", x.Call, got)
	}
	// The first middleware is the outermost. A middleware may answer a call without passing it on.
	var order []string
	note := func(name string) pawl.Middleware {
		return pawl.Middleware{Tool: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				order = append(order, name)
				defer func() { order = append(order, "/"+name) }()
				return next(ctx, c)
			}
		}}
	}
	cached := pawl.Middleware{Tool: func(pawl.ToolFunc) pawl.ToolFunc {
		return func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("cached"), nil }
	}}
	x = run(note("a"), pawl.Middleware{}, note("b"), cached, note("c"))
	if diff := cmp.Diff(order, []string{"a", "b", "/b", "/a"}); diff != "" || x.Result.Text() != "cached" || x.Attempts != 0 || got != nil {
		t.Errorf("got %q after %d attempts, order %s", x.Result.Text(), x.Attempts, diff)
	}
	x = run(pawl.After(func(context.Context, llm.ToolCall, llm.ToolResult, error) (llm.ToolResult, error) {
		panic("after")
	}))
	if x.Outcome != pawl.OutcomePanicked || len(got) != 1 {
		t.Errorf("a panic after the call: got %s, ran %v", x.Outcome, got)
	}
}

// A call that a middleware passes on twice counts as two attempts.
func TestMiddlewareThatRepeatsACall(t *testing.T) {
	tries := 0
	flaky := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		if tries++; tries < 3 {
			return llm.ToolResult{}, errors.New("busy")
		}
		return llm.TextResult("at last"), nil
	})
	again := pawl.Middleware{Tool: func(next pawl.ToolFunc) pawl.ToolFunc {
		return func(ctx context.Context, c llm.ToolCall) (res llm.ToolResult, err error) {
			for range 3 {
				if res, err = next(ctx, c); err == nil {
					break
				}
			}
			return res, err
		}
	}}
	x, _, _ := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{flaky}, Middleware: []pawl.Middleware{again}},
		call("", "f", "{}"))
	if x.Outcome != pawl.OutcomeOK || x.Attempts != 3 {
		t.Errorf("got %s after %d attempts, want ok after 3", x.Outcome, x.Attempts)
	}
}

// A middleware cannot turn an executed call into a pending call.
func TestMiddlewareSeesThatACallWaits(t *testing.T) {
	var told []string
	after := pawl.After(func(_ context.Context, c llm.ToolCall, r llm.ToolResult, err error) (llm.ToolResult, error) {
		told = append(told, fmt.Sprint(c.Name, " ", err != nil))
		return llm.TextResult("all is well"), nil
	})
	x, res, _ := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{passive("ask")},
		Middleware: []pawl.Middleware{after}}, call("", "ask", "{}"))
	if x.Outcome != pawl.OutcomePending || res.Stop != pawl.StopPending || !slices.Equal(told, []string{"ask true"}) {
		t.Errorf("got %s, %s, told %q", x.Outcome, res.Stop, told)
	}
}
