package openai

import (
	"cmp"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// facts are the properties of a model that a request depends on, from the catalogue or derived
// from the name.
type facts struct {
	name    string
	reasons bool
	holds   bool // enforces a schema on the reply
}

func toFacts(c *catalog.Catalog, name string) facts {
	f := facts{name: name, reasons: reasons(name), holds: true}
	if known, ok := c.Find("openai", name); ok {
		wire.Set(&f.reasons, known.Reasoning)
		wire.Set(&f.holds, known.Schema)
	}
	return f
}

// factsOf returns the facts of the request's model. They are computed in advance for the Model's
// own.
func (d *dialect) factsOf(name string) facts {
	if name == d.own.name {
		return d.own
	}
	return toFacts(d.catalog, name)
}

var _ llm.OutputHolder = (*Model)(nil)

// HoldsOutput reports whether the server is OpenAI's own, which lets a model call tools before it
// answers with JSON of the schema. Other servers (vLLM, llama.cpp) often apply the schema's
// grammar to the whole reply, and then no call is possible. Some models do not accept schemas, and
// some schemas have no form in the API.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	return !m.compatible && m.factsOf(cmp.Or(req.Model, m.name)).holds &&
		(len(req.Output) == 0 || m.output.Get(req.Output).Schema != nil)
}

// Compact returns req with the order to summarize the conversation above a number of tokens, which
// the Responses API of OpenAI follows for models that reason; see history.WindowOptions.
func (m *Model) Compact(req *llm.Request, tokens int) (*llm.Request, bool) {
	summarizes := !m.compatible && m.api == responsesAPI && m.factsOf(cmp.Or(req.Model, m.name)).reasons
	stated := wire.Member(req.Settings.Options[m.id], "context_management") != nil // by the program
	if !summarizes || stated {
		return nil, false
	}
	return wire.WithOptions(req, m.id, fmt.Sprintf(`"context_management":[{"type":"compaction","compact_threshold":%d}]`, tokens)), true
}

// Compacted reports whether p is such a summary.
func (m *Model) Compacted(p llm.Part) bool { return wire.Compaction(p, m.tag, "encrypted_content") }
