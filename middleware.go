package pawl

import "context"

// Middleware wraps model requests, tool calls, or both; nil wraps nothing. Before and after are the two halves of a wrapper. It
// runs where the work is done, and must be safe for concurrent use.
//
// A tool wrapper sees validated calls. It may change the call it passes on (which is then validated again, and needs its own
// approval), refuse it with Block, answer it without passing it on, and change the result. What it panics with fails
// the call, which then does not run.
type Middleware struct {
	Model func(Model) Model
	Tool  func(ToolFunc) ToolFunc
}

// Before returns the middleware that sees each validated call before approval. It returns the call to carry out in its place, or
// an error: Block, Abort, Finish, or any other, which the model is told.
func Before(fn func(ctx context.Context, call ToolCall) (ToolCall, error)) Middleware {
	return Middleware{Tool: func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call ToolCall) (ToolResult, error) {
			call, err := fn(ctx, call)
			if err != nil {
				return ToolResult{}, err
			}
			return next(ctx, call)
		}
	}}
}

// After returns the middleware that sees what each call gave, and returns what it gives in its place.
func After(fn func(ctx context.Context, call ToolCall, res ToolResult, err error) (ToolResult, error)) Middleware {
	return Middleware{Tool: func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call ToolCall) (ToolResult, error) {
			res, err := next(ctx, call)
			return fn(ctx, call, res, err)
		}
	}}
}

// wrapped puts the middleware around m, and returns what goes around calls; nil when nothing does.
func wrapped(m Model, ws []Middleware) (Model, func(ToolFunc) ToolFunc) {
	var tool func(ToolFunc) ToolFunc
	for i := len(ws) - 1; i >= 0; i-- {
		w := ws[i]
		if w.Model != nil {
			m = w.Model(m)
		}
		if w.Tool == nil {
			continue
		}
		inner := tool
		tool = func(f ToolFunc) ToolFunc {
			if inner != nil {
				f = inner(f)
			}
			return w.Tool(f)
		}
	}
	return m, tool
}
