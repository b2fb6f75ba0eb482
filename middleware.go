package pawl

// middleware.go: Middleware around model requests and calls, Before and After.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/pawl-go/pawl/internal/panics"
	"github.com/pawl-go/pawl/llm"
)

// Middleware wraps model requests, tool calls, or both. A nil field wraps nothing.
//
// Tool sees calls whose arguments are valid. It may change the call, which is then validated again
// and needs a new approval; reject it with BlockError; answer it without calling next; or change
// the result. A panic in Tool fails the call, and the tool does not run.
//
// Approvals have a fixed place: after Tool, so that they see its changes, and before Approved, so
// that its timers do not count the time a person takes. Middleware must be safe for concurrent use.
type Middleware struct {
	Model func(llm.Model) llm.Model // wraps the requests to the model
	Tool  func(ToolFunc) ToolFunc   // wraps the calls
	// Approved wraps the calls that may run, before they count and take a slot, including retries.
	// A call that it changes needs a new approval.
	Approved func(ToolFunc) ToolFunc
	// Rank is the place of the middleware among the others of an agent: the smaller, the further
	// out. Equal ranks, such as 0 of middleware of your own, have the order of the list. The
	// policies have ranks, so that each acts in its place, wherever it is listed: see package
	// policy.
	Rank int
	// Check validates the tools of a run before the run starts. An error ends the run.
	Check func(tools []*Tool) error
	// Sole names what only one middleware of an agent can do, such as "the cache of search". Two
	// with an equal name are an error before the run starts, because one would have no effect, or
	// both would disagree. nil means that any number of them may act.
	Sole func(tools []*Tool) []string

	approve Approver
}

// layers are the parts of the middleware of an agent that wrap calls. nil means none.
type layers struct {
	tool     func(ToolFunc) ToolFunc // around validation and approval of changed calls
	policies []Approver
	approved func(ToolFunc) ToolFunc // around approved calls
}

// Before returns a middleware that calls fn with each valid call before its approval. fn returns
// the call to execute, or an error: BlockError, AbortError, FinishError, or another, which the
// model gets as the result.
func Before(fn func(ctx context.Context, call llm.ToolCall) (llm.ToolCall, error)) Middleware {
	return Middleware{Check: needs(fn != nil, "Before"), Tool: func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			call, err := fn(ctx, call)
			if err != nil {
				return llm.ToolResult{}, err
			}
			return next(ctx, call)
		}
	}}
}

// After returns a middleware that calls fn with the result and the error of each call. The values
// that fn returns replace them.
func After(
	fn func(ctx context.Context, call llm.ToolCall, res llm.ToolResult, err error) (llm.ToolResult, error),
) Middleware {
	return Middleware{Check: needs(fn != nil, "After"), Tool: func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			res, err := next(ctx, call)
			return fn(ctx, call, res, err)
		}
	}}
}

// For returns the middleware, without Model, for the calls for which is returns true.
func (m Middleware) For(is func(ctx context.Context, call llm.ToolCall) bool) Middleware {
	some := func(layer func(ToolFunc) ToolFunc) func(ToolFunc) ToolFunc {
		if layer == nil {
			return nil
		}
		return func(next ToolFunc) ToolFunc {
			inside := layer(next)
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				if is(ctx, call) {
					return inside(ctx, call)
				}
				return next(ctx, call)
			}
		}
	}
	if is == nil {
		m.Check = needs(false, "For")
	}
	m.Model, m.Tool, m.Approved = nil, some(m.Tool), some(m.Approved)
	m.Sole = nil // several may act, each for its calls
	if approve := m.approve; approve != nil {
		m.approve = func(ctx context.Context, call llm.ToolCall, tool *Tool) (Approval, error) {
			if is(ctx, call) {
				return approve(ctx, call, tool)
			}
			return Approval{Verdict: VerdictAllow}, nil
		}
	}
	return m
}

// needs returns the check of a middleware that was made without its function.
func needs(given bool, name string) func([]*Tool) error {
	if given {
		return nil
	}
	return func([]*Tool) error { return errors.New(name + " has no function; give it one, or remove it") }
}

// wrapped puts the middleware around m. It returns the layers around calls, and the pricer: the
// outermost model that knows what a request costs. A nil Pricer means that no model knows. The
// error is the fault of a model that is nil or wraps nil; the returned model is then nil.
func wrapped(m llm.Model, ws []Middleware) (_ llm.Model, l layers, pricer llm.Pricer, err error) {
	var short [16]int
	order := byRank(ws, short[:0])
	for n := len(ws); n >= 0; n-- {
		i := n // the place in the list; behind it is the model itself
		if n < len(ws) {
			i = order[n]
			w := ws[i]
			if w.Model != nil && err == nil {
				m, err = w.around(m, i)
			}
			l.tool = around(w.Tool, l.tool)
			l.approved = around(w.Approved, l.approved)
		}

		if err == nil && absent(m) {
			err = noModel(i, len(ws), m == nil)
			m = nil
		}
		if p, ok := llm.As[llm.Pricer](m); ok {
			pricer = p
		}
	}
	for _, w := range ws {
		if w.approve != nil {
			l.policies = append(l.policies, w.approve)
		}
	}
	return m, l, pricer, err
}

// byRank appends the places of the middleware in the list to order, the outermost first.
func byRank(ws []Middleware, order []int) []int {
	for i := range ws {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ws[a].Rank, ws[b].Rank) })
	return order
}

// around returns m in the middleware, which is Middleware[i] of an agent. A panic is an error.
func (w *Middleware) around(m llm.Model, i int) (_ llm.Model, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &FieldError{fmt.Sprintf("Middleware[%d]", i), panics.New("its Model", v)}
		}
	}()
	return w.Model(m), nil
}

// check returns the error of Check. nil means that there is none, or no Check.
func (w *Middleware) check(tools []*Tool) (err error) {
	if w.Check == nil {
		return nil
	}
	defer panics.Recover("its Check", &err)
	return w.Check(tools)
}

// sole returns what Sole names. A panic is an error.
func (w *Middleware) sole(tools []*Tool) (names []string, err error) {
	defer panics.Recover("its Sole", &err)
	return w.Sole(tools), nil
}

// twice adds a fault for each middleware that does what one before it does alone (Middleware.Sole).
func twice(all []Middleware, tools []*Tool, f *faults) {
	first := map[string]int{}
	for i, w := range all {
		if w.Sole == nil {
			continue
		}
		names, err := w.sole(tools)
		f.add(fmt.Sprintf("Middleware[%d]", i), err)
		for _, what := range names {
			if other, taken := first[what]; taken {
				f.add(fmt.Sprintf("Middleware[%d]", i),
					fmt.Errorf("has %s, as Middleware[%d] does; make one of the two", what, other))
				continue
			}
			first[what] = i
		}
	}
}

// absent reports whether m is nil, holds a nil pointer, or wraps such a model.
func absent(m llm.Model) bool {
	for more := true; more; {
		v := reflect.ValueOf(m)
		if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return true
		}
		m, more = llm.Unwrap(m)
	}
	return false
}

// noModel is the fault of an agent whose model, or of its middleware i of n whose model, is nil or
// wraps nil.
func noModel(i, n int, none bool) error {
	switch {
	case i < n:
		return &FieldError{fmt.Sprintf("Middleware[%d]", i),
			errors.New("its Model returned nil, or a model that wraps nil; return a model, such as the given one")}
	case none:
		return &FieldError{"Model", errors.New(`the agent has no model; set one, such as openai.New("gpt-6.1-terra", nil)`)}
	}
	return &FieldError{"Model", errors.New("the model, or the model that it wraps, is nil; set one, such as openai.New(\"gpt-6.1-terra\", nil)")}
}

// around returns outer around inner. nil wraps nothing.
func around(outer, inner func(ToolFunc) ToolFunc) func(ToolFunc) ToolFunc {
	if outer == nil || inner == nil {
		if outer == nil {
			return inner
		}
		return outer
	}
	return func(f ToolFunc) ToolFunc { return outer(inner(f)) }
}
