package openai

import "github.com/pawl-go/pawl/provider/catalog"

// facts are the properties of a model that a request depends on, from the catalogue or derived
// from the name.
type facts struct {
	name    string
	reasons bool
	holds   bool // enforces a schema on the reply
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

// factsOf returns the facts of the request's model. They are computed in advance for the Model's
// own.
func (d *dialect) factsOf(name string) facts {
	if name == d.own.name {
		return d.own
	}
	return toFacts(d.catalog, name)
}
