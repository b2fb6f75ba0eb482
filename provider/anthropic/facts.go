package anthropic

import (
	"cmp"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// facts are the properties of a model that a request depends on. They come from the catalogue.
// Fields that the catalogue does not have are derived from the version in the model's name.
type facts struct {
	name      string
	version   int  // see version
	thinks    bool // accepts an effort; true if the name says nothing
	adaptive  bool // decides itself how much to think; otherwise it needs a budget
	instructs bool // accepts instructions among the messages
	holds     bool // enforces a schema on the reply
	bound     bool // checks thinking against what stands before it
	reply     int  // max_tokens of a request without a limit: a size that the model supports
}

func toFacts(c *catalog.Catalog, name string) facts {
	v := version(name)
	f := facts{name: name, version: v, thinks: v == unknown || v >= 307, adaptive: v >= 406, instructs: v >= 408,
		holds: v >= 405, bound: binds(name, v), reply: defaultMaxTokens(v)}
	known, ok := c.Find(provider, name)
	if !ok {
		return f
	}
	wire.Set(&f.thinks, known.Reasoning)
	if known.Thinking != "" {
		f.adaptive = known.Thinking == catalog.Adaptive
	}
	wire.Set(&f.instructs, known.Instructs)
	wire.Set(&f.holds, known.Schema)
	wire.Set(&f.bound, known.Bound)
	// The default grows with the version and may be more than a small model of it can write.
	if known.MaxOutput > 0 {
		f.reply = min(f.reply, known.MaxOutput)
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

// HoldsOutput reports whether Anthropic enforces the schema of req, with or without tools. By
// name, that is Claude from 4.5 on, at Anthropic itself. Some schemas have no enforced form, for
// example a map with arbitrary names.
func (m *Model) HoldsOutput(req *llm.Request) bool {
	return m.newest() && m.factsOf(cmp.Or(req.Model, m.name)).holds &&
		(len(req.Output) == 0 || m.output.Get(req.Output).Schema != nil)
}

var _ llm.Compactor = (*Model)(nil)

// Compact returns req with the order to shorten the conversation, which Anthropic itself follows.
// Claude 4.5 clears old results above a number of tokens. Claude from 4.6 on summarizes at once,
// for 0 tokens. Options of the request that exclude it stay unchanged. See history.WindowOptions.
// https://platform.claude.com/docs/en/build-with-claude/context-editing, compaction-on-demand.
func (m *Model) Compact(req *llm.Request, tokens int) (*llm.Request, bool) {
	v := m.factsOf(cmp.Or(req.Model, m.name)).version
	switch {
	case tokens == 0 && m.summarizes(req):
		r := new(*req)
		r.Summarize = true
		return r, true
	case tokens == 0, !m.newest(), v != 405, wire.Member(req.Settings.Options[provider], "context_management") != nil:
		return nil, false
	}
	at := func(tokens int) string { return fmt.Sprintf(`{"type":"input_tokens","value":%d}`, tokens) }
	return wire.WithOptions(req, provider, fmt.Sprintf(`"betas":["context-management-2025-06-27"],`+
		`"context_management":{"edits":[{"type":"clear_tool_uses_20250919","clear_at_least":%s,"trigger":%s}]}`,
		at(tokens/2), at(tokens))), true
}

// Compacted reports whether p is a summary by Anthropic.
func (m *Model) Compacted(p llm.Part) bool { return m.summaries().isSummary(p) }

// summarizes reports whether Anthropic summarizes the conversation of req on demand.
func (m *Model) summarizes(req *llm.Request) bool {
	own, err := readOptions(req.Settings.Options[provider])
	if err != nil || own.compaction != nil {
		return false
	}

	able := m.newest() && m.factsOf(cmp.Or(req.Model, m.name)).version >= 406
	return able && excludesSummary(own.body) == ""
}
