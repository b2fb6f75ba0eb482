package react

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// takenBy returns the messages of req with the media of results as model takes them. Results become
// messages of the user, and an adapter refuses media of a user that it does not take. A model that
// states nothing about media gets them unchanged.
func takenBy(model llm.Model, req *llm.Request) []llm.Message {
	taker, ok := llm.As[llm.MediaTaker](model)
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

func taken(taker llm.MediaTaker, req *llm.Request, parts []llm.Part) []llm.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		if m, ok := p.(llm.Media); ok {
			out[i] = taker.TakeMedia(req, m)
		}
	}
	return out
}
