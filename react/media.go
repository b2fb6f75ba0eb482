package react

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// mediaTaker is an optional ability of a Model, which the adapters of providers have. TakeMedia
// returns a medium of a result as the provider takes it: with its usual type, or as a Text that
// says why it cannot be sent.
type mediaTaker interface {
	TakeMedia(req *llm.Request, m llm.Media) llm.Part
}

// takenBy returns the messages of req with the media of results as model takes them. Results become
// messages of the user, and an adapter refuses media of a user that it does not take. A model that
// states nothing about media gets them unchanged.
func takenBy(model llm.Model, req *llm.Request) []llm.Message {
	taker, ok := llm.As[mediaTaker](model)
	if !ok {
		return req.Messages
	}
	out := slices.Clone(req.Messages)
	for i, m := range out {
		if m.Role != llm.RoleTool {
			continue
		}
		parts := slices.Clone(m.Parts)
		for j, p := range parts {
			r, isResult := p.(llm.ToolResult)
			if isResult {
				r.Parts = taken(taker, req, r.Parts)
				parts[j] = r
			}
		}
		out[i].Parts = parts
	}
	return out
}

func taken(taker mediaTaker, req *llm.Request, parts []llm.Part) []llm.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		if m, ok := p.(llm.Media); ok {
			out[i] = taker.TakeMedia(req, m)
		}
	}
	return out
}
