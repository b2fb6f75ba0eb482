package provider

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
)

// priced returns m with the price from the catalogue, or m itself if the catalogue has none.
func priced(m llm.Model, name string, c *catalog.Catalog) llm.Model {
	known, _ := c.Lookup(name)
	if known.Price == nil {
		return m
	}
	return known.Price.Of(m)
}
