package catalog

import (
	"errors"
	"math"
)

// Price is in US dollars for a million tokens. Cached and Write are nil where they are not known, and then cost what input does.
type Price struct {
	Input  float64  `json:"input"`
	Output float64  `json:"output"`
	Cached *float64 `json:"cached,omitempty"` // input that was read from a cache
	Write  *float64 `json:"write,omitempty"`  // input that was written to a cache that lasts for minutes
	Long   *Long    `json:"long,omitempty"`   // of requests with much input; nil: the same
}

// Long is the price of a whole request whose input is more than Above tokens.
type Long struct {
	Above int `json:"above"`
	Price
}

func (p *Price) check() error {
	for _, v := range []*float64{&p.Input, &p.Output, p.Cached, p.Write} {
		if v != nil && (*v < 0 || math.IsInf(*v, 0)) {
			return errors.New("a price is less than 0")
		}
	}
	switch l := p.Long; {
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
