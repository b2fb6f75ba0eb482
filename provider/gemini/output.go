package gemini

import (
	"cmp"

	"github.com/pawl-go/pawl/llm"
)

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the model accepts the schema of req. Models before Gemini 3 reject a
// schema for requests with tools.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	v := version(cmp.Or(req.Model, m.name))
	return v == 0 || v >= 3
}
