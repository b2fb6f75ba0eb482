package pawl

import (
	"context"

	"github.com/pawl-go/pawl/llm"
)

// Middleware wraps model requests, tool calls, or both; nil wraps nothing. Before and after are the two halves of a wrapper. It
// runs where the work is done, and must be safe for concurrent use.
//
// A tool wrapper sees validated calls. It may change the call it passes on (which is then validated again, and needs its own
// approval), refuse it with Block, answer it without passing it on, and change the result. What it panics with fails
// the call, which then does not run.
//
// Approve makes the middleware that decides which calls may run. It has its place in the pipeline, wherever it stands in the list: after
// Tool, whose changes it sees, and before Approved, whose timers so never count a person's time.
type Middleware struct {
	Model    func(llm.Model) llm.Model
	Tool     func(ToolFunc) ToolFunc
	Approved func(ToolFunc) ToolFunc   // wraps calls that may run, before they count and take a slot, their repeats included; a change needs a new approval
	Check    func(tools []*Tool) error // sees the tools of a run before it begins; an error ends it there

	approve Approver
}

// layers are the parts of an agent's middleware that go around a call, outermost first; nil: nothing.
type layers struct {
	tool     func(ToolFunc) ToolFunc // around the check and the approval of what it made of the call
	policies []Approver
	approved func(ToolFunc) ToolFunc // around what was approved
}

// Before returns the middleware that sees each validated call before approval. It returns the call to carry out in its place, or
// an error: Block, Abort, Finish, or any other, which the model is told.
func Before(fn func(ctx context.Context, call llm.ToolCall) (llm.ToolCall, error)) Middleware {
	return Middleware{Tool: func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			call, err := fn(ctx, call)
			if err != nil {
				return llm.ToolResult{}, err
			}
			return next(ctx, call)
		}
	}}
}

// After returns the middleware that sees what each call gave, and returns what it gives in its place.
func After(fn func(ctx context.Context, call llm.ToolCall, res llm.ToolResult, err error) (llm.ToolResult, error)) Middleware {
	return Middleware{Tool: func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			res, err := next(ctx, call)
			return fn(ctx, call, res, err)
		}
	}}
}

// wrapped puts the middleware around m, and returns what goes around calls, and who knows what a request costs: the outermost model that does;
// nil: nobody.
func wrapped(m llm.Model, ws []Middleware) (llm.Model, layers, llm.Pricer) {
	var l layers
	pricer, _ := llm.As[llm.Pricer](m)
	for i := len(ws) - 1; i >= 0; i-- {
		w := ws[i]
		if w.Model != nil {
			m = w.Model(m)
			if p, ok := llm.As[llm.Pricer](m); ok {
				pricer = p
			}
		}
		l.tool, l.approved = around(w.Tool, l.tool), around(w.Approved, l.approved)
	}
	for _, w := range ws {
		if w.approve != nil {
			l.policies = append(l.policies, w.approve)
		}
	}
	return m, l, pricer
}

// around puts outer around inner; nil wraps nothing.
func around(outer, inner func(ToolFunc) ToolFunc) func(ToolFunc) ToolFunc {
	if outer == nil || inner == nil {
		if outer == nil {
			return inner
		}
		return outer
	}
	return func(f ToolFunc) ToolFunc { return outer(inner(f)) }
}
