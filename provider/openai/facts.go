package openai

import "github.com/pawl-go/pawl/provider/catalog"

// facts are what a request depends on of the model it is for: the catalogue's word, else what the name tells.
type facts struct {
	name    string
	reasons bool
	holds   bool // it can be held to the schema of a reply
}

func toFacts(c *catalog.Catalog, name string) facts {
	f := facts{name: name, reasons: reasons(name), holds: true}
	if known, ok := c.Find("openai", name); ok {
		if known.Reasoning != nil {
			f.reasons = *known.Reasoning
		}
		if known.Schema != nil {
			f.holds = *known.Schema
		}
	}
	return f
}

// factsOf returns the facts of the model that a request is for, mostly those that are at hand.
func (d *dialect) factsOf(name string) facts {
	if name == d.own.name {
		return d.own
	}
	return toFacts(d.catalog, name)
}
