package anthropic

import (
	"github.com/pawl-go/pawl/llm"
)

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether Anthropic enforces the schema of req, with or without tools. By
// name, that is Claude from 4.5 on, at Anthropic itself. Some schemas have no enforced form, for
// example a map with arbitrary names.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	name := m.name
	if req.Model != "" {
		name = req.Model
	}
	return m.newest() && m.factsOf(name).holds && (len(req.Output) == 0 || m.output.Get(req.Output).Schema != nil)
}
