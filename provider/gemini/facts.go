package gemini

import "github.com/pawl-go/pawl/provider/catalog"

// facts are what a request depends on of the model it is for. The catalogue's word comes first; of what it does not say, the name tells the
// generation, and with that what Google's models of a generation have in common.
type facts struct {
	name    string
	version int  // see version; 0: not known
	levels  bool // it is told how much to think by a word; else by a number of tokens
}

func toFacts(c *catalog.Catalog, name string) facts {
	v := version(name)
	f := facts{name: name, version: v, levels: v == 0 || v >= 3}
	if known, ok := c.Find(provider, name); ok && known.Thinking != "" {
		f.levels = known.Thinking == catalog.Level
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
