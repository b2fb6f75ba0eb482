package anthropic

import (
	"github.com/pawl-go/pawl/llm"
)

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the model is one that Anthropic can hold to a schema, tools or no tools: by its name, Claude from 4.5 on, at Anthropic itself,
// and to this one: in its strict form a map of any names cannot be said.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	name := m.name
	if req.Model != "" {
		name = req.Model
	}
	return m.newest() && m.factsOf(name).holds && (len(req.Output) == 0 || m.output.Get(req.Output).Schema != nil)
}
