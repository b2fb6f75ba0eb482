package anthropic

import "github.com/pawl-go/pawl"

var _ pawl.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the model is one that Anthropic can hold to a schema, tools or no tools: Claude from 4.5 on, at Anthropic itself.
func (m *Model) HoldsOutput(req *pawl.Request) bool {
	name := m.name
	if req.Model != "" {
		name = req.Model
	}
	return m.newest() && version(name) >= 405
}
