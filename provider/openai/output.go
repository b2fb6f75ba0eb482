package openai

import (
	"cmp"

	"github.com/pawl-go/pawl/llm"
)

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the server is OpenAI's own, which lets a model call tools that must end with JSON of a schema. Others often hold
// the whole reply to the schema's grammar (vLLM, llama.cpp), which leaves no room for a call. A schema that the API has no form for is held by none, and some models by no schema.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	return !m.compatible && m.factsOf(cmp.Or(req.Model, m.name)).holds && (len(req.Output) == 0 || m.output.Get(req.Output).Schema != nil)
}
