package serve

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
)

// preview returns the effect of a call of an agent's file tools. Nil means that it is unknown: the
// call belongs to another tool, would fail, or the file is not text.
func (s *served) preview(ctx context.Context, agent string, call llm.ToolCall) *api.Preview {
	i := slices.IndexFunc(s.agents, func(a *pawl.Agent) bool { return a.Name == agent })
	if i < 0 || s.built[i].Files == nil {
		return nil
	}
	p, err := s.built[i].Files.Preview(ctx, call)
	if p == nil || err != nil {
		return nil
	}
	return &api.Preview{Kind: "file", Path: p.Path, Before: p.Before, After: p.After, Exists: p.Exists}
}
