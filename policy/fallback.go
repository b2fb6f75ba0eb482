package policy

// fallback.go: Fallback, which lets other models answer if the agent's own cannot.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Fallback lets other models answer if the agent's own cannot: if a request fails before the first
// fragment of its reply, with an error that another provider may not have. Each model is tried once
// per request. A run stays with the model that answered last, because prompt caches and signatures
// belong to it; the next run begins with the agent's model. A notice with the code "fallback"
// reports a change, and the reply has the name of its model. Request.Model is for the agent's own
// model and is not sent to another.
//
// Every adapter leaves out opaque data of other providers (llm.Opaque), so a run can change its
// model at any request.
//
// Under pawl.Limits.Cost each model needs a price. The dearest counts when the budget is checked
// before a request.
type Fallback struct {
	// Models are tried in order, after the agent's own model. At least one is required.
	Models []llm.Model

	// On reports whether an error goes to the next model. Nil means every retryable
	// llm.ProviderError, and no quota, no access (a missing or wrong key) and an unknown model. A
	// request that a provider rejects as invalid, or for its content, fails.
	On func(err error) bool
}

// Middleware returns the middleware that falls back. It acts within other middleware, wherever it
// is listed, so that the requests to each of its models pass all of them. An agent has one
// Fallback: list all models in it.
func (f Fallback) Middleware() pawl.Middleware {
	if f.On == nil {
		f.On = mayWorkElsewhere
	}
	return pawl.Middleware{
		Rank: rankFallback,
		Sole: func([]*pawl.Tool) []string { return []string{"the fallback to other models"} },
		Model: func(own llm.Model) llm.Model { // once a run
			others := slices.DeleteFunc(slices.Clone(f.Models), absent) // Check reports these
			return &fallbackModel{all: append([]llm.Model{own}, others...), on: f.On}
		},
		Check: func([]*pawl.Tool) error { return f.check() },
	}
}

// check reports models that cannot be asked.
func (f Fallback) check() error {
	if len(f.Models) == 0 {
		return errors.New("fallback: there is no model to fall back to; set Models")
	}
	for i, m := range f.Models {
		if absent(m) {
			return fmt.Errorf("fallback: Models[%d] is nil; remove it, or set a model", i)
		}
	}
	return nil
}

// absent reports whether m is nil, or an interface or a wrapper that holds a nil pointer.
func absent(m llm.Model) bool {
	v := reflect.ValueOf(m)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return true
	}
	inner, ok := llm.Unwrap(m)
	return ok && absent(inner)
}

// mayWorkElsewhere reports whether another provider may not have the error.
func mayWorkElsewhere(err error) bool {
	var pe *llm.ProviderError
	if !errors.As(err, &pe) {
		return false
	}
	switch pe.Code {
	case llm.CodeQuota, llm.CodeAuthentication, llm.CodePermission, llm.CodeNotFound:
		return true
	}
	return pe.Retryable
}

// fallbackModel is a model over models, for one run.
type fallbackModel struct {
	all  []llm.Model // the agent's own is the first
	on   func(error) bool
	last atomic.Int64 // the index of the model that answered last
}

var (
	_ llm.Model        = (*fallbackModel)(nil)
	_ llm.Pricer       = (*fallbackModel)(nil)
	_ llm.OutputHolder = (*fallbackModel)(nil)
)

// Check returns the error of the first model if none of the models has valid options.
func (m *fallbackModel) Check() (first error) {
	for _, one := range m.all {
		c, ok := llm.As[llm.Checker](one)
		if !ok {
			return nil
		}
		err := c.Check()
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// Unwrap returns the agent's own model.
func (m *fallbackModel) Unwrap() llm.Model { return m.all[0] }

// HoldsOutput reports whether every model does, because any of them may answer.
func (m *fallbackModel) HoldsOutput(req *llm.Request) bool {
	for i, one := range m.all {
		if h, ok := llm.As[llm.OutputHolder](one); !ok || !h.HoldsOutput(forModel(req, i)) {
			return false
		}
	}
	return true
}

// Window returns the context window and the longest reply of the model that is asked next.
func (m *fallbackModel) Window(req *llm.Request) (window, output int) {
	i := int(m.last.Load())
	if w, ok := llm.As[llm.Windower](m.all[i]); ok {
		return w.Window(forModel(req, i))
	}
	return 0, 0
}

// MaxCost returns the cost of req at the dearest model. A model that fails a request adds no cost.
func (m *fallbackModel) MaxCost(req *llm.Request) (dollars float64, known bool) {
	for i, one := range m.all {
		p, ok := llm.As[llm.Pricer](one)
		if !ok {
			return 0, false
		}
		cost, known := p.MaxCost(forModel(req, i))
		if !known {
			return 0, false
		}
		dollars = max(dollars, cost)
	}
	return dollars, true
}

// Stream asks the models in turn, beginning with the last that answered.
func (m *fallbackModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var errs []error
		for n := range m.all {
			i := (int(m.last.Load()) + n) % len(m.all)
			begun, stopped, err := askOne(ctx, m.all[i], forModel(req, i), yield)
			switch {
			case stopped:
				return
			case begun:
				m.last.Store(int64(i))
				if err != nil {
					yield(llm.Delta{}, err)
				}
				return
			}

			// Another model may answer, since nothing of a reply was passed on.
			errs = append(errs, err)
			if ctx.Err() != nil || !m.on(err) || n == len(m.all)-1 {
				break
			}
			next := nameOf(m.all, (i+1)%len(m.all))
			change := &llm.Notice{Code: "fallback", Text: fmt.Sprintf("%v; continuing with %s", err, next)}
			if !yield(llm.Delta{Notice: change}, nil) {
				return
			}
		}

		if len(errs) == 1 {
			yield(llm.Delta{}, errs[0])
			return
		}
		yield(llm.Delta{}, fmt.Errorf("%d models failed: %w", len(errs), errors.Join(errs...)))
	}
}

// askOne sends the request to one model and passes its reply on. begun reports whether a fragment,
// or the whole reply, was passed on; otherwise err is the reason. stopped means that the consumer
// stopped.
func askOne(ctx context.Context, m llm.Model, req *llm.Request, yield func(llm.Delta, error) bool) (begun,
	stopped bool, err error) {
	var held []llm.Delta
	for d, err := range m.Stream(ctx, req) {
		if err != nil {
			return begun, false, err
		}

		// Before the first fragment the reply may still fail. Only notices, and requests that have
		// to be counted, are passed on by then.
		first := !begun && (d.Part != nil || d.Finish != "")
		passes := first || d.Notice != nil || d.Requests != 0
		if !begun && !passes {
			held = append(held, d)
			continue
		}

		if first {
			begun = true
			for _, h := range held {
				if !yield(h, nil) {
					return true, true, nil
				}
			}
		}
		if !yield(d, nil) {
			return begun, true, nil
		}
	}

	if !begun {
		err = &llm.ProviderError{Code: llm.CodeStream, Message: "the model gave no reply", Retryable: true}
	}
	return begun, false, err
}

// forModel returns the request for model i. The override of the model's name is for the first.
func forModel(req *llm.Request, i int) *llm.Request {
	if i == 0 || req.Model == "" {
		return req
	}
	other := *req
	other.Model = ""
	return &other
}

// nameOf returns the name of model i: its own, if it has one.
func nameOf(all []llm.Model, i int) string {
	if s, ok := all[i].(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("model %d of %d", i+1, len(all))
}
