package gemini

import (
	"cmp"

	"github.com/pawl-go/pawl/llm"
)

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the model takes a schema for its reply beside tools. Models before Gemini 3 refuse the two together.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	v := version(cmp.Or(req.Model, m.name))
	return v == 0 || v >= 3
}
