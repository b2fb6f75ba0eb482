package openai

import (
	"cmp"

	"github.com/pawl-go/pawl/llm"
)

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the server is OpenAI's own, which lets a model call tools before it
// answers with JSON of the schema. Other servers (vLLM, llama.cpp) often apply the schema's
// grammar to the whole reply, and then no call is possible. Some models do not accept schemas, and
// some schemas have no form in the API.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	return !m.compatible && m.factsOf(cmp.Or(req.Model, m.name)).holds &&
		(len(req.Output) == 0 || m.output.Get(req.Output).Schema != nil)
}
