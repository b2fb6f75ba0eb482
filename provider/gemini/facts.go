package gemini

import (
	"cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
)

// facts are the properties of a model that a request depends on. They come from the catalogue.
// Fields that the catalogue does not have are derived from the generation in the model's name.
type facts struct {
	version int  // see version; 0 means unknown
	levels  bool // effort is a level; otherwise a number of tokens
}

func toFacts(c *catalog.Catalog, name string) facts {
	v := version(name)
	f := facts{version: v, levels: v == 0 || v >= 3}
	if known, ok := c.Find(provider, name); ok && known.Thinking != "" {
		f.levels = known.Thinking == catalog.Level
	}
	return f
}

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the model accepts the schema of req. Models before Gemini 3 reject a
// schema for requests with tools.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	v := version(cmp.Or(req.Model, m.name))
	return v == 0 || v >= 3
}
