package openai

import "github.com/pawl-go/pawl/provider/catalog"

// facts are what a request depends on of the model it is for: the catalogue's word, else what the name tells.
type facts struct {
	name    string
	reasons bool
}

func toFacts(c *catalog.Catalog, name string) facts {
	if known, ok := c.Find("openai", name); ok && known.Reasoning != nil {
		return facts{name, *known.Reasoning}
	}
	return facts{name, reasons(name)}
}

// reasons reports whether the model that a request is for thinks before it answers.
func (d *dialect) reasons(name string) bool {
	if name == d.own.name {
		return d.own.reasons
	}
	return toFacts(d.catalog, name).reasons
}
