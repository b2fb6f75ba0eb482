package provider

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
)

// priced returns m at the price of the catalogue, or m itself where there is none.
func priced(m llm.Model, name string, c *catalog.Catalog) llm.Model {
	known, _ := c.Lookup(name)
	if known.Price == nil {
		return m
	}
	price := toPrice(*known.Price)
	if l := known.Price.Long; l != nil {
		long := toPrice(l.Price)
		price.Long, price.LongAbove = &long, l.Above
	}
	return price.Of(m)
}

func toPrice(p catalog.Price) pawl.Price {
	price := pawl.Price{Input: p.Input, Output: p.Output}
	if p.Cached != nil {
		price.CacheRead = *p.Cached
	}
	if p.Write != nil {
		price.CacheWrite = *p.Write
	}
	return price
}
