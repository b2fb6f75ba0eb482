package pawl

import (
	"context"
	"iter"
	"math"
)

// Pricer is a Model that knows what its requests cost: the replies it gives have Usage.Cost. Price.Of makes one. A run with Limits.Cost, or
// inside one that has it, fails before its first request when its Model is none. A Model over a Model passes the question on. A middleware's need not, unless it
// asks more than the one inside of it, as policy.Fallback does: the outermost Pricer counts.
type Pricer interface {
	// MaxCost returns the most that req can cost in US dollars, math.Inf(1) where there is no telling. known is false when the price is not
	// known. It is asked before each request of a run whose cost is limited, and must not block.
	MaxCost(req *Request) (dollars float64, known bool)
}

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input, Output         float64
	CacheRead, CacheWrite float64 // 0: as Input

	Long      *Price // of a whole request whose input is more than LongAbove tokens; nil: the same
	LongAbove int
}

// Cost returns what u costs.
func (p Price) Cost(u Usage) float64 {
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
func (p Price) Max(req *Request) float64 {
	in, out := req.Bounds()
	most := (float64(in)*math.Max(p.Input, p.CacheWrite) + float64(out)*p.Output) / 1e6
	if p.Long != nil && in > p.LongAbove {
		most = math.Max(most, p.Long.Max(req))
	}
	return most
}

// Of returns m at this price: Usage.Cost is set where m does not say what a reply cost, and Limits.Cost can be kept.
func (p Price) Of(m Model) Model { return &priced{m, p} }

const longestReply = 128 << 10 // tokens; no model writes more in one reply

// Bounds returns the most tokens that the request can be, one for each byte, and that its reply can be: Settings.MaxTokens, or 128 Ki.
func (req *Request) Bounds() (input, output int) {
	input = aroundRequest + len(req.Output)
	for _, m := range req.Messages {
		input += m.bytes()
	}
	for _, t := range req.Tools {
		input += aroundPart + len(t.Name) + len(t.Description) + len(t.Input)
	}
	if output = req.Settings.MaxTokens; output <= 0 {
		output = longestReply
	}
	return input, output
}

// What a provider adds of its own, in tokens, is no more than this.
const (
	aroundRequest = 1 << 10
	aroundPart    = 16
	aroundMedia   = 16 << 10 // behind an address may be any picture
)

// bytes returns the bytes of m, with what is put around them.
func (m *Message) bytes() (n int) {
	for _, p := range m.Parts {
		n += aroundPart
		switch p := p.(type) {
		case Text:
			n += len(p.Text)
		case Reasoning:
			n += len(p.Text)
			if p.Opaque != nil {
				n += len(p.Opaque.Data)
			}
		case Media:
			n += aroundMedia + len(p.Data)
		case ToolCall:
			n += len(p.Name) + len(p.Args)
		case ToolResult:
			for _, q := range p.Parts {
				n += (&Message{Parts: []Part{q}}).bytes()
			}
		}
	}
	return n
}

// priced is a model with a price.
type priced struct {
	Model
	price Price
}

var _ Pricer = (*priced)(nil)

// MaxCost returns the most that req can cost.
func (p *priced) MaxCost(req *Request) (float64, bool) { return p.price.Max(req), true }

// HoldsOutput passes the question on.
func (p *priced) HoldsOutput(req *Request) bool {
	h, ok := p.Model.(OutputHolder)
	return ok && h.HoldsOutput(req)
}

// Stream sets what a reply costs where the model does not.
func (p *priced) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
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
