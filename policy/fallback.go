package policy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Fallback lets other models answer where the agent's own cannot: when a request fails, before the first fragment of its reply, with an error that
// another provider may not have. Each model is tried once a request. A run stays with the model that answered last, since prompt
// caches and signatures are its own; the next run begins with the agent's. What happened is told as a notice with the code "fallback", and the reply
// names the model it came from as its adapter does. Request.Model is for the agent's own model and is not sent to another.
//
// What one provider marked as its own (llm.Opaque) is left out elsewhere by every adapter, so a run can change its model at any request.
//
// Under pawl.Limits.Cost each of the models needs a price: the dearest counts when it is asked whether there is room for another request.
type Fallback struct {
	Models []llm.Model // required: tried in order, after the agent's own

	// On says which errors go to the next model; nil: those of llm.ProviderError that are retryable, and no quota, no access (a key that is
	// missing or wrong) and no such model. A request that a provider refuses as it is, or for its content, is refused for good.
	On func(err error) bool
}

// Middleware returns the middleware that falls back as f says. To be of use for each request it should stand first, or outside of what
// counts requests.
func (f Fallback) Middleware() pawl.Middleware {
	if f.On == nil {
		f.On = elsewhere
	}
	return pawl.Middleware{
		Model: func(own llm.Model) llm.Model { // once a run
			return &models{all: append([]llm.Model{own}, f.Models...), on: f.On}
		},
		Check: func([]*pawl.Tool) error {
			if len(f.Models) == 0 || slices.Contains(f.Models, nil) {
				return errors.New("fallback: there is no model to fall back to, or one of Models is nil")
			}
			return nil
		},
	}
}

// elsewhere reports whether another provider may not have the error.
func elsewhere(err error) bool {
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

// models is a model over models, for one run.
type models struct {
	all  []llm.Model
	on   func(error) bool
	last atomic.Int64 // the one that answered
}

var (
	_ llm.Model  = (*models)(nil)
	_ llm.Pricer = (*models)(nil)
)

// MaxCost returns what req can cost at the dearest of the models. Of a request that one of them fails, nothing is counted.
func (m *models) MaxCost(req *llm.Request) (dollars float64, known bool) {
	for i, one := range m.all {
		p, ok := one.(llm.Pricer)
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

// Stream asks the models in turn, from the one that answered last.
func (m *models) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var errs []error
		for n := range m.all {
			i := (int(m.last.Load()) + n) % len(m.all)
			begun, stopped, err := ask(ctx, m.all[i], forModel(req, i), yield)
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
			errs = append(errs, err)
			if ctx.Err() != nil || !m.on(err) || n == len(m.all)-1 {
				break
			}
			next := (i + 1) % len(m.all)
			if !yield(llm.Delta{Notice: &llm.Notice{Code: "fallback", Text: fmt.Sprintf("%v; going on with %s", err, name(m.all, next))}}, nil) {
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

// ask sends the request to one model and passes its reply on. What comes before the first fragment is held back, but for notices: it may be
// of a reply that never is. begun reports whether there was a fragment, or the whole reply; not begun, err says why. stopped: nobody listens.
func ask(ctx context.Context, m llm.Model, req *llm.Request, yield func(llm.Delta, error) bool) (begun, stopped bool, err error) {
	var held []llm.Delta
	for d, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			return begun, false, err
		case !begun && d.Part == nil && d.Finish == "" && d.Notice == nil:
			held = append(held, d)
			continue
		case !begun && (d.Part != nil || d.Finish != ""):
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

// forModel returns the request as model i is asked it: the override of the model's name is the first one's.
func forModel(req *llm.Request, i int) *llm.Request {
	if i == 0 || req.Model == "" {
		return req
	}
	other := *req
	other.Model = ""
	return &other
}

// name says which model is meant: in its own words where it has some.
func name(all []llm.Model, i int) string {
	if s, ok := all[i].(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("model %d of %d", i+1, len(all))
}
