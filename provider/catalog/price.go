package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/pawl-go/pawl/llm"
)

// Price is in US dollars for a million tokens. A nil Cached or Write means unknown: such tokens
// then cost the same as other input.
type Price struct {
	Input  float64  `json:"input"`            // input that no cache had
	Output float64  `json:"output"`           // output, with reasoning
	Cached *float64 `json:"cached,omitempty"` // input that was read from a cache
	// Write is the price of input that was written to a cache with a lifetime of minutes.
	Write *float64 `json:"write,omitempty"`
	// Long is the price of requests with long input. Nil means the same price.
	Long *Long `json:"long,omitempty"`
}

// Long is the price of a whole request if its input is more than Above tokens.
type Long struct {
	Above int `json:"above"` // tokens of input
	Price
}

func (p *Price) check() error {
	for _, v := range []*float64{&p.Input, &p.Output, p.Cached, p.Write} {
		// The negation also refuses NaN, which is neither less nor more.
		if v != nil && (!(*v >= 0) || math.IsInf(*v, 0)) {
			return errors.New("a price is less than 0")
		}
	}
	l := p.Long
	switch {
	case l == nil:
		return nil
	case l.Above <= 0:
		return errors.New("a long price needs the number of tokens above which it holds")
	case l.Long != nil:
		return errors.New("a long price has no other long price in it")
	default:
		return l.check()
	}
}

// Cost returns the cost of u in US dollars.
func (p Price) Cost(u llm.Usage) float64 {
	if p.Long != nil && u.Input > p.Long.Above {
		return p.Long.Price.Cost(u)
	}
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	return (float64(fresh)*p.Input + float64(u.CacheRead)*p.cached() + float64(u.CacheWrite)*p.write() +
		float64(u.Output)*p.Output) / 1e6
}

// Max returns the highest possible cost of req in US dollars.
func (p Price) Max(req *llm.Request) float64 {
	in, out := req.Bounds()
	most := (float64(in)*math.Max(p.Input, p.write()) + float64(out)*p.Output) / 1e6
	if p.Long != nil && in > p.Long.Above {
		most = math.Max(most, p.Long.Price.Max(req))
	}
	return most
}

func (p Price) cached() float64 { return orElse(p.Cached, p.Input) }
func (p Price) write() float64  { return orElse(p.Write, p.Input) }

func orElse(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

// Of returns m with this price: it sets Usage.Cost if m does not set it, so that Limits.Cost can be
// enforced. The first request reports a price that is less than 0.
func (p Price) Of(m llm.Model) llm.Model { return &priced{m, p} }

// priced is a model with a price.
type priced struct {
	llm.Model
	price Price
}

var _ llm.Pricer = (*priced)(nil)

// MaxCost returns the highest possible cost of req.
func (p *priced) MaxCost(req *llm.Request) (float64, bool) { return p.price.Max(req), true }

// Unwrap returns the model without a price.
func (p *priced) Unwrap() llm.Model { return p.Model }

// Check returns an error for a price that is less than 0, or for options of the model that are not
// valid.
func (p *priced) Check() error {
	if err := p.price.check(); err != nil {
		return fmt.Errorf("catalog.Price: %w", err)
	}
	if c, ok := llm.As[llm.Checker](p.Model); ok {
		return c.Check()
	}
	return nil
}

// Stream sets the cost of a reply if the model does not.
func (p *priced) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if err := p.price.check(); err != nil {
			yield(llm.Delta{}, fmt.Errorf("catalog.Price: %w", err))
			return
		}
		for d, err := range p.Model.Stream(ctx, req) {
			// The provider's own figure wins: it knows discounts. The usage belongs to the model
			// below, so that it is copied.
			if d.Usage != nil && d.Usage.Cost == 0 && d.Usage.Priced == 0 {
				u := *d.Usage
				u.Cost, u.Priced = p.price.Cost(u), u.Total()
				d.Usage = &u
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
