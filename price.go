package pawl

import (
	"context"
	"iter"
	"math"

	"github.com/pawl-go/pawl/llm"
)

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input, Output         float64
	CacheRead, CacheWrite float64 // 0: as Input

	Long      *Price // of a whole request whose input is more than LongAbove tokens; nil: the same
	LongAbove int
}

// Cost returns what u costs.
func (p Price) Cost(u llm.Usage) float64 {
	if p.Long != nil && u.Input > p.LongAbove {
		return p.Long.Cost(u)
	}
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	return (float64(fresh)*p.Input + float64(u.CacheRead)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output) / 1e6
}

// Max returns the most that req can cost.
func (p Price) Max(req *llm.Request) float64 {
	in, out := req.Bounds()
	most := (float64(in)*math.Max(p.Input, p.CacheWrite) + float64(out)*p.Output) / 1e6
	if p.Long != nil && in > p.LongAbove {
		most = math.Max(most, p.Long.Max(req))
	}
	return most
}

// Of returns m at this price: Usage.Cost is set where m does not say what a reply cost, and Limits.Cost can be kept.
func (p Price) Of(m llm.Model) llm.Model { return &priced{m, p} }

// priced is a model with a price.
type priced struct {
	llm.Model
	price Price
}

var _ llm.Pricer = (*priced)(nil)

// MaxCost returns the most that req can cost.
func (p *priced) MaxCost(req *llm.Request) (float64, bool) { return p.price.Max(req), true }

// HoldsOutput passes the question on.
func (p *priced) HoldsOutput(req *llm.Request) bool {
	h, ok := p.Model.(llm.OutputHolder)
	return ok && h.HoldsOutput(req)
}

// Stream sets what a reply costs where the model does not.
func (p *priced) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range p.Model.Stream(ctx, req) {
			if d.Usage != nil && d.Usage.Cost == 0 {
				u := *d.Usage
				u.Cost = p.price.Cost(u)
				d.Usage = &u
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
