package anthropic

import "github.com/pawl-go/pawl/provider/catalog"

// facts are what a request depends on of the model it is for. The catalogue's word comes first; of what it does not say, the name tells the
// version, and with that what Anthropic's models of a version have in common.
type facts struct {
	name      string
	version   int  // see version
	thinks    bool // it can be asked to think; of a model whose name says nothing it is taken
	adaptive  bool // it decides itself how much; else it is given a budget
	instructs bool // it takes instructions among the messages
	holds     bool // it can be held to the schema of a reply
	reply     int  // the bound on a reply where the request has none: what the model can write for sure
}

func toFacts(c *catalog.Catalog, name string) facts {
	v := version(name)
	f := facts{name: name, version: v, thinks: v == unknown || v >= 307, adaptive: v >= 406, instructs: v >= 408, holds: v >= 405, reply: defaultMaxTokens(v)}
	known, ok := c.Find(provider, name)
	if !ok {
		return f
	}
	if known.Reasoning != nil {
		f.thinks = *known.Reasoning
	}
	if known.Thinking != "" {
		f.adaptive = known.Thinking == catalog.Adaptive
	}
	if known.Instructs != nil {
		f.instructs = *known.Instructs
	}
	if known.Schema != nil {
		f.holds = *known.Schema
	}
	if known.MaxOutput > 0 {
		f.reply = min(f.reply, known.MaxOutput)
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
